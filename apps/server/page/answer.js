// An answer as it grows: its text, its tokens with their origins, the rounds they came in, and the server's figures.

export const PLAIN = 0; // a round without drafts
export const ACCEPTED = 1; // drafted, and kept by the model
export const CORRECTION = 2; // the model's own, in place of a draft it refused
export const BONUS = 3; // the model's own, after drafts that were all accepted

export class Answer {
    text = "";
    tokens = []; // {id, origin, bytes, round, place, from, to}; text.slice(from, to) once from ≥ 0
    rounds = []; // {first: token, accepted, end: origin of its last token, -1 while there is none}
    counts = [0, 0, 0, 0]; // tokens by origin
    acceptedAt = []; // [i]: drafts at position i of their round that were accepted, …
    refusedAt = []; // … and that were refused
    nPlaced = 0; // tokens whose text is here
    cursor = 0; // end of the last one's text

    finish = null; // "stop", "length"; "stopped" by the user; null: grows, or broke
    usage = null;
    timings = null;
    speculation = null; // {seed, alpha, c, v, predicted_speedup, choice, accepted_histogram}
    request = null; // what was asked, without the messages
    error = null; // message: it broke
    plain = null; // what the same request gave without drafts: {text, isEqual, perSecond, n}
    firstAt = null; // milliseconds: of the first chunk with text, …
    lastAt = null; // … and of the last
    #nAtFirst = 0;

    // A chunk of the stream.
    add(chunk, now = performance.now()) {
        const choice = chunk.choices?.[0];
        const piece = choice?.delta?.content;
        if (typeof piece === "string") this.text += piece;
        for (const token of Array.isArray(chunk.auspex?.tokens) ? chunk.auspex.tokens : []) this.#join(token);
        this.#place();
        if (piece) {
            if (this.firstAt === null) [this.firstAt, this.#nAtFirst] = [now, this.tokens.length];
            this.lastAt = now;
        }
        if (choice?.finish_reason) this.finish = choice.finish_reason;
        if (chunk.usage) this.usage = chunk.usage;
        if (chunk.timings) this.timings = chunk.timings;
        if (chunk.auspex && !chunk.auspex.tokens) this.speculation = chunk.auspex;
    }

    // A round is some accepted drafts and then one token of the model; only the last can lack that one.
    #join([id, origin, bytes]) {
        if (!(origin >= PLAIN && origin <= BONUS)) return;
        let round = this.rounds.at(-1);
        if (!round || round.end >= 0) {
            round = { first: this.tokens.length, accepted: 0, end: -1 };
            this.rounds.push(round);
        }
        const place = round.accepted; // from 0
        this.tokens.push({ id, origin, bytes, round: this.rounds.length - 1, place, from: -1, to: -1 });
        ++this.counts[origin];
        if (origin === ACCEPTED) {
            ++round.accepted;
            this.acceptedAt[place] = (this.acceptedAt[place] ?? 0) + 1;
        } else {
            round.end = origin;
            if (origin === CORRECTION) this.refusedAt[place] = (this.refusedAt[place] ?? 0) + 1;
        }
    }

    // Gives tokens their text, as far as it has come.
    #place() {
        for (; this.nPlaced < this.tokens.length; ++this.nPlaced) {
            const token = this.tokens[this.nPlaced];
            let end = this.cursor;
            let bytes = 0;
            while (bytes < token.bytes) {
                if (end >= this.text.length) return;
                const code = this.text.codePointAt(end);
                bytes += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
                end += code < 0x10000 ? 1 : 2;
            }
            [token.from, token.to] = [this.cursor, end];
            this.cursor = end;
        }
    }

    get nTokens() {
        return this.usage?.completion_tokens ?? this.tokens.length;
    }

    // The server's measure; while there is none, ours, since the first chunk.
    get perSecond() {
        if (this.timings?.predicted_per_second > 0) return this.timings.predicted_per_second;
        const seconds = (this.lastAt - this.firstAt) / 1000;
        return seconds > 0 ? (this.tokens.length - this.#nAtFirst) / seconds : null;
    }

    // By position in the round: {accepted, tested}. Drafts after a refused one are not tested.
    get positions() {
        const n = Math.max(this.acceptedAt.length, this.refusedAt.length);
        return Array.from({ length: n }, (_, i) => {
            const accepted = this.acceptedAt[i] ?? 0;
            return { accepted, tested: accepted + (this.refusedAt[i] ?? 0) };
        });
    }

    // As it is kept and exported; from() is the way back.
    toJSON() {
        const { text, finish, usage, timings, speculation, request, error, plain } = this;
        return { text, finish, usage, timings, speculation, request, error, plain, tokens: this.tokens.map((t) => [t.id, t.origin, t.bytes]) };
    }

    // Of JSON from anywhere: what has a wrong type is left out.
    static from(json) {
        const answer = new Answer();
        const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
        answer.text = typeof json.text === "string" ? json.text : "";
        for (const name of ["usage", "timings", "speculation", "request", "plain"]) answer[name] = isObject(json[name]) ? json[name] : null;
        for (const name of ["finish", "error"]) answer[name] = typeof json[name] === "string" ? json[name] : null;
        if (answer.plain && typeof answer.plain.text !== "string") answer.plain = null;
        for (const token of Array.isArray(json.tokens) ? json.tokens : [])
            if (Array.isArray(token) && token.length === 3 && token.every(Number.isInteger)) answer.#join(token);
        answer.#place();
        return answer;
    }
}

// An answer token by token, each in the colour and with the line of its origin. Pointing at one, or walking there with
// the arrow keys, tells its round and origin, and shows what came with it.
import { ACCEPTED, BONUS, CORRECTION, PLAIN } from "./answer.js";
import { make } from "./dom.js";

export const ORIGINS = ["plain", "accepted", "correction", "bonus"]; // by number; classes of page.css, too

export class TokensView {
    #answer;
    #onPick;
    #tail = document.createTextNode(""); // text whose tokens are not told yet, or never
    #spans = [];
    #round = -1; // that is shown
    #current = 0; // token that the Tab key gets to
    element = make("div", { class: "tokens", dir: "auto" });

    // onPick(token): what describes it; null: none is pointed at.
    constructor(answer, onPick) {
        this.#answer = answer;
        this.#onPick = onPick;
        const at = (event) => (event.target.dataset?.n === undefined ? null : Number(event.target.dataset.n));
        this.element.append(this.#tail);
        this.element.addEventListener("pointerover", (event) => this.#show(at(event)));
        this.element.addEventListener("pointerleave", () => this.#show(null));
        this.element.addEventListener("focusin", (event) => this.#show(at(event)));
        this.element.addEventListener("focusout", () => this.#show(null));
        this.element.addEventListener("click", (event) => at(event) !== null && this.#focus(at(event)));
        this.element.addEventListener("keydown", (event) => this.#walk(event));
        this.update();
    }

    // Draws what came since the last time.
    update() {
        const { tokens, nPlaced, rounds, text, cursor } = this.#answer;
        for (let n = this.#spans.length; n < nPlaced; ++n) {
            const token = tokens[n];
            const span = make("span", { class: `token ${ORIGINS[token.origin]}`, "data-n": n, "aria-describedby": "pointed" });
            span.textContent = text.slice(token.from, token.to);
            if (rounds[token.round].first === n) span.classList.add("first");
            if (token.origin !== ACCEPTED) span.classList.add("last");
            if (span.textContent === "") span.classList.add("empty");
            if (span.textContent.includes("\n")) span.classList.add("breaks");
            if (n === this.#current) span.tabIndex = 0;
            this.#spans.push(span);
            this.#tail.before(span);
        }
        const rest = text.slice(cursor);
        if (this.#tail.data !== rest) this.#tail.data = rest;
    }

    #show(n) {
        const round = n === null ? -1 : this.#answer.tokens[n].round;
        if (round !== this.#round) {
            this.#mark(this.#round, false);
            this.#mark(round, true);
            this.#round = round;
        }
        this.#onPick(n === null ? null : describe(this.#answer, n));
    }

    #mark(round, isShown) {
        if (round < 0) return;
        const end = this.#answer.rounds[round + 1]?.first ?? this.#spans.length;
        for (let n = this.#answer.rounds[round].first; n < end; ++n) this.#spans[n]?.classList.toggle("together", isShown);
    }

    #focus(n) {
        this.#spans[this.#current]?.removeAttribute("tabindex");
        this.#current = n;
        this.#spans[n].tabIndex = 0;
        this.#spans[n].focus({ preventScroll: false });
    }

    #walk(event) {
        if (event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
        const { tokens, rounds } = this.#answer;
        const last = this.#spans.length - 1;
        const round = tokens[this.#current]?.round ?? 0;
        const to = {
            ArrowRight: this.#current + 1,
            ArrowLeft: this.#current - 1,
            ArrowDown: rounds[round + 1]?.first ?? last,
            ArrowUp: rounds[Math.max(round - 1, 0)]?.first ?? 0,
            Home: 0,
            End: last,
        }[event.key];
        if (to === undefined || last < 0) return;
        event.preventDefault();
        this.#focus(Math.min(Math.max(to, 0), last));
    }
}

// {title, text}: "Round 12, token 2 of 4", "accepted: …".
function describe(answer, n) {
    const token = answer.tokens[n];
    const round = answer.rounds[token.round];
    const size = round.accepted + (round.end >= 0 ? 1 : 0);
    const drafts = round.accepted === 1 ? "one draft" : `${round.accepted} drafts`;
    const what = {
        [PLAIN]: "Plain: the model's own, in a round without drafts.",
        [ACCEPTED]: `Accepted: draft ${token.place + 1} of this round, kept by the model.`,
        [CORRECTION]: `Correction: the model's own, in place of draft ${token.place + 1}, which it refused.`,
        [BONUS]: `Bonus: the model's own, after ${drafts} that it kept.`,
    }[token.origin];
    return { origin: token.origin, title: `Round ${token.round + 1} · token ${token.place + 1} of ${size} · id ${token.id}`, text: what };
}

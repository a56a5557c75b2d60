// Talks with the server: JSON over fetch, and answers as streams of server-sent events. Paths are relative, so that a
// proxy may have the server at another place.

const KEY = "auspex.key"; // in sessionStorage: it is forgotten with the tab

export const getKey = () => sessionStorage.getItem(KEY) ?? "";
export function setKey(key) {
    if (key) sessionStorage.setItem(KEY, key);
    else sessionStorage.removeItem(KEY);
}

// What the server refused or could not do. status: of HTTP; 0: it did not answer, or broke off.
export class ServerError extends Error {
    constructor(message, { status = 0, retryAfter = null } = {}) {
        super(message);
        this.status = status;
        this.retryAfter = retryAfter; // seconds
    }
}

function headers() {
    const key = getKey();
    return { "Content-Type": "application/json", ...(key ? { Authorization: `Bearer ${key}` } : {}) };
}

async function request(path, options) {
    let response;
    try {
        response = await fetch(path, { ...options, headers: headers(), cache: "no-store", credentials: "omit", redirect: "error" });
    } catch (error) {
        if (error.name === "AbortError") throw error;
        throw new ServerError("The server does not answer. Is it still running?");
    }
    if (response.ok) return response;
    const body = await response.json().catch(() => null);
    const seconds = Number.parseInt(response.headers.get("Retry-After") ?? "", 10);
    throw new ServerError(textOf(body?.error) ?? `The server answered with status ${response.status}.`, {
        status: response.status,
        retryAfter: Number.isFinite(seconds) ? seconds : null,
    });
}

const textOf = (error) => (typeof error?.message === "string" && error.message !== "" ? error.message : null);

export async function getProps() {
    return (await request("props", { method: "GET" })).json();
}

// Gives what arrives, in order: {queued: place}, {prompt: [done, total]}, {chunk: object}. Ends after [DONE]; throws
// ServerError if the stream ends otherwise, and AbortError when signal was raised.
export async function* askForChat(body, signal) {
    const response = await request("v1/chat/completions", { method: "POST", body: JSON.stringify(body), signal });
    const reader = response.body.getReader();
    try {
        for await (const line of linesOf(reader)) {
            if (line.startsWith(":")) {
                const comment = parseComment(line);
                if (comment) yield comment;
            } else if (line.startsWith("data:")) {
                const data = line.slice(5).trim();
                if (data === "[DONE]") return;
                const chunk = parseChunk(data);
                if (chunk.error) throw new ServerError(textOf(chunk.error) ?? "The server could not go on.", { status: chunk.error.code });
                yield { chunk };
            }
        }
    } finally {
        reader.cancel().catch(() => {});
    }
    throw new ServerError("The connection broke before the answer was whole.");
}

async function* linesOf(reader) {
    const decoder = new TextDecoder();
    let rest = "";
    for (;;) {
        let piece;
        try {
            piece = await reader.read();
        } catch (error) {
            if (error.name === "AbortError") throw error;
            throw new ServerError("The connection broke before the answer was whole.");
        }
        if (piece.done) return;
        const lines = (rest + decoder.decode(piece.value, { stream: true })).split("\n");
        rest = lines.pop();
        for (const line of lines) yield line.endsWith("\r") ? line.slice(0, -1) : line;
    }
}

// ": queued 3", ": prompt 120/300"; of others nothing.
function parseComment(line) {
    const queued = /^: ?queued (\d+)$/.exec(line);
    if (queued) return { queued: Number(queued[1]) };
    const prompt = /^: ?prompt (\d+)\/(\d+)$/.exec(line);
    return prompt ? { prompt: [Number(prompt[1]), Number(prompt[2])] } : null;
}

function parseChunk(data) {
    try {
        const chunk = JSON.parse(data);
        if (typeof chunk === "object" && chunk !== null) return chunk;
    } catch {
        // told below
    }
    throw new ServerError("The server sent something that is no JSON object.");
}

// The conversations, kept in this browser: the latest kMost, in at most kRoom characters.
import { Answer } from "./answer.js";

const KEY = "auspex.chats";
const kMost = 50;
const kRoom = 2_000_000; // of the 5 million or so that a browser grants
const kTitle = 60;

export const newId = () => Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join("");
export const newChat = () => ({ id: newId(), updated: Date.now(), messages: [] });

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]+/g; // controls, and what turns the direction

// Its beginning, on one line.
export function titleOf(chat) {
    const words = (chat.messages[0]?.content ?? "").slice(0, 4 * kTitle).replace(/\s+/g, " ").replace(UNSEEN, "").trim();
    const letters = [...words];
    return letters.length > kTitle ? `${letters.slice(0, kTitle - 1).join("")}…` : words || "New chat";
}

// Chats: {id, updated, messages: [{role: "user", content} | {role: "assistant", answer: Answer}]}, the latest first.
export class Chats {
    list = [];

    load() {
        try {
            this.list = chatsOf(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
        } catch {
            this.list = [];
        }
    }

    find(id) {
        return this.list.find((chat) => chat.id === id);
    }

    // Puts it first. What was changed in another tab meanwhile stays. false: it was not kept.
    keep(chat) {
        chat.updated = Date.now();
        return this.#save((others) => [chat, ...others.filter((other) => other.id !== chat.id)], chat);
    }

    remove(id) {
        return this.#save((others) => others.filter((other) => other.id !== id));
    }

    // Adds what was exported; of a chat that is there already the later one stays. Gives how many came, or throws.
    import(text) {
        const json = JSON.parse(text);
        if (json?.auspex_chats !== 1) throw new Error("not an export of this page");
        const coming = chatsOf(json.chats);
        this.#save((others) => {
            const all = new Map(others.map((chat) => [chat.id, chat]));
            for (const chat of coming) if (!(all.get(chat.id)?.updated >= chat.updated)) all.set(chat.id, chat);
            return [...all.values()].sort((a, b) => b.updated - a.updated);
        });
        return coming.length;
    }

    export() {
        return JSON.stringify({ auspex_chats: 1, exported: new Date().toISOString(), chats: this.list }, null, 1);
    }

    #save(change, latest = null) {
        const mine = this.list;
        this.load();
        const known = new Map(mine.map((chat) => [chat.id, chat])); // the objects that are shown stay the same
        this.list = change(this.list.map((chat) => known.get(chat.id) ?? chat)).slice(0, kMost);
        for (;;) {
            const text = JSON.stringify(this.list);
            try {
                if (text.length <= kRoom) {
                    localStorage.setItem(KEY, text);
                    return true;
                }
            } catch {
                // no room
            }
            if (this.list.length <= (latest ? 1 : 0)) return false;
            this.list.pop(); // the oldest
        }
    }
}

// Chats of JSON from anywhere. Whatever is not one is left out.
function chatsOf(json) {
    const chats = [];
    for (const one of Array.isArray(json) ? json : []) {
        const messages = [];
        for (const message of Array.isArray(one?.messages) ? one.messages : []) {
            if (message?.role === "user" && typeof message.content === "string") messages.push({ role: "user", content: message.content });
            if (message?.role === "assistant" && message.answer) messages.push({ role: "assistant", answer: Answer.from(message.answer) });
        }
        if (typeof one?.id === "string" && /^\w{1,40}$/.test(one.id) && Number.isFinite(one.updated) && messages.length > 0)
            chats.push({ id: one.id, updated: one.updated, messages });
    }
    return chats;
}

// The page: a conversation, what is being asked, and the list of conversations. Everything else is in its neighbours.
import { Answer } from "./answer.js";
import { Chats, newChat, titleOf } from "./chats.js";
import { askForKey, openSettings } from "./dialogs.js";
import { byId, make, plural, setText, speed } from "./dom.js";
import { drawFigures, drawPointed } from "./figures.js";
import { AnswerView, UserView } from "./messages.js";
import { ServerError, askForChat, getProps } from "./server.js";
import { loadSettings, mustBeEqual, requestFields, saveSettings, settings } from "./settings.js";

const PROMPTS = ["Tell me a story about a curious fox.", "Tell me about a dog who found a map.", "Tell me how the moon helped a little owl."];

const chats = new Chats();
let chat = newChat(); // that is shown
let views = new Map(); // its Answers → AnswerViews
let shown = null; // Answer whose figures are shown
let props = null;
let running = null; // {stop: AbortController, chat}: a request is under way, at most one
const removed = new Set(); // ids of chats that are not to come back

// ---- what a request is made of --------------------------------------------------------------------------------------

// The request for the answer at messages[n].
function bodyFor(messages, n, fields) {
    const { system, ...others } = fields;
    const said = messages.slice(0, n).map((message) => ({ role: message.role, content: message.content ?? message.answer.text }));
    return {
        messages: [...(system ? [{ role: "system", content: system }] : []), ...said.filter((message) => message.content !== "")],
        ...others,
        stream: true,
        stream_options: { include_usage: true },
        auspex: { origins: true },
    };
}

// Lets an Answer of a chat grow. onGrow() is called at most once per frame while it does, and onWait as AnswerView's wait().
async function grow(answer, mine, body, onGrow, onWait) {
    const stop = new AbortController();
    running = { stop, chat: mine };
    showBusy();
    let isDue = false;
    const draw = () => {
        isDue = false;
        if (running?.stop === stop) onGrow();
    };
    onWait("Asking …");
    setStatus("Asking …");
    try {
        for await (const event of askForChat(body, stop.signal)) {
            if (event.queued !== undefined) {
                const text = event.queued > 0 ? `Waiting: number ${event.queued} in the queue` : "Next in the queue";
                onWait(text);
                setStatus(text);
            } else if (event.prompt) {
                onWait(`Reading the prompt: ${event.prompt[0]} of ${event.prompt[1]} tokens`, event.prompt);
                setStatus("Reading the prompt");
            } else {
                if (answer.firstAt === null) setStatus("Writing");
                answer.add(event.chunk);
                if (answer.firstAt !== null) onWait(null);
                if (!isDue) requestAnimationFrame(draw);
                isDue = true;
            }
        }
        answer.finish ??= "stop";
        setStatus(`Done: ${plural(answer.nTokens, "token")}${answer.perSecond ? ` at ${speed(answer.perSecond)}` : ""}`);
    } catch (error) {
        if (error.name === "AbortError") {
            answer.finish = "stopped";
            setStatus("Stopped");
        } else {
            if (!(error instanceof ServerError)) console.error(error);
            answer.error = messageOf(error);
            answer.needsKey = error.status === 401;
            setStatus(answer.error);
        }
    } finally {
        running = null;
        onWait(null);
        showBusy();
    }
}

function messageOf(error) {
    if (!(error instanceof ServerError)) return "The page made a mistake; its console tells more.";
    const again = error.retryAfter > 0 ? ` Try again in ${error.retryAfter} s, it says.` : "";
    const what = { 401: "The server wants a key: ", 429: "The server is full: ", 503: "The server cannot answer now: " }[error.status] ?? "";
    return `${what}${error.message.replace(/[.\s]*$/, "")}.${again}`;
}

// ---- what the user does ---------------------------------------------------------------------------------------------

async function send(text) {
    if (running || text.trim() === "") return false;
    chat.messages.push({ role: "user", content: text });
    await answerLast();
    return true;
}

// Asks for the answer to the last message of the chat that is shown.
async function answerLast() {
    const mine = chat;
    const answer = new Answer();
    answer.request = { ...requestFields(), ...(settings.system ? { system: settings.system } : {}) };
    const body = bodyFor(mine.messages, mine.messages.length, answer.request);
    mine.messages.push({ role: "assistant", answer });
    shown = answer;
    keep(mine);
    showChat();
    talk.scrollTop = talk.scrollHeight;
    await grow(
        answer,
        mine,
        body,
        () => drawAnswer(answer),
        (...wait) => views.get(answer)?.wait(...wait),
    );
    drawAnswer(answer);
    keep(mine);
    if (answer.needsKey) askForKey(() => goOnWithKey(answer));
    return answer;
}

function goOnWithKey(answer) {
    if (!props) showProps();
    again(answer);
}

function again(answer) {
    const n = chat.messages.findIndex((message) => message.answer === answer);
    if (running || n < 0) return;
    chat.messages.length = n;
    message.focus();
    return answerLast();
}

function edit(n, text) {
    if (running) return;
    chat.messages.length = n;
    message.focus();
    send(text);
}

// "Same text without drafts?"
async function compare(answer) {
    const mine = chat;
    const n = mine.messages.findIndex((message) => message.answer === answer);
    if (running || n < 0) return;
    const { drafter, ...fields } = answer.request ?? {};
    fields.draft_len = 0;
    if (answer.finish === "stopped") fields.max_tokens = answer.tokens.length;
    const plain = new Answer();
    const view = () => views.get(answer);
    await grow(plain, mine, bodyFor(mine.messages, n, fields), () => view()?.comparison(plain), () => {});
    if (plain.finish === "stopped") return view()?.comparison();
    // of a stopped answer, what had come of its last character may be missing
    const isEqual = plain.text === answer.text || (answer.finish === "stopped" && plain.text.startsWith(answer.text));
    answer.plain = plain.error ? { text: "", error: plain.error } : { text: plain.text, isEqual, perSecond: plain.perSecond, n: plain.nTokens };
    view()?.comparison();
    if (!plain.error) setStatus(isEqual ? "The text without drafts is the same." : "The text without drafts is another.");
    if (shown === answer) drawFigures(answer);
    follow(true);
    keep(mine);
}

async function askCoupled(answer) {
    settings.acceptance = "coupled";
    saveSettings();
    const next = await again(answer);
    if (next?.finish && !next.error) await compare(next);
}

function startChat() {
    chat = newChat();
    shown = null;
    showChat();
    message.focus();
}

function keep(one) {
    if (removed.has(one.id)) return;
    if (!chats.keep(one)) setStatus("This chat is too long to be kept in this browser.");
    showList();
}

// ---- what is shown --------------------------------------------------------------------------------------------------

const talk = byId("talk");
const message = byId("message");

const setStatus = (text) => setText(byId("status"), text);

function showChat() {
    views = new Map();
    const elements = chat.messages.map((one, n) => {
        if (one.role === "user") return new UserView(one.content, { edit: (text) => edit(n, text) }).element;
        const { answer } = one;
        const actions = {
            point: drawPointed,
            figures: () => showFigures(answer),
            again: () => again(answer),
            compare: () => compare(answer),
            coupled: () => askCoupled(answer),
            view: (name) => ((settings.view = name), saveSettings()),
            key: () => askForKey(() => goOnWithKey(answer)),
        };
        const view = new AnswerView(answer, { view: settings.view || "tokens", mustBeEqual: () => mustBeEqual(answer.request, props), actions });
        views.set(answer, view);
        return view.element;
    });
    talk.replaceChildren(...(elements.length > 0 ? elements : [welcome()]));
    const last = chat.messages.at(-1)?.answer ?? null;
    showFigures(views.has(shown) ? shown : last);
    showList();
    showBusy();
}

function welcome() {
    const prompts = PROMPTS.map((text) => make("button", { type: "button", class: "prompt", onclick: () => send(text) }, text));
    const mark = (origin, text) => make("span", { class: `token ${origin} first last` }, text);
    return make(
        "div",
        { class: "welcome" },
        make("h2", {}, "See who writes each word"),
        make("p", {}, "A cheap draft runs a few tokens ahead; the model checks them all in one pass. What it says stays the same, and comes sooner."),
        make("p", { class: "example" },
            mark("accepted", "Drafts that it accepts"), " look like this, ", mark("correction", "its corrections"), " like this, and so does ",
            mark("bonus", "the bonus"), " that it adds where it accepted all."),
        make("div", { class: "prompts" }, ...prompts),
    );
}

function drawAnswer(answer) {
    follow(false, () => views.get(answer)?.update(!running));
    if (shown === answer) drawFigures(answer);
}

// Keeps the end of the conversation in sight, if it was before the change, or is asked for.
function follow(isWanted, change = () => {}) {
    const wasThere = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 60;
    change();
    if (wasThere || isWanted) talk.scrollTop = talk.scrollHeight;
}

function showFigures(answer) {
    shown = answer;
    const last = chat.messages.at(-1)?.answer;
    for (const [one, view] of views) view.place(one === last, one === answer, views.size > 1);
    drawFigures(answer);
    drawPointed(null);
}

function showList() {
    const items = chats.list.map((one) => {
        const open = make("button", { type: "button", class: "open", onclick: () => openChat(one.id) }, make("bdi", {}, titleOf(one)));
        if (one.id === chat.id) open.setAttribute("aria-current", "true");
        const remove = make("button", { type: "button", class: "remove", "aria-label": `Delete “${titleOf(one)}”` }, "×");
        remove.addEventListener("click", () => removeChat(one.id, remove));
        return make("li", {}, open, remove);
    });
    byId("chat-list").replaceChildren(...items);
}

function openChat(id) {
    chat = running?.chat.id === id ? running.chat : (chats.find(id) ?? newChat());
    shown = null;
    showChat();
    openList(false);
    talk.scrollTop = talk.scrollHeight;
    message.focus();
}

// The second click on its button removes a chat.
function removeChat(id, element) {
    if (!element.classList.contains("sure")) {
        element.classList.add("sure");
        setText(element, "Delete?");
        element.addEventListener("blur", () => (element.classList.remove("sure"), setText(element, "×")), { once: true });
        return;
    }
    removed.add(id);
    chats.remove(id);
    if (running?.chat.id === id) running.stop.abort();
    if (chat.id === id) startChat();
    else showList();
    byId("new-chat").focus();
}

function openList(isOpen) {
    document.body.classList.toggle("list-open", isOpen);
    byId("menu").setAttribute("aria-expanded", isOpen);
}

function showBusy() {
    document.body.classList.toggle("busy", running !== null);
    const hadFocus = document.activeElement === byId("stop");
    byId("send").hidden = running !== null;
    byId("stop").hidden = running === null;
    if (hadFocus && !running) message.focus();
    for (const element of document.querySelectorAll("[data-idle]")) element.setAttribute("aria-disabled", running !== null);
}

const THEMES = { "": "system", light: "light", dark: "dark" };
function showTheme() {
    document.documentElement.dataset.theme = settings.theme;
    setText(byId("theme").querySelector("span"), `: ${THEMES[settings.theme]}`);
}

async function showProps() {
    try {
        props = await getProps();
        const where = props.device ? ` on ${props.device}` : "";
        setText(byId("model"), `${props.model ?? "a model"}${where}`);
    } catch (error) {
        setText(byId("model"), error.status === 503 ? error.message : "");
        if (error.status === 401) askForKey(showProps);
        else if (error.status === 503) setTimeout(showProps, 1000 * (error.retryAfter ?? 1)); // it is loading
        else setStatus(messageOf(error));
    }
}

// ---- what listens ---------------------------------------------------------------------------------------------------

function sendMessage() {
    const text = message.value;
    if (running || text.trim() === "") return;
    message.value = "";
    message.focus();
    send(text);
}

byId("ask").addEventListener("submit", (event) => (event.preventDefault(), sendMessage()));
byId("stop").addEventListener("click", () => running?.stop.abort());
message.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        sendMessage();
    } else if (event.key === "ArrowUp" && message.value === "" && !running) {
        const edits = [...talk.querySelectorAll(".user .tools button[data-idle]")];
        if (edits.length > 0) event.preventDefault();
        edits.at(-1)?.click();
    }
});
document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
        if (document.body.classList.contains("list-open")) (openList(false), byId("menu").focus());
        else running?.stop.abort();
    } else if (event.altKey && event.code === "KeyN") {
        event.preventDefault();
        startChat();
    }
});
byId("new-chat").addEventListener("click", () => (openList(false), startChat()));
byId("menu").addEventListener("click", () => openList(!document.body.classList.contains("list-open")));
byId("open-settings").addEventListener("click", () => openSettings(props));
byId("theme").addEventListener("click", () => {
    const names = Object.keys(THEMES);
    settings.theme = names[(names.indexOf(settings.theme) + 1) % names.length];
    saveSettings();
    showTheme();
});
byId("figures-toggle").addEventListener("click", (event) => {
    const button = event.currentTarget;
    const isOpen = button.getAttribute("aria-expanded") !== "true";
    button.setAttribute("aria-expanded", isOpen);
    document.body.classList.toggle("figures-open", isOpen);
});
byId("export").addEventListener("click", () => {
    const address = URL.createObjectURL(new Blob([chats.export()], { type: "application/json" }));
    make("a", { href: address, download: "auspex-chats.json" }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
});
byId("import").addEventListener("click", () => byId("import-file").click());
byId("import-file").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    try {
        setStatus(`${plural(chats.import(await file.text()), "chat")} imported`);
        showList();
    } catch (error) {
        setStatus(`${file.name} cannot be imported: ${error.message}`);
    }
    event.target.value = "";
});
addEventListener("pagehide", () => running && keep(running.chat));

loadSettings();
showTheme();
chats.load();
showChat();
showProps();
message.focus();

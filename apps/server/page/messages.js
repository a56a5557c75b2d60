// Shows messages: what the user wrote, which can be edited, and answers, which grow.
import { fixed, make, plural, setText, speed } from "./dom.js";
import { speedups } from "./figures.js";
import { renderMarkdown } from "./markdown.js";
import { TokensView } from "./tokens_view.js";

const kRedrawEvery = 200; // ms: Markdown of an answer that grows

const button = (text, onclick, attributes = {}) => make("button", { type: "button", class: "quiet", onclick, ...attributes }, text);

// actions: {edit(text)}
export class UserView {
    element = make("article", { class: "user", "aria-label": "You" });

    constructor(content, actions) {
        const body = make("div", { class: "said", dir: "auto" }, content);
        const tools = make("p", { class: "tools" }, button("Edit", () => this.edit(), { "data-idle": true }), copyButton(() => content));
        this.element.append(body, tools);
        this.edit = () => {
            if (document.body.classList.contains("busy")) return;
            const field = make("textarea", { "aria-label": "Edited message", rows: 3, dir: "auto" });
            field.value = content;
            const close = () => {
                form.replaceWith(body, tools);
                tools.querySelector("button").focus();
            };
            const send = () => field.value.trim() !== "" && actions.edit(field.value);
            const form = make(
                "form",
                { class: "editing", "aria-label": "Edit", onsubmit: (event) => (event.preventDefault(), send()) },
                field,
                make("p", { class: "small" }, "What follows this message is asked anew."),
                make("p", { class: "actions" }, button("Cancel", close), make("button", { type: "submit", class: "main" }, "Send again")),
            );
            form.addEventListener("keydown", (event) => {
                if (event.isComposing) return;
                if (event.key === "Escape") close();
                else if (event.key === "Enter" && !event.shiftKey && event.target === field) send();
                else return;
                event.preventDefault();
                event.stopPropagation();
            });
            tools.remove();
            body.replaceWith(form);
            field.focus();
        };
    }
}

// actions: {point(description), figures(), again(), compare(), coupled(), view(name), key()}; mustBeEqual(): whether the
// text without drafts has to be the same.
export class AnswerView {
    #answer;
    #actions;
    #mustBeEqual;
    #tokens;
    #text = make("div", { class: "text", dir: "auto" });
    #shownText = null;
    #drawnAt = 0;
    #view;
    #body = make("div", { class: "said" });
    #wait = make("div", { class: "waiting", hidden: true });
    #error = make("div", { class: "error", hidden: true });
    #plain = make("div", { class: "plain-answer", hidden: true });
    #isLast = false;
    #isOneOfMany = false;
    #line = make("span", { class: "line" });
    #tools;
    element = make("article", { class: "answer", "aria-label": "Answer" });

    constructor(answer, { view, mustBeEqual, actions }) {
        this.#answer = answer;
        this.#actions = actions;
        this.#mustBeEqual = mustBeEqual;
        this.#view = view;
        this.#tokens = new TokensView(answer, actions.point);
        const choose = (name) => () => (this.show(name), actions.view(name));
        this.#tools = {
            tokens: button("Tokens", choose("tokens")),
            text: button("Text", choose("text")),
            copy: copyButton(() => answer.text),
            again: button("Regenerate", actions.again, { "data-idle": true }),
            compare: button("Same text without drafts?", actions.compare, { "data-idle": true, class: "quiet asks" }),
            figures: button("Figures", actions.figures),
        };
        const { tokens, text, ...others } = this.#tools;
        const views = make("span", { class: "views", role: "group", "aria-label": "View" }, tokens, text);
        this.element.append(this.#wait, this.#body, this.#error, this.#plain, make("p", { class: "tools" }, views, ...Object.values(others), this.#line));
        this.show(view);
    }

    show(view) {
        this.#view = view;
        this.update(true);
    }

    // isLast: it can be asked for again; isShown: the figures are its; isOneOfMany: others have figures, too.
    place(isLast, isShown, isOneOfMany) {
        this.#isLast = isLast;
        this.#isOneOfMany = isOneOfMany;
        this.update();
        this.comparison();
        this.#tools.figures.setAttribute("aria-pressed", isShown);
        this.element.classList.toggle("shown", isShown);
    }

    // text: why nothing comes yet, null: it comes; [done, total]: of the prompt.
    wait(text, progress = null) {
        this.#wait.hidden = text === null;
        const bar = progress ? make("progress", { max: progress[1], value: progress[0], "aria-label": "Prompt read" }) : null;
        if (text !== null) this.#wait.replaceChildren(text, ...(bar ? [bar] : []));
    }

    // Draws what came. isAll: at once, however often.
    update(isAll = false) {
        const answer = this.#answer;
        const hasTokens = answer.tokens.length > 0;
        const isText = this.#view === "text" || !hasTokens;
        if (isText) this.#drawText(isAll);
        else this.#tokens.update();
        const element = isText ? this.#text : this.#tokens.element;
        if (this.#body.firstChild !== element) this.#body.replaceChildren(element);
        this.#tools.tokens.setAttribute("aria-pressed", !isText);
        this.#tools.text.setAttribute("aria-pressed", isText);
        this.#tools.tokens.parentElement.hidden = !hasTokens;

        this.#error.hidden = answer.error === null;
        if (answer.error !== null && !this.#error.hasChildNodes()) this.#drawError();
        const isDone = answer.finish !== null;
        this.#tools.copy.hidden = answer.text === "";
        this.#tools.compare.hidden = !isDone || answer.text === "" || !hasTokens || answer.request?.draft_len === 0;
        this.#tools.figures.hidden = !hasTokens || !this.#isOneOfMany;
        this.#tools.again.hidden = !this.#isLast || answer.error !== null;
        const per = answer.perSecond;
        const end = { length: ", cut at the limit", stopped: ", stopped" }[answer.finish] ?? "";
        if (answer.nTokens === 0) setText(this.#line, answer.finish === "stopped" ? "stopped" : "");
        else setText(this.#line, `${plural(answer.nTokens, "token")}${per ? ` at ${speed(per)}` : ""}${end}`);
    }

    #drawText(isAll) {
        const now = performance.now();
        if (this.#shownText === this.#answer.text || (!isAll && now - this.#drawnAt < kRedrawEvery)) return;
        this.#text.replaceChildren(renderMarkdown(this.#answer.text));
        this.#shownText = this.#answer.text;
        this.#drawnAt = now;
    }

    #drawError() {
        const again = this.#answer.needsKey ? button("Enter a key", this.#actions.key) : button("Try again", this.#actions.again, { "data-idle": true });
        this.#error.replaceChildren(make("p", {}, this.#answer.error), make("p", { class: "actions" }, again));
    }

    // The same request without drafts; growing: that Answer while it comes.
    comparison(growing = null) {
        const told = growing ? null : this.#answer.plain;
        this.#plain.hidden = !growing && !told;
        this.#plain.classList.toggle("equal", Boolean(told?.isEqual));
        if (growing) {
            const at = firstDifference(growing.text, this.#answer.text);
            const soFar = at < 0 || at >= growing.text.length ? "equal so far" : `different from character ${at + 1} on`;
            this.#plain.replaceChildren(make("p", {}, `Asking again without drafts: ${plural(growing.tokens.length, "token")}, ${soFar}.`));
        } else if (told) {
            this.#plain.replaceChildren(...this.#tellComparison(told));
        }
    }

    #tellComparison(plain) {
        if (plain.error) return [make("p", {}, `The answer without drafts did not come: ${plain.error}`)];
        const { measured } = speedups(this.#answer);
        const fast = measured ? ` Without drafts it came at ${speed(plain.perSecond)}: drafts made it ${fixed(measured, 2)} times as fast.` : "";
        if (plain.isEqual) return [make("p", {}, make("b", {}, "Yes, the same text, to the last character."), fast)];
        const at = firstDifference(plain.text, this.#answer.text);
        const parts = [make("p", {}, make("b", {}, `No, it differs from character ${at + 1} on. `), this.#whyDifferent(), fast)];
        if (!this.#mustBeEqual() && this.#isLast)
            parts.push(make("p", { class: "actions" }, button("Ask again, coupled", this.#actions.coupled, { "data-idle": true })));
        const marked = make("div", { class: "other", dir: "auto" }, plain.text.slice(0, at), make("mark", {}, plain.text.slice(at) || " (it ends here)"));
        parts.push(make("details", {}, make("summary", {}, "The text without drafts"), marked));
        return parts;
    }

    #whyDifferent() {
        if (this.#mustBeEqual())
            return `It should be the same: please report this, with the seed ${this.#answer.request?.seed ?? "of your settings"}.`;
        return (
            "That is as it should be: with “rejection”, above temperature 0, drafts keep the distribution of each token, not the " +
            "dice that were thrown for it. Both are equally the model's. With “coupled” acceptance even the text is the same."
        );
    }
}

// -1: they are equal. Else where they part; a text that ends first parts there.
export function firstDifference(a, b) {
    if (a === b) return -1;
    const n = Math.min(a.length, b.length);
    let i = 0;
    while (i < n && a[i] === b[i]) ++i;
    return i;
}

function copyButton(textOf) {
    const element = button("Copy", async () => {
        setText(element, (await copy(textOf())) ? "Copied" : "Could not copy");
        setTimeout(() => setText(element, "Copy"), 1500);
    });
    return element;
}

async function copy(text) {
    try {
        await navigator.clipboard.writeText(text);
        return true;
    } catch {
        // Pages from other machines, without TLS, have the old way only.
        const before = document.activeElement;
        const field = make("textarea", { class: "unseen", "aria-hidden": "true" });
        field.value = text;
        document.body.append(field);
        field.select();
        const isDone = document.execCommand("copy");
        field.remove();
        before?.focus();
        return isDone;
    }
}

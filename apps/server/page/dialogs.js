// The settings and the question for a key.
import { byId, make } from "./dom.js";
import { getKey, setKey } from "./server.js";
import { canDraft, saveSettings, settings, usualFields } from "./settings.js";

const DRAFTERS = {
    "": "",
    auto: "auto: whoever is fastest",
    model: "model: the small one",
    self: "self: the model in fewer bits",
    ngram: "ngram: what followed most often",
    lookup: "lookup: what followed last",
    hybrid: "hybrid: ngram and model",
};

const form = byId("settings-form");

// props: of the server; null: not known.
export function openSettings(props) {
    const usual = usualFields(props);
    const most = props?.max_draft_len ?? 8;
    const lengths = ["", "auto", ...Array.from({ length: most + 1 }, (_, i) => String(i))];
    const asServer = (name) => (props ? `as the server: ${usual[name] ?? "auto"}` : "as the server");
    const names = { "": asServer("draft_len"), auto: "auto", 0: "0: no drafts" };
    form.elements.draft_len.replaceChildren(...lengths.map((value) => make("option", { value }, names[value] ?? value)));
    form.elements.drafter.replaceChildren(
        ...Object.entries(DRAFTERS).map(([value, text]) => make("option", { value, disabled: !canDraft(value, props) }, value ? text : asServer("drafter"))),
    );
    form.elements.acceptance.options[0].text = asServer("acceptance");
    for (const field of form.elements) {
        if (!(field.name in settings)) continue;
        field.value = settings[field.name];
        if (usual[field.name] !== undefined && field.name !== "seed" && field.type === "number") field.placeholder = usual[field.name] ?? "";
    }
    byId("set-key").value = getKey();
    byId("settings").showModal();
}

form.addEventListener("submit", (event) => {
    event.preventDefault();
    for (const field of form.elements) if (field.name in settings) settings[field.name] = field.value.trim();
    setKey(byId("set-key").value.trim());
    saveSettings();
    byId("settings").close();
});

byId("reset-settings").addEventListener("click", () => {
    for (const field of form.elements) if (field.name in settings) field.value = "";
});

// Asks for a key; then calls goOn, unless the user does not want to.
let afterKey = null;
export function askForKey(goOn) {
    afterKey = goOn;
    byId("key").value = "";
    byId("key-dialog").showModal();
}

byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    setKey(byId("key").value.trim());
    byId("key-dialog").close();
    afterKey?.();
});
byId("key-cancel").addEventListener("click", () => byId("key-dialog").close());

// What the user has set. An empty field is not sent: the server's own value holds.

const KEY = "auspex.settings";

// name → how its field is read; in the order of the form.
const NUMBERS = { temperature: Number, top_p: Number, top_k: Number, min_p: Number, max_tokens: Number, seed: Number };
const CHOICES = {
    draft_len: /^(|auto|\d{1,2})$/,
    drafter: /^[a-z]*$/,
    acceptance: /^(|rejection|coupled)$/,
    theme: /^(|light|dark)$/,
    view: /^(|tokens|text)$/,
};

export const settings = { system: "", ...Object.fromEntries([...Object.keys(NUMBERS), ...Object.keys(CHOICES)].map((name) => [name, ""])) };

export function loadSettings() {
    try {
        takeSettings(JSON.parse(localStorage.getItem(KEY) ?? "{}"));
    } catch {
        // as they are
    }
}

// Of an object from anywhere: what it has that a field may hold.
export function takeSettings(from) {
    for (const name of Object.keys(settings)) {
        const value = from?.[name];
        if (typeof value === "string" && isPossible(name, value)) settings[name] = value;
    }
}

function isPossible(name, value) {
    if (name === "system") return value.length <= 100000;
    return name in NUMBERS ? value === "" || Number.isFinite(Number(value)) : CHOICES[name].test(value);
}

export function saveSettings() {
    try {
        localStorage.setItem(KEY, JSON.stringify(settings));
    } catch {
        // full or forbidden: they hold until the page is left
    }
}

// The fields of a request. A seed that was not set is drawn here, so that the same text can be asked for again.
export function requestFields() {
    const fields = {};
    for (const name of Object.keys(NUMBERS)) if (settings[name] !== "") fields[name] = Number(settings[name]);
    fields.seed ??= crypto.getRandomValues(new Uint32Array(1))[0];
    if (settings.draft_len !== "") fields.draft_len = settings.draft_len === "auto" ? "auto" : Number(settings.draft_len);
    for (const name of ["drafter", "acceptance"]) if (settings[name] !== "") fields[name] = settings[name];
    return fields;
}

// What holds where a request says nothing, as the server has it. props: null where it is not known.
export function usualFields(props) {
    const usual = props?.default_generation_settings ?? {};
    return { temperature: 0, acceptance: "rejection", ...usual, ...usual.params };
}

// Whether the same request without drafts has to give the same text.
export function mustBeEqual(request, props) {
    const { temperature, acceptance } = { ...usualFields(props), ...request };
    return temperature === 0 || acceptance === "coupled";
}

// Whether requests may name this one.
export function canDraft(drafter, props) {
    return drafter === "" || !Array.isArray(props?.drafters) || props.drafters.includes(drafter);
}

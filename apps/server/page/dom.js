// Builds elements. Text gets in as text only: nothing here, or anywhere on the page, parses HTML.

// make("button", {class: "quiet", "aria-label": "Close", onclick: close}, "×"): an element with attributes, listeners
// (on…) and children (elements, or texts).
export function make(tag, attributes = {}, ...children) {
    return furnish(document.createElement(tag), attributes, children);
}

export function makeSvg(tag, attributes = {}, ...children) {
    return furnish(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function furnish(element, attributes, children) {
    for (const [name, value] of Object.entries(attributes)) {
        if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
        else if (value === true) element.setAttribute(name, "");
        else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children.filter((child) => child !== null && child !== undefined));
    return element;
}

export const byId = (id) => document.getElementById(id);

// Changes the document only where the text differs, so that nothing that looks on is told twice.
export function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

// "1,234"; "12.3"
export const whole = (n) => Math.round(n).toLocaleString("en");
export const fixed = (n, digits) => n.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
export const speed = (n) => `${n < 100 ? fixed(n, 1) : whole(n)} tok/s`;
export const plural = (n, what) => `${whole(n)} ${what}${n === 1 ? "" : "s"}`;

// Checks of the page as it is shown now. Each gives a list of faults. They run inside the page (page_test.py).

const isVisible = (element) => element.checkVisibility({ checkOpacity: false, checkVisibilityCSS: true });
const nameOf = (element) => `<${element.localName}${element.id ? "#" + element.id : ""} class="${element.getAttribute("class") ?? ""}"> ${element.textContent.trim().slice(0, 40)}`;

// Nothing reaches over the right edge, and nothing scrolls sideways but code.
function fits(where) {
    const faults = [];
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth > width) faults.push(`${where}: the document is ${document.documentElement.scrollWidth} wide, the window ${width}`);
    for (const element of document.querySelectorAll("body, header, nav, main, aside, #talk, dialog[open]"))
        if (isVisible(element) && element.scrollWidth > element.clientWidth + 1) faults.push(`${where}: ${nameOf(element)} scrolls sideways`);
    for (const element of document.querySelectorAll("button, input, select, textarea, article, h1, h2, svg.chart")) {
        const box = element.getBoundingClientRect();
        if (isVisible(element) && box.width > 1 && (box.right > width + 0.5 || box.left < -0.5)) faults.push(`${where}: ${nameOf(element)} from ${box.left} to ${box.right} of ${width}`);
    }
    return faults;
}

// Every text that is shown has a contrast of 4.5 with what is behind it.
function has_contrast(where) {
    const faults = [];
    const walker = document.createTreeWalker(document.querySelector("dialog[open]") ?? document.body, NodeFilter.SHOW_TEXT);
    let nChecked = 0;
    for (let text = walker.nextNode(); text; text = walker.nextNode()) {
        const element = text.parentElement;
        if (text.data.trim() === "" || !isVisible(element) || element.closest("title, script, option")) continue;
        const ratio = contrast(rgb(getComputedStyle(element).color), behind(element));
        ++nChecked;
        if (!(ratio >= 4.5)) faults.push(`${where}: ${ratio.toFixed(2)} of ${nameOf(element)}`);
    }
    for (const element of document.querySelectorAll("input, textarea"))
        if (isVisible(element) && element.placeholder && contrast(rgb(getComputedStyle(element, "::placeholder").color), behind(element)) < 4.5) faults.push(`${where}: placeholder of ${nameOf(element)}`);
    if (nChecked < 10) faults.push(`${where}: only ${nChecked} texts`);
    return faults;
}

function rgb(color) {
    const numbers = color.match(/^rgba?\(([\d.]+), ([\d.]+), ([\d.]+)(?:, ([\d.]+))?\)$/);
    return numbers ? numbers.slice(1).map((n) => (n === undefined ? 1 : Number(n))) : [NaN, NaN, NaN, 1];
}

function behind(element) {
    for (let at = element; at; at = at.parentElement) {
        const color = rgb(getComputedStyle(at).backgroundColor);
        if (color[3] === 1) return color;
        if (color[3] > 0) return [NaN, NaN, NaN, 1]; // half transparent: not known
    }
    return [255, 255, 255, 1];
}

function contrast(a, b) {
    const linear = (n) => (n / 255 <= 0.04045 ? n / 255 / 12.92 : ((n / 255 + 0.055) / 1.055) ** 2.4);
    const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b) + 0.05;
    const [x, y] = [light(a), light(b)];
    return Math.max(x, y) / Math.min(x, y);
}

// Language, landmarks, one h1, headings without gaps, ids once, fields with labels, things to click large enough.
function is_accessible(isWhole) {
    const faults = [];
    const count = (selector) => [...document.querySelectorAll(selector)].filter(isVisible).length;
    if (document.documentElement.lang !== "en") faults.push("no language");
    if (document.title === "") faults.push("no title");
    if (isWhole)
        for (const landmark of ["header", "main", "nav[aria-label]", "aside[aria-label]", "h1", "form[aria-label]"])
            if (count(landmark) !== 1) faults.push(`${count(landmark)} × ${landmark}`);
    const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
    for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) faults.push(`the id ${id} is there twice`);
    for (const name of ["aria-controls", "aria-describedby", "aria-labelledby", "for"])
        for (const element of document.querySelectorAll(`[${name}]`)) if (!document.getElementById(element.getAttribute(name))) faults.push(`${name} of ${nameOf(element)} leads nowhere`);
    let level = 0;
    for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
        if (!isVisible(heading) || heading.closest("dialog")) continue;
        const next = Number(heading.localName[1]);
        if (next > level + 1 && !heading.closest(".text")) faults.push(`${nameOf(heading)} after h${level}`);
        level = next;
    }
    for (const field of document.querySelectorAll("input, select, textarea"))
        if (field.labels.length === 0 && !field.ariaLabel) faults.push(`${nameOf(field)} has no label`);
    for (const element of document.querySelectorAll("button, input, select, textarea")) {
        const box = element.getBoundingClientRect();
        if (isVisible(element) && (box.height < 24 || box.width < 24)) faults.push(`${nameOf(element)} is ${box.width} × ${box.height}`);
    }
    const live = [...document.querySelectorAll("[aria-live], [role=status], [role=alert], [role=log]")].map((element) => element.id);
    if (live.join() !== "status" || document.getElementById("status").ariaLive !== "polite") faults.push(`live: ${live}`);
    for (const element of document.querySelectorAll("*")) {
        if (element.hasAttribute("style")) faults.push(`${nameOf(element)} has a style of its own`);
        if (element.tabIndex > 0) faults.push(`${nameOf(element)} changes the order of Tab`);
    }
    return faults;
}

// Markdown as models write it: paragraphs, headings, lists, quotes, fences, emphasis, inline code, links to the web.
// It makes elements and sets their text; what it does not know stays text. Time grows linearly with the text, because
// a block of more than kLongest characters is not searched for emphasis.
import { make } from "./dom.js";

const kLongest = 20000;
const kDeepest = 4; // emphasis in emphasis

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*)$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const ITEM = /^(\s{0,12})(?:([-*+])|(\d{1,9})[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;

export function renderMarkdown(text) {
    const fragment = document.createDocumentFragment();
    fragment.append(...blocksOf(text.split(/\r?\n/), 0));
    return fragment;
}

function blocksOf(lines, depth) {
    const blocks = [];
    for (let i = 0; i < lines.length; ) {
        const line = lines[i].length > kLongest ? "" : lines[i]; // such a line is a paragraph
        const fence = FENCE.exec(line);
        const heading = HEADING.exec(line);
        if (fence) {
            const end = endOfFence(lines, i + 1, fence[1]);
            blocks.push(codeBlock(lines.slice(i + 1, end).join("\n"), fence[2]));
            i = end + 1;
        } else if (heading) {
            // the page has the first levels
            blocks.push(make(`h${Math.min(heading[1].length + 2, 6)}`, {}, ...inline(heading[2].replace(/\s#+\s*$/, ""))));
            ++i;
        } else if (RULE.test(line)) {
            blocks.push(make("hr"));
            ++i;
        } else if (ITEM.test(line)) {
            let end = i;
            while (end < lines.length && belongsToList(lines, end)) ++end;
            blocks.push(...listsOf(lines.slice(i, end)));
            i = end;
        } else if (QUOTE.test(line) && depth < kDeepest) {
            const quoted = [];
            for (; i < lines.length && QUOTE.test(lines[i]); ++i) quoted.push(QUOTE.exec(lines[i])[1]);
            blocks.push(make("blockquote", {}, ...blocksOf(quoted, depth + 1)));
        } else if (lines[i].trim() === "") {
            ++i;
        } else {
            const first = i++;
            while (i < lines.length && lines[i].trim() !== "" && !beginsBlock(lines[i])) ++i;
            blocks.push(make("p", {}, ...inline(lines.slice(first, i).join("\n"))));
        }
    }
    return blocks;
}

function beginsBlock(line) {
    return line.length <= kLongest && [FENCE, HEADING, RULE, ITEM, QUOTE].some((pattern) => pattern.test(line));
}

function endOfFence(lines, from, mark) {
    for (let i = from; i < lines.length; ++i) {
        const line = lines[i].trim();
        if (line.length >= mark.length && line === mark[0].repeat(line.length)) return i;
    }
    return lines.length; // still being written
}

function codeBlock(code, language) {
    const name = language ? make("span", { class: "language" }, language) : null;
    return make("pre", { tabindex: "0", role: "group", "aria-label": language ? `Code, ${language}` : "Code" }, name, make("code", {}, code));
}

// An item, or what is indented beneath one.
function belongsToList(lines, i) {
    return ITEM.test(lines[i]) || (/^\s{2,}\S/.test(lines[i]) && lines[i].length <= kLongest);
}

// Items that are further in than the one before are its own list; depth follows the indentation.
function listsOf(lines) {
    const tops = [];
    const open = []; // {indent, list, item}
    for (const line of lines) {
        const [, space, bullet, number, text] = ITEM.exec(line) ?? [];
        if (text === undefined) {
            open.at(-1).item.append("\n", ...inline(line.trim()));
            continue;
        }
        while (open.length > 1 && space.length < open.at(-1).indent) open.pop();
        const isInside = open.length > 0 && space.length > open.at(-1).indent + 1 && open.length < kDeepest;
        if (open.length === 0 || isInside) {
            const list = bullet ? make("ul") : make("ol", { start: number });
            if (open.length === 0) tops.push(list);
            else open.at(-1).item.append(list);
            open.push({ indent: space.length, list, item: null });
        }
        const item = make("li", {}, ...inline(text));
        open.at(-1).list.append(item);
        open.at(-1).item = item;
    }
    return tops;
}

const LINK = /\[([^\]\n]{1,500})\]\(([^()\s]{1,2000})\)/y;

// Texts and elements of a block's text. A mark whose end was once not found is not looked for again, and one that was
// found is jumped over: the text is walked through once per depth.
function inline(text, depth = 0) {
    if (text.length > kLongest || depth > kDeepest) return [text];
    const parts = [];
    const hopeless = new Set();
    let done = 0;
    const take = (from, to, element) => {
        if (from > done) parts.push(text.slice(done, from));
        parts.push(element);
        return (done = to);
    };
    for (let i = 0; i < text.length; ) {
        const c = text[i];
        if (c === "`" || c === "*" || c === "_") {
            let run = 1;
            while (text[i + run] === c) ++run;
            const mark = c === "`" ? c.repeat(run) : c.repeat(Math.min(run, 2));
            const from = i + mark.length;
            const to = !hopeless.has(mark) && canOpen(text, i, mark) ? endOf(text, from, mark) : null;
            if (to === -1) hopeless.add(mark);
            if (to > 0) {
                const inner = text.slice(from, to);
                const element = c === "`" ? make("code", {}, inner) : make(mark.length === 2 ? "strong" : "em", {}, ...inline(inner, depth + 1));
                i = take(i, to + mark.length, element);
            } else {
                i += run;
            }
        } else if (c === "[") {
            LINK.lastIndex = i;
            const found = LINK.exec(text);
            const element = found && linkTo(found[2], found[1]);
            i = element ? take(i, i + found[0].length, element) : i + 1;
        } else {
            ++i;
        }
    }
    if (done < text.length) parts.push(text.slice(done));
    return parts;
}

const isSpace = (c) => c === undefined || /\s/.test(c);
const isLetter = (c) => c !== undefined && /[\p{L}\p{N}_]/u.test(c);

function canOpen(text, i, mark) {
    if (mark[0] === "`") return true;
    return !isSpace(text[i + mark.length]) && !(mark[0] === "_" && isLetter(text[i - 1])); // snake_case stays
}

// Where the mark comes again and may end what it began; -1: nowhere.
function endOf(text, from, mark) {
    const c = mark[0];
    for (let i = text.indexOf(mark, from + 1); i >= 0; i = text.indexOf(mark, i + 1)) {
        if (c !== "`" && mark.length === 2 && text[i + 2] === c) continue; // of "***" the last two
        const next = text[i + mark.length];
        const isAlone = mark.length === 2 && c !== "`" ? true : text[i - 1] !== c && next !== c;
        if (c === "`" ? isAlone : isAlone && !isSpace(text[i - 1]) && !(c === "_" && isLetter(next))) return i;
    }
    return -1;
}

// Only to the web: javascript:, data: and their like stay text.
function linkTo(address, label) {
    if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return null;
    return make("a", { href: address, title: address, target: "_blank", rel: "noopener noreferrer nofollow" }, label);
}

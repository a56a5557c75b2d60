// The figures of one answer, drawn anew whenever it has grown.
import { ACCEPTED, CORRECTION } from "./answer.js";
import { byId, fixed, make, makeSvg, plural, setText, speed, whole } from "./dom.js";
import { ORIGINS } from "./tokens_view.js";

const percent = (part, all) => `${Math.round((100 * part) / all)} %`;

// answer: null shows that there is none.
export function drawFigures(answer) {
    const n = answer?.tokens.length ?? 0;
    const counts = answer?.counts ?? [0, 0, 0, 0];
    const nTested = counts[ACCEPTED] + counts[CORRECTION];
    const nRounds = answer?.rounds.length ?? 0;
    const perSecond = answer?.perSecond ?? null;
    setText(byId("per-second"), perSecond === null ? "–" : perSecond < 100 ? fixed(perSecond, 1) : whole(perSecond));
    setText(byId("per-round"), nRounds > 0 ? fixed(n / nRounds, 2) : "–");
    setText(byId("accepted-share"), nTested > 0 ? percent(counts[ACCEPTED], nTested) : "–");
    setText(byId("figures-line"), perSecond === null ? "" : `${speed(perSecond)}${nTested > 0 ? `, ${percent(counts[ACCEPTED], nTested)} accepted, ${fixed(n / nRounds, 1)} a round` : ""}`);
    for (const count of document.querySelectorAll("[data-count]")) setText(count, whole(counts[Number(count.dataset.count)]));

    drawSpeedup(answer);
    drawPositions(answer?.positions ?? []);
    drawRounds(answer?.rounds ?? []);
    setText(byId("why"), whyOf(answer));
    drawAll(answer);
}

// What is pointed at in an answer (tokens_view.js); null: nothing.
export function drawPointed(description) {
    const element = byId("pointed");
    element.className = description === null ? "nothing" : ORIGINS[description.origin];
    if (description === null) setText(element, "Point at a word of an answer to see which round it came in.");
    else element.replaceChildren(make("b", {}, description.title), make("br"), description.text);
}

// Measured: this answer's speed by that of the same request without drafts.
export function speedups(answer) {
    const expected = answer?.speculation?.predicted_speedup;
    const mine = answer?.timings?.predicted_per_second;
    const plain = answer?.plain?.perSecond;
    return { expected: expected > 0 ? expected : null, measured: mine > 0 && plain > 0 ? mine / plain : null };
}

function drawSpeedup(answer) {
    const { expected, measured } = speedups(answer);
    const end = Math.max(2, expected ?? 0, measured ?? 0);
    for (const [id, value] of [["expected", expected], ["measured", measured]]) {
        setText(byId(id), value === null ? "–" : `${fixed(value, 2)}×`);
        const at = (x) => (200 * x) / end;
        byId(`${id}-bar`).replaceChildren(
            makeSvg("rect", { class: "track", width: 200, height: 10, rx: 2 }),
            value === null ? "" : makeSvg("rect", { class: id, width: at(value), height: 10, rx: 2 }),
            makeSvg("rect", { class: "one", x: at(1) - 0.5, width: 1.5, height: 10 }),
        );
    }
    const note = measured !== null ? "The line is 1×: no gain." : "Not measured yet: “Same text without drafts?” beneath an answer measures it.";
    setText(byId("measured-note"), note);
}

function drawPositions(positions) {
    const chart = byId("positions");
    const told = positions.map(({ accepted, tested }, i) => `${i + 1}: ${accepted} of ${tested}`);
    chart.setAttribute("aria-label", positions.length > 0 ? `Accepted of tested drafts, by position. ${told.join(", ")}` : "No drafts yet");
    const n = Math.max(positions.length, 4);
    const step = 280 / n;
    const width = Math.min(step - 6, 34);
    chart.replaceChildren(
        ...Array.from({ length: n }, (_, i) => {
            const { accepted, tested } = positions[i] ?? { accepted: 0, tested: 0 };
            const share = tested > 0 ? accepted / tested : 0;
            const x = step * i + (step - width) / 2;
            const middle = { x: step * (i + 0.5), "text-anchor": "middle" };
            return makeSvg(
                "g",
                { "data-position": i + 1, "data-accepted": accepted, "data-tested": tested },
                makeSvg("title", {}, `Position ${i + 1}: ${accepted} of ${tested} accepted`),
                makeSvg("rect", { class: "track", x, y: 16, width, height: 44, rx: 3 }),
                makeSvg("rect", { class: "accepted", x, y: 60 - 44 * share, width, height: 44 * share, rx: 3 }),
                makeSvg("text", { ...middle, y: 11 }, tested > 0 ? `${Math.round(100 * share)}${n > 8 ? "" : " %"}` : ""),
                makeSvg("text", { ...middle, y: 75 }, `${i + 1}`),
            );
        }),
    );
}

// A column for each of the latest rounds: its accepted drafts, and on top the model's own token.
function drawRounds(rounds) {
    const kShown = 40;
    const chart = byId("rounds");
    const latest = rounds.slice(-kShown);
    const highest = Math.max(4, ...latest.map((round) => round.accepted + 1));
    const height = 46 / highest;
    const gap = Math.min(1.5, height / 4);
    chart.setAttribute("aria-label", latest.length > 0 ? `Tokens of the latest ${plural(latest.length, "round")}: ${latest.map((r) => r.accepted + (r.end >= 0)).join(" ")}` : "No rounds yet");
    chart.replaceChildren(
        ...latest.flatMap((round, i) => {
            const origins = [...Array(round.accepted).fill(ACCEPTED), ...(round.end >= 0 ? [round.end] : [])];
            return origins.map((origin, j) =>
                makeSvg("rect", { class: ORIGINS[origin], x: 7 * i, y: 46 - height * (j + 1), width: 5.5, height: height - gap, rx: 1.2 }),
            );
        }),
    );
}

function whyOf(answer) {
    if (!answer) return "–";
    const choice = answer.speculation?.choice;
    if (typeof choice === "string" && choice !== "") return choice;
    const asked = answer.request?.draft_len;
    if (Number.isInteger(asked)) return `The settings ask for ${asked === 0 ? "none" : plural(asked, "draft")} per round.`;
    if (!answer.speculation) return answer.finish || answer.error ? "The server did not say." : "Told when the answer is whole.";
    return "There was nothing to choose.";
}

function drawAll(answer) {
    const { usage, timings, speculation } = answer ?? {};
    const ms = (value) => (value >= 0 ? `${fixed(value, value < 100 ? 1 : 0)} ms` : null);
    const number = (value, digits) => (Number.isFinite(value) ? fixed(value, digits) : null);
    const histogram = Array.isArray(speculation?.accepted_histogram) ? speculation.accepted_histogram : [];
    const rows = {
        "Prompt": usage ? `${plural(usage.prompt_tokens, "token")}, ${whole(usage.prompt_tokens_details?.cached_tokens ?? 0)} from the cache` : null,
        "Reading it": timings ? ms(timings.prompt_ms) : null,
        "Answer": usage ? plural(usage.completion_tokens, "token") : null,
        "Writing it": timings ? ms(timings.predicted_ms) : null,
        "Drafts": timings?.draft_n > 0 ? `${whole(timings.draft_n_accepted)} of ${whole(timings.draft_n)} accepted, ${plural(timings.draft_rounds, "round")}` : null,
        "Rounds that accepted 0, 1, 2 …": histogram.length > 0 ? histogram.map((n) => whole(n)).join(" · ") : null,
        "α, overlap of the two models": number(speculation?.alpha, 3),
        "c, cost of a draft pass": number(speculation?.c, 3),
        "v, cost of a check": number(speculation?.v, 3),
        "Seed": answer?.request?.seed !== undefined ? String(answer.request.seed) : null,
    };
    const known = Object.entries(rows).filter(([, value]) => value !== null);
    byId("all-figures").replaceChildren(...known.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

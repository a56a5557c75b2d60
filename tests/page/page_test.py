#!/usr/bin/env python3
"""Uses the page in Chromium as people do: by mouse, by keys, on a narrow screen, in the dark.

    page_test.py [TEST …]              against the stand-in, which also refuses, breaks off and is hostile
    page_test.py --real URL [TEST …]   against a running `auspex serve`: what any server must pass

Needs Debian's packages chromium and chromium-driver (cmake/packages-long.txt). Ends with 77, "skipped", without them.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import unittest

import stand_in
import webdriver

REAL = None  # address of a real server
PROMPT = "Tell me a story about a curious fox."
ORIGINS = ["plain", "accepted", "correction", "bonus"]
CHECKS = (pathlib.Path(__file__).parent / "checks.js").read_text()

# Runs before the page's own code: notes violations of the policy, and every request with all that came for it.
WATCH = """
window.seen = {violations: [], asked: []};
document.addEventListener("securitypolicyviolation", (event) => seen.violations.push(event.violatedDirective + " " + event.blockedURI + " " + event.sample));
const fetchNow = window.fetch.bind(window);
window.fetch = async (path, options = {}) => {
    const entry = {path, headers: options.headers, body: options.body ? JSON.parse(options.body) : null, raw: "", state: "open"};
    seen.asked.push(entry);
    options.signal?.addEventListener("abort", () => (entry.state = "aborted"));
    const response = await fetchNow(path, options);
    const [forPage, forTest] = response.body.tee();
    (async () => {
        const reader = forTest.pipeThrough(new TextDecoderStream()).getReader();
        for (let piece; !(piece = await reader.read()).done; ) entry.raw += piece.value;
        entry.state = "done";
    })().catch(() => (entry.state = entry.state === "open" ? "broken" : entry.state));
    return new Response(forPage, response);
};
"""


def events_of(raw):
    return [json.loads(line[6:]) for line in raw.split("\n") if line.startswith("data: ") and line != "data: [DONE]"]


class Stream:
    """What came for a request, read anew from its bytes."""

    def __init__(self, entry):
        events = events_of(entry["raw"])
        deltas = [event["choices"][0]["delta"].get("content", "") for event in events if event.get("choices")]
        self.text = "".join(deltas)
        self.tokens = [token for event in events for token in (event.get("auspex") or {}).get("tokens", [])]
        self.counts = [sum(token[1] == origin for token in self.tokens) for origin in range(4)]
        self.last = next((event for event in events if event.get("usage")), {})
        self.body = entry["body"]


class Case(unittest.TestCase):
    """A test with the page before it. `url`, `browser` are shared; storage and log are new in each."""

    expected_console = r"$^"  # what the browser may say

    @classmethod
    def setUpClass(cls):
        cls.url = REAL
        if not REAL:
            cls.server, cls.url = stand_in.start()
        cls.browser = webdriver.Browser()
        cls.browser.devtools("Page.enable")
        cls.browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
        cls.browser.devtools("Browser.grantPermissions", permissions=["clipboardReadWrite", "clipboardSanitizedWrite"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.browser.downloads, ignore_errors=True)

    def setUp(self):
        b = self.browser
        b.size(1280, 800)
        b.scheme("light")
        b.open(self.url + "page.css")  # the same origin, without the page's code
        b.run("localStorage.clear(); sessionStorage.clear();")
        self.open()
        b.console()

    def tearDown(self):
        b = self.browser
        self.assertFalse(b.has_dialog(), "a dialog is open")
        self.assertEqual(b.run("return seen.violations"), [], "against the policy")
        said = [line for line in b.console() if not re.search(self.expected_console, line)]
        self.assertEqual(said, [], "the browser's console")
        origin = b.run("return location.origin")
        loaded = b.run("return performance.getEntriesByType('resource').map((entry) => entry.name)")
        self.assertEqual([name for name in loaded if not name.startswith((origin, "data:"))], [], "loaded from elsewhere")

    def open(self):
        self.browser.open(self.url)
        self.browser.wait(lambda: self.browser.one("#model").text, "the model's name")

    # ---- what tests do ---------------------------------------------------------------------------------------------------
    def begin(self, text):
        field = self.browser.one("#message")
        self.browser.run("arguments[0].value = arguments[1]", {webdriver.ELEMENT: field.id}, text)  # lines and all
        field.type(webdriver.KEYS["Enter"])

    def is_idle(self):
        return not self.browser.run("return document.body.classList.contains('busy')")

    def rest(self):
        self.browser.wait(self.is_idle, "the answer is whole", 120)

    def ask(self, text=PROMPT):
        n = len(self.asked())
        self.begin(text)
        self.browser.wait(lambda: len(self.asked()) > n, "a request")
        self.rest()

    def asked(self):
        """Requests for answers since the page was opened."""
        return self.browser.run("return seen.asked.filter((entry) => entry.path === 'v1/chat/completions')")

    def stream(self, n=-1):
        def whole():
            entry = self.asked()[n]
            return entry if entry["state"] != "open" else None

        return Stream(self.browser.wait(whole, "the stream has ended"))

    def shown_text(self, n=-1):
        """Of an answer, as its view of tokens or Markdown has it."""
        return self.browser.run("return [...document.querySelectorAll('.answer')].at(arguments[0]).querySelector('.tokens, .text').textContent", n)

    def stored(self):
        return json.loads(self.browser.run("return localStorage.getItem('auspex.chats')") or "[]")

    def set(self, **fields):
        b = self.browser
        b.one("#open-settings").click()
        for name, value in fields.items():
            field = b.one(f"#settings [name={name}], #set-{name}")
            if field.property("tagName") == "SELECT":
                b.run("arguments[0].value = arguments[1]; return arguments[0].selectedIndex", {webdriver.ELEMENT: field.id}, value)
            else:
                field.clear()
                field.type(str(value))
        b.button("Done").click()

    def check(self, name, *arguments):
        """A function of checks.js; it gives a list of faults."""
        faults = self.browser.run(CHECKS + f"\nreturn {name}(...arguments)", *arguments)
        self.assertEqual(faults, [])


class AnyServer(Case):
    """What every server must pass."""

    def test_text_streams(self):
        b = self.browser
        b.run("window.sizes = new Set(); new MutationObserver(() => sizes.add(document.querySelectorAll('#talk .token[data-n]').length))"
              ".observe(document.getElementById('talk'), {childList: true, subtree: true})")
        self.ask()
        self.assertGreater(b.run("return sizes.size"), 3, "it did not come bit by bit")
        stream = self.stream()
        self.assertGreater(len(stream.text), 20)
        self.assertEqual(self.shown_text(), stream.text)
        self.assertRegex(b.one("#status").text, r"^Done: \d+ tokens at [\d.,]+ tok/s$")
        self.assertEqual(stream.body["messages"], [{"role": "user", "content": PROMPT}])
        speed = stream.last["timings"]["predicted_per_second"]
        self.assertAlmostEqual(float(b.one("#per-second").text.replace(",", "")), speed, delta=0.51)

    def test_origins_are_the_servers(self):
        for draft_len in ["4", "auto"]:  # auto has plain rounds among the others
            with self.subTest(draft_len):
                self.set(draft_len=draft_len)
                self.browser.one("#new-chat").click()
                self.ask()
                self.origins_are_the_servers(self.stream(), draft_len)

    def origins_are_the_servers(self, stream, draft_len):
        b = self.browser
        self.assertEqual([int(b.one(f"[data-count='{i}']").text.replace(",", "")) for i in range(4)], stream.counts, "legend")
        self.assertEqual([len(b.all(f"#talk .token.{name}[data-n]")) for name in ORIGINS], stream.counts, "tokens")
        self.assertEqual(sum(stream.counts), stream.last["usage"]["completion_tokens"])
        self.assertEqual(sum(token[2] for token in stream.tokens), len(stream.text.encode()))
        if draft_len == "4":
            self.assertGreater(stream.counts[1], 0, "nothing was accepted: a poor test")
        self.assertEqual(stream.counts[1], stream.last["timings"].get("draft_n_accepted", 0))
        histogram = stream.last["auspex"]["accepted_histogram"]
        shown = b.run("return [...document.querySelectorAll('#positions g')].map((g) => Number(g.dataset.accepted))")
        self.assertEqual([n for n in shown if n], [sum(histogram[i:]) for i in range(1, len(histogram))], "by position")
        # each token has its own bytes
        spans = b.run("return [...document.querySelectorAll('#talk .token[data-n]')].map((span) => span.textContent)")
        self.assertEqual([len(span.encode()) for span in spans], [token[2] for token in stream.tokens])
        # pointing tells round and origin
        rounds, at = [], 0
        for token in stream.tokens:
            rounds.append(at)
            at += token[1] != 1
        for origin, name in enumerate(ORIGINS):
            i = next((i for i, token in enumerate(stream.tokens) if token[1] == origin and spans[i].strip()), None)
            if i is None:
                continue
            b.move_to(b.one(f"#talk [data-n='{i}']"))
            told = b.one("#pointed").text
            self.assertIn(f"Round {rounds[i] + 1} ", told)
            self.assertIn(name, told.lower())
            together = b.run("return [...document.querySelectorAll('.together')].map((span) => Number(span.dataset.n))")
            self.assertEqual(together, [j for j, r in enumerate(rounds) if r == rounds[i]])

    def stop_at_first(self, how):
        """Lets the page stop itself as soon as there is text, however fast the server is."""
        self.browser.run("const watch = new MutationObserver(() => { if (document.querySelector('#talk .token[data-n]')) { watch.disconnect(); " + how +
                         " } }); watch.observe(document.getElementById('talk'), {childList: true, subtree: true})")

    def test_stop(self):
        b = self.browser
        for how in ["document.getElementById('stop').click()", "document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape', bubbles: true}))"]:
            self.set(draft_len="0")
            self.stop_at_first(how)
            self.ask(PROMPT if REAL else "endless " + PROMPT)
            self.assertEqual(b.one("#status").text, "Stopped")
            self.assertEqual(self.asked()[-1]["state"], "aborted")
            self.assertTrue(self.shown_text())
            self.assertIn("stopped", b.one(".answer .line").text)
            if not REAL:
                b.wait(lambda: self.server.log[-1]["end"] == "gone", "the server sees that nobody listens")
            b.one("#new-chat").click()
        self.ask()
        self.assertEqual(self.shown_text(), self.stream().text)

    def test_regenerate(self):
        self.ask()
        self.browser.button("Regenerate").click()
        self.browser.wait(lambda: len(self.asked()) == 2, "a second request")
        self.rest()
        first, second = self.asked()
        self.assertEqual(first["body"]["messages"], second["body"]["messages"])
        self.assertNotEqual(first["body"]["seed"], second["body"]["seed"])
        self.assertEqual(len(self.browser.all(".answer")), 1)
        self.assertEqual(self.shown_text(), self.stream().text)
        self.assertEqual([len(chat["messages"]) for chat in self.stored()], [2])

    def test_turns_and_editing(self):
        b = self.browser
        self.set(max_tokens="12")
        self.ask("First words.")
        self.ask("Second words.")
        first, second = self.stream(0), self.stream(1)
        self.assertEqual(second.body["messages"], [{"role": "user", "content": "First words."}, {"role": "assistant", "content": first.text},
                                                   {"role": "user", "content": "Second words."}])
        b.run("document.querySelector('.user .tools button').click()")  # Edit
        field = b.focused()
        self.assertEqual((field.label, field.property("value")), ("Edited message", "First words."))
        field.clear()
        field.type("Other words.")
        b.button("Send again").click()
        b.wait(lambda: len(self.asked()) == 3, "a third request")
        self.rest()
        self.assertEqual(self.asked()[2]["body"]["messages"], [{"role": "user", "content": "Other words."}])
        self.assertEqual([len(b.all(".user")), len(b.all(".answer"))], [1, 1])
        self.assertEqual(len(self.stored()), 1)
        self.assertEqual(b.focused().property("id"), "message")

    def test_copy(self):
        self.ask()
        self.browser.button("Copy", ".answer").click()
        self.browser.wait(lambda: any(one.text == "Copied" for one in self.browser.all(".answer button")), "it is copied")
        self.assertEqual(self.browser.run("return navigator.clipboard.readText()"), self.stream().text)

    def test_chats_are_kept(self):
        b = self.browser
        self.set(max_tokens="12")
        self.ask("One.")
        one = self.shown_text()
        b.one("#new-chat").click()
        self.assertEqual(len(b.all("article")), 0)
        self.ask("Two.")
        classes = "return [...document.querySelectorAll('#talk .token')].map((span) => span.className)"
        before = b.run(classes)
        self.open()
        self.assertEqual([item.text for item in b.all("#chat-list .open")], ["Two.", "One."])
        b.all("#chat-list .open")[0].click()
        self.assertEqual(b.run(classes), before, "tokens after a reload")
        b.all("#chat-list .open")[1].click()
        self.assertEqual(self.shown_text(), one)
        self.assertEqual(b.one("#chat-list [aria-current]").text, "One.")
        b.all("#chat-list .remove")[1].click()
        self.assertEqual(len(self.stored()), 2, "the first click only asks")
        b.all("#chat-list .remove")[1].click()
        self.assertEqual([item.text for item in b.all("#chat-list .open")], ["Two."])
        self.assertEqual(len(self.stored()), 1)
        self.assertEqual(len(b.all("article")), 0)

    def test_settings_are_kept_and_sent(self):
        b = self.browser
        wanted = {"temperature": 0.7, "top_p": 0.9, "top_k": 40, "min_p": 0.05, "max_tokens": 9, "seed": 4711, "draft_len": 3, "drafter": "ngram", "acceptance": "coupled"}
        self.set(system="Be brief.", key="not in the local storage", **{name: str(value) for name, value in wanted.items()})
        self.open()
        self.ask()
        body = self.asked()[-1]["body"]
        self.assertEqual({name: body.get(name) for name in wanted}, wanted)
        self.assertEqual(body["messages"][0], {"role": "system", "content": "Be brief."})
        self.assertEqual((body["stream"], body["stream_options"], body["auspex"]), (True, {"include_usage": True}, {"origins": True}))
        self.assertEqual(self.asked()[-1]["headers"]["Authorization"], "Bearer not in the local storage")
        self.assertNotIn("not in the local", b.run("return JSON.stringify(localStorage)"))
        self.assertIn("cut at the limit", b.one(".answer .line").text)
        self.assertEqual(self.stream().last["usage"]["completion_tokens"], 9)
        b.one("#open-settings").click()
        self.assertEqual(b.one("[name=temperature]").property("value"), "0.7")
        b.button("Reset").click()
        b.button("Done").click()
        self.ask()
        body = self.asked()[-1]["body"]
        self.assertEqual([name for name in wanted if name in body], ["seed"])
        self.assertEqual(body["messages"][0]["role"], "user")

    def test_export_and_import(self):
        b = self.browser
        self.set(max_tokens="12", draft_len="3", temperature="0")
        self.ask("One <b>é 🦊</b>.")
        self.compare()
        b.one("#new-chat").click()
        self.ask("Two.")
        before = self.stored()
        b.button("Export").click()
        file = pathlib.Path(b.downloads) / "auspex-chats.json"
        b.wait(file.exists, "the export")
        text = b.wait(lambda: file.read_text(), "its bytes")
        self.assertEqual(json.loads(text)["chats"], before)
        b.run("localStorage.removeItem('auspex.chats')")
        self.open()
        self.assertEqual(len(b.all("#chat-list li")), 0)
        b.run("document.getElementById('import-file').hidden = false")
        b.one("#import-file").type(str(file))
        b.wait(lambda: b.one("#status").text == "2 chats imported", "they are imported")
        self.assertEqual(self.stored(), before)
        b.one("#import-file").type(str(file))  # again: nothing doubles
        b.wait(lambda: b.one("#import-file").property("value") == "", "they are imported again")
        self.assertEqual(self.stored(), before)
        file.unlink()
        b.all("#chat-list .open")[1].click()
        self.assertIn("One <b>é 🦊</b>.", b.one(".user .said").text)
        self.assertIn("Yes, the same text", b.one(".plain-answer").text)

    def compare(self):
        b = self.browser
        n = len(self.asked())
        b.button("Same text without drafts?").click()
        b.wait(lambda: len(self.asked()) == n + 1, "a request without drafts")
        self.rest()
        return b.one(".plain-answer").text

    def test_same_text_without_drafts(self):
        b = self.browser
        self.set(draft_len="3", temperature="0", system="Tell stories.")
        self.ask()
        self.assertEqual(b.one("#measured").text, "–")
        self.assertIn("Not measured yet", b.one("#measured-note").text)
        told = self.compare()
        mine, plain = self.stream(0), self.stream(1)
        self.assertEqual({**mine.body, "draft_len": 0}, plain.body, "the same but for drafts")
        self.assertEqual(plain.counts[1:], [0, 0, 0])
        self.assertEqual(mine.text, plain.text)
        self.assertIn("Yes, the same text", told)
        ratio = mine.last["timings"]["predicted_per_second"] / plain.last["timings"]["predicted_per_second"]
        self.assertEqual(b.one("#measured").text, f"{ratio:.2f}×")
        self.assertEqual(self.shown_text(), mine.text)
        self.open()
        b.one("#chat-list .open").click()
        self.assertEqual(b.one("#measured").text, f"{ratio:.2f}×", "kept")

    def test_same_text_of_a_stopped_answer(self):
        self.set(draft_len="3", temperature="0")
        self.stop_at_first("document.getElementById('stop').click()")
        self.ask(PROMPT if REAL else "slow " + PROMPT)
        n = len(self.browser.all("#talk .token[data-n]"))
        if not self.browser.all("#talk .token.accepted[data-n]"):
            return  # nothing to compare: the button is not there
        told = self.compare()
        self.assertEqual(self.asked()[-1]["body"]["max_tokens"], n)
        self.assertIn("Yes, the same text", told)

    def test_another_text_and_coupled(self):
        b = self.browser
        self.set(draft_len="3", temperature="1.2", acceptance="rejection")
        self.ask()
        told = self.compare()
        self.assertIn("No, it differs from character ", told)
        self.assertIn("distribution", told)
        at = int(re.search(r"character (\d+)", told)[1])
        mine, plain = self.stream(0).text, self.stream(1).text
        self.assertEqual(at - 1, len(os.path.commonprefix([mine, plain])))
        b.button("Ask again, coupled").click()
        b.wait(lambda: len(self.asked()) == 4, "an answer and its comparison", 120)
        self.rest()
        self.assertEqual([entry["body"]["acceptance"] for entry in self.asked()[2:]], ["coupled", "coupled"])
        self.assertEqual(self.asked()[3]["body"]["draft_len"], 0)
        self.assertIn("Yes, the same text", b.one(".plain-answer").text)

    def test_figures_of_auto(self):
        b = self.browser
        self.ask()
        last = self.stream().last
        expected = last["auspex"]["predicted_speedup"]
        self.assertEqual(b.one("#expected").text, f"{expected:.2f}×" if expected else "–")
        if last["auspex"]["choice"]:
            self.assertEqual(b.one("#why").text, last["auspex"]["choice"])
        b.one("aside summary").click()
        figures = b.one("#all-figures").text
        self.assertIn(f"{last['usage']['prompt_tokens']} tokens, {last['usage']['prompt_tokens_details']['cached_tokens']} from the cache", figures)
        self.assertIn(str(self.asked()[-1]["body"]["seed"]), figures)

    def test_keys_suffice(self):
        b = self.browser
        self.set(draft_len="3", max_tokens="40")
        b.press("Alt", "n")
        self.assertEqual(b.focused().property("id"), "message")
        b.type("First line")
        b.press("Shift", "Enter")
        b.type("second line")
        self.assertEqual(b.one("#message").property("value"), "First line\nsecond line")
        self.assertEqual(len(self.asked()), 0)
        b.press("Enter")
        b.wait(lambda: len(self.asked()) == 1, "a request")
        self.rest()
        self.assertEqual(self.asked()[0]["body"]["messages"][0]["content"], "First line\nsecond line")
        self.assertEqual(b.focused().property("id"), "message", "focus is kept")
        b.press("Up")
        self.assertEqual(b.focused().label, "Edited message")
        b.press("Escape")
        self.assertEqual((b.focused().text, len(b.all(".editing"))), ("Edit", 0))
        for _ in range(30):  # to the tokens
            if b.focused().attribute("data-n") is not None:
                break
            b.press("Tab")
        self.assertEqual(b.focused().attribute("data-n"), "0")
        self.assertIn("Round 1 ", b.one("#pointed").text)
        b.press("Right")
        b.press("Right")
        self.assertEqual(b.focused().attribute("data-n"), "2")
        b.press("Down")
        self.assertIn("token 1 of", b.one("#pointed").text)
        b.press("End")
        self.assertEqual(int(b.focused().attribute("data-n")), len(b.all("#talk .token[data-n]")) - 1)
        b.press("Home")
        b.press("Tab")
        self.assertEqual(b.focused().text, "Tokens")
        seen = set()
        for _ in range(60):  # everything else, once around
            focused = b.focused()
            seen.add(focused.property("id") or focused.text)
            if focused.property("tagName") == "BODY":
                b.run("document.body.focus()")
            b.press("Tab")
        for name in ["open-settings", "theme", "new-chat", "export", "import", "message", "send", "talk", "Regenerate", "Copy"]:
            self.assertIn(name, seen)
        b.run("document.getElementById('open-settings').focus()")
        b.press("Enter")
        self.assertTrue(b.one("#settings").is_shown)
        b.press("Escape")
        self.assertFalse(b.one("#settings").is_shown)
        self.assertEqual(b.focused().property("id"), "open-settings", "focus comes back")

    def test_narrow(self):
        b = self.browser
        self.set(draft_len="3")
        self.ask()
        self.compare()
        for width in [320, 360, 600, 1000]:
            b.size(width, 740)
            self.check("fits", "answer")
            self.assertTrue(b.one("#send").is_shown)
            b.one("#figures-toggle").click()
            self.assertTrue(b.one("#positions").is_shown)
            self.check("fits", "figures")
            b.one("#figures-toggle").click()
            self.assertFalse(b.one("#positions").is_shown)
            b.one("#menu").click()
            self.assertTrue(b.one("#new-chat").is_shown)
            self.check("fits", "chats")
            b.press("Escape")
            self.assertFalse(b.one("#new-chat").is_shown)
            b.one("#open-settings").click()
            self.check("fits", "settings")
            b.press("Escape")
        b.size(360, 740)
        b.one("#menu").click()
        b.one("#new-chat").click()
        self.check("fits", "welcome")

    def test_light_and_dark(self):
        b = self.browser
        brightness = "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0]"
        self.assertGreater(b.run(brightness), 200)
        b.scheme("dark")
        self.assertLess(b.run(brightness), 60)
        for name, is_light in [("light", True), ("dark", False)]:
            b.scheme("dark" if is_light else "light")  # the switch is stronger
            b.one("#theme").click()
            self.assertEqual(b.one("#theme").text, f"Theme: {name}")
            self.assertEqual(b.run(brightness) > 128, is_light)
            self.open()
            self.assertEqual(b.run(brightness) > 128, is_light, "kept")

    def test_accessible(self):
        b = self.browser
        self.set(draft_len="3")
        for scheme in ["light", "dark"]:
            b.scheme(scheme)
            b.one("#new-chat").click()
            self.check("has_contrast", scheme + ", welcome")
            self.ask()
            self.compare()
            self.check("has_contrast", scheme + ", answer")
            b.move_to(b.all("#talk .token.accepted")[0])
            self.check("has_contrast", scheme + ", pointed at")
            b.button("Text").click()
            self.check("has_contrast", scheme + ", Markdown")
            b.button("Tokens").click()
            self.check("is_accessible", True)
            b.one("#open-settings").click()
            self.check("has_contrast", scheme + ", settings")
            self.check("is_accessible", False)
            self.names_are_told()
            b.press("Escape")
        self.names_are_told()
        lines = {name: b.run(f"const s = getComputedStyle(document.querySelector('#talk .token.{name}, .legend .token.{name}')); "
                             "return [s.textDecorationLine, s.textDecorationStyle].join(' ')") for name in ORIGINS}
        self.assertEqual(len(set(lines.values())), 4, lines)
        colors = {b.run(f"return getComputedStyle(document.querySelector('.legend .token.{name}')).textDecorationColor") for name in ORIGINS}
        self.assertEqual(len(colors), 4)

    def names_are_told(self):
        within = "dialog[open]" if self.browser.all("dialog[open]") else "body"
        for element in self.browser.all(f"{within} :is(button, input, select, textarea, summary, a[href], [role=img])"):
            if element.is_shown:
                self.assertTrue(element.label, self.browser.run("return arguments[0].outerHTML", {webdriver.ELEMENT: element.id}))


class StandIn(Case):
    """What only a server that answers by script can show."""

    expected_console = r"the server responded with a status of (400|401|429|503)|ERR_(CONNECTION_REFUSED|INCOMPLETE_CHUNKED_ENCODING|CONNECTION_RESET|EMPTY_RESPONSE|CONNECTION_CLOSED)"

    def error(self):
        return self.browser.one(".error p:first-child").text

    def test_queue_and_prompt(self):
        b = self.browser
        b.run("window.waits = []; new MutationObserver(() => { const wait = document.querySelector('.waiting:not([hidden])'); "
              "if (wait) waits.push(wait.textContent + (wait.querySelector('progress') ? ' ' + wait.querySelector('progress').position : '')); })"
              ".observe(document.getElementById('talk'), {childList: true, subtree: true, attributes: true, characterData: true})")
        self.begin("queue here")
        b.wait(lambda: b.one("#status").text == "Waiting: number 3 in the queue", "its place is told")
        self.rest()
        waits = b.run("return [...new Set(waits)]")
        for text in ["Waiting: number 3 in the queue", "Waiting: number 1 in the queue", "Reading the prompt: 120 of 300 tokens 0.4", "Reading the prompt: 240 of 300 tokens 0.8"]:
            self.assertIn(text, waits)
        self.assertFalse(b.one(".waiting").is_shown)

    def test_models_are_loaded(self):
        b = self.browser
        self.server.n_loading = 2
        b.run("location.reload()")
        b.wait(lambda: "Loading model" in b.one("#model").text, "what it waits for")
        b.wait(lambda: b.one("#model").text == "stand-in on no device", "the model")
        self.assertEqual(self.server.n_loading, 0)

    def test_a_key_is_asked_for(self):
        b = self.browser
        self.begin("key please")
        b.wait(lambda: b.one("#key-dialog").is_shown, "the question for a key")
        self.assertEqual(b.focused().property("id"), "key")
        b.type("wrong")
        b.press("Enter")
        b.wait(lambda: len(self.asked()) == 2 and b.one("#key-dialog").is_shown, "the question again")
        b.type(stand_in.KEY)
        b.press("Enter")
        b.wait(lambda: len(self.asked()) == 3, "a request with the key")
        self.rest()
        self.assertEqual(self.shown_text(), stand_in.STORY)
        self.assertEqual(len(b.all(".answer")), 1)
        self.assertEqual(b.run("return [sessionStorage.getItem('auspex.key'), JSON.stringify(localStorage).includes('sesame')]"), [stand_in.KEY, False])
        b.one("#new-chat").click()
        b.run("sessionStorage.clear()")
        self.begin("key please")
        b.wait(lambda: b.one("#key-dialog").is_shown, "the question for a key")
        b.press("Escape")
        self.assertIn("wants a key", self.error())
        b.button("Enter a key").click()
        self.assertTrue(b.one("#key-dialog").is_shown)
        b.button("Cancel").click()

    def test_refusals(self):
        b = self.browser
        for words, told in [("full house", "The server is full: 20 requests wait already. Try again in 7 s, it says."),
                            ("unwell", "The server cannot answer now: the server is stopping. Try again in 3 s, it says."),
                            ("wrong field", "top_p: found 7, expected a number from 0 to 1 <b onclick=alert(1)>.")]:
            self.ask(words)
            self.assertEqual(self.error(), told)
            self.assertEqual(b.one("#status").property("textContent"), told)
        b.button("Try again").click()
        b.wait(lambda: len(self.asked()) == 4, "it is tried again")
        self.rest()
        self.ask()
        self.assertEqual(self.shown_text(), stand_in.STORY)
        said = [message["role"] for message in self.asked()[-1]["body"]["messages"]]
        self.assertNotIn("assistant", said, "answers that never came are not sent")

    def test_errors_in_streams(self):
        for words, told in [("error", "the device was lost."), ("cut", "The connection broke before the answer was whole."),
                            ("garbage", "The server sent something that is no JSON object.")]:
            self.ask(words)
            self.assertEqual(self.error(), told)
            if words != "garbage":
                self.assertTrue(stand_in.STORY.startswith(self.shown_text()) and self.shown_text())
        self.assertEqual(len(self.stored()[0]["messages"]), 6)
        self.open()
        self.browser.one("#chat-list .open").click()
        self.assertEqual(len(self.browser.all(".error p:first-child")), 3, "kept")

    def test_the_server_goes_and_comes(self):
        b = self.browser

        def serve(port):
            process = subprocess.Popen([sys.executable, stand_in.__file__, str(port)], stdout=subprocess.PIPE, text=True)
            return process, process.stdout.readline().strip()

        process, url = serve(0)
        try:
            b.open(url)
            b.wait(lambda: b.one("#model").text, "the model's name")
            self.begin("gone soon")
            b.wait(lambda: len(b.all("#talk .token[data-n]")) > 3, "some text")
            process.kill()
            process.wait()
            self.rest()
            self.assertEqual(self.error(), "The connection broke before the answer was whole.")
            b.button("Try again").click()
            b.wait(lambda: self.is_idle() and "does not answer" in self.error(), "it is not there")
            process, _ = serve(int(url.rsplit(":", 1)[1].strip("/")))
            b.run("document.querySelector('.user .tools button').click()")
            field = b.focused()
            field.clear()
            field.type("story" + webdriver.KEYS["Enter"])
            b.wait(lambda: b.all(".answer .tokens") and self.is_idle(), "it is there again")
            self.assertEqual(self.shown_text(), stand_in.STORY)
        finally:
            process.kill()
            process.wait()

    def test_hostile_texts(self):
        b = self.browser
        tags = "return [...document.querySelectorAll('#talk .said *')].map((e) => e.localName)"
        for words in ["hostile", "rtl", stand_in.HOSTILE]:
            for view, allowed in [("Tokens", {"div", "span"}), ("Text", {"div", "p", "code", "pre", "span", "a"})]:
                b.one("#new-chat").click()
                self.ask(words)
                b.button(view).click()
                self.assertLessEqual(set(b.run(tags)), allowed)
                if view == "Tokens":
                    self.assertEqual(self.shown_text(), self.stream().text)
                self.assertFalse(b.has_dialog())
                self.assertEqual(b.run("return [document.scripts.length, document.images.length]"), [1, 0])
                links = b.run("return [...document.querySelectorAll('#talk a')].map((a) => a.href)")
                self.assertEqual([link for link in links if not link.startswith("https://")], [])
                for link in b.all("#talk a"):
                    self.assertEqual(link.attribute("target"), "_blank")
        # a title that turns the direction does not turn its neighbours
        b.one("#new-chat").click()
        self.ask("\u202egnp.exe rtl")
        self.assertEqual(b.run("return document.querySelector('#chat-list .open').firstChild.localName"), "bdi")
        self.assertEqual(b.all("#chat-list .remove")[0].label, "Delete “gnp.exe rtl”")

    def test_links_lead_to_the_web_only(self):
        self.ask("markdown")
        self.browser.button("Text").click()
        links = self.browser.run("return [...document.querySelectorAll('#talk a')].map((a) => [a.href, a.rel, a.target])")
        self.assertEqual(links, [["https://example.org/a?b=c", "noopener noreferrer nofollow", "_blank"]])

    def test_a_line_of_a_megabyte(self):
        b = self.browser
        for view in ["tokens", "text"]:
            b.one("#new-chat").click()
            begin = time.monotonic()
            self.ask("long line")
            b.button(view.capitalize()).click()
            self.assertLess(time.monotonic() - begin, 30)
            self.assertEqual(len(self.shown_text()), 1_000_000)
            self.check("fits", view)
            b.size(360, 740)
            self.check("fits", view + ", narrow")
            b.size(1280, 800)

    def test_emphasis_that_never_ends(self):
        self.ask("unended")
        begin = time.monotonic()
        self.browser.button("Text").click()
        self.assertEqual(len(self.browser.all(".answer .text p")), 20)
        self.assertLess(time.monotonic() - begin, 4)

    def test_characters_that_tokens_share(self):
        self.ask("emoji")
        stream = self.stream()
        self.assertIn(0, [token[2] for token in stream.tokens[:-1]])
        self.assertEqual(self.shown_text(), stand_in.EMOJI)
        spans = self.browser.run("return [...document.querySelectorAll('#talk .token[data-n]')].map((span) => span.textContent)")
        self.assertEqual([len(span.encode()) for span in spans], [token[2] for token in stream.tokens])

    def test_markdown(self):
        b = self.browser
        self.ask("markdown")
        b.button("Text").click()
        outline = ("const walk = (e) => e.nodeType === 3 ? e.data : e.localName + '(' + [...e.childNodes].map(walk).join('') + ')'; "
                   "return [...document.querySelector('.text').childNodes].map(walk)")
        self.assertEqual(b.run(outline), [
            "h3(A heading)",
            "p(Some em(emphasis), strong(strength), code(inline code) and snake_case_names; a a(link).)",
            "ul(li(one)li(twool(li(two, first)li(two, second))))",
            "blockquote(p(quoted strong(words)))",
            "pre(span(cpp)code(int main() { return 0; } // <b>not bold</b>))",
            "p(2 * 3 * 4 = 24)",
        ])
        self.open()
        self.ask("story")
        self.assertEqual(len(b.all(".answer .text")), 1, "the view that was chosen is kept")

    def test_a_server_without_origins(self):
        b = self.browser
        self.ask("bare")
        self.assertEqual(b.one(".answer .text").property("textContent").replace("\n", ""), stand_in.STORY.replace("\n", ""))
        self.assertEqual([one.text for one in b.all(".answer .tools button") if one.is_shown], ["Copy", "Regenerate"])
        self.assertEqual(b.one("#why").text, "The server did not say.")

    def test_a_text_that_must_be_the_same_and_is_not(self):
        b = self.browser
        self.ask("unequal")
        b.button("Same text without drafts?").click()
        b.wait(lambda: len(self.asked()) == 2, "a second request")
        self.rest()
        told = b.one(".plain-answer").text
        self.assertIn(f"differs from character {stand_in.STORY.index('bridge') + 1} on", told)
        self.assertIn("please report this", told)
        self.assertIn(str(self.asked()[0]["body"]["seed"]), told)
        b.one(".plain-answer summary").click()
        self.assertTrue(b.one(".plain-answer mark").text.startswith("tower"))

    def test_another_chat_meanwhile(self):
        b = self.browser
        self.ask("story")
        b.one("#new-chat").click()
        self.begin("slow story")
        b.wait(lambda: len(b.all("#talk .token[data-n]")) > 3, "some text")
        self.assertEqual([item.text for item in b.all("#chat-list .open")], ["slow story", "story"])
        b.all("#chat-list .open")[-1].click()
        self.assertEqual(self.shown_text(), stand_in.STORY)
        b.all("#chat-list .open")[0].click()
        n = len(b.all("#talk .token[data-n]"))
        b.wait(lambda: len(b.all("#talk .token[data-n]")) > n, "it goes on to be shown")
        b.all("#chat-list .open")[-1].click()
        self.rest()
        self.assertEqual(self.shown_text(), stand_in.STORY)
        self.assertEqual(len(b.all("article")), 2)
        b.all("#chat-list .open")[0].click()
        self.assertEqual(self.shown_text(), stand_in.STORY)
        self.assertIn("slow story", b.one(".user .said").text)

    def test_a_chat_that_is_deleted_meanwhile(self):
        b = self.browser
        self.begin("endless story")
        b.wait(lambda: len(b.all("#talk .token[data-n]")) > 3, "some text")
        b.one("#chat-list .remove").click()
        b.one("#chat-list .remove").click()
        self.rest()
        b.wait(lambda: self.server.log[-1]["end"] == "gone", "the server sees that nobody listens")
        self.assertEqual(self.stored(), [])
        self.assertEqual([len(b.all("article")), len(b.all("#chat-list li"))], [0, 0])

    def test_a_page_that_is_left_meanwhile(self):
        b = self.browser
        self.begin("endless story")
        b.wait(lambda: len(b.all("#talk .token[data-n]")) > 3, "some text")
        self.open()
        b.wait(lambda: self.server.log[-1]["end"] == "gone", "the server sees that nobody listens")
        b.one("#chat-list .open").click()
        self.assertGreater(len(b.all("#talk .token[data-n]")), 3, "what had come is kept")

    def test_what_is_kept_is_bounded(self):
        b = self.browser
        chat = {"id": "x", "updated": 1, "messages": [{"role": "user", "content": "y" * 100_000}]}
        b.run("localStorage.setItem('auspex.chats', arguments[0])", json.dumps([{**chat, "id": f"c{i}", "updated": 100 - i} for i in range(30)]))
        self.open()
        self.ask("story")
        chats = self.stored()
        self.assertLess(len(json.dumps(chats)), 2_100_000)
        self.assertEqual(chats[0]["messages"][0]["content"], "story")
        self.assertEqual([one["id"] for one in chats[1:4]], ["c0", "c1", "c2"], "the oldest go")

    def test_hostile_imports(self):
        b = self.browser
        b.run("document.getElementById('import-file').hidden = false")
        good = {"id": "good", "updated": 5, "messages": [{"role": "user", "content": "<img src=x onerror=alert(1)>"}, {"role": "assistant", "answer": {
            "text": "<b>abc", "tokens": [[1, 1, 2], [1, 9, 1], "x", [1, 3, 400], [1, 2]], "usage": 7, "plain": {"text": 5}, "speculation": {"accepted_histogram": "<b>", "choice": {}}}}]}
        for what, told in [("{", "cannot be imported"), ("[]", "not an export of this page"),
                           (json.dumps({"auspex_chats": 1, "chats": [None, 7, {"id": "<b>"}, {"id": "a", "updated": "x", "messages": []}, good]}), "1 chat imported")]:
            file = pathlib.Path(b.downloads) / "hostile.json"
            file.write_text(what)
            b.one("#import-file").type(str(file))
            b.wait(lambda: told in b.one("#status").property("textContent"), told)
        b.one("#chat-list .open").click()
        self.assertEqual(b.one(".user .said").text, "<img src=x onerror=alert(1)>")
        self.assertEqual(self.shown_text(), "<b>abc")
        b.run("localStorage.setItem('auspex.chats', '{'); localStorage.setItem('auspex.settings', '[7]')")
        self.open()
        self.ask("story")
        self.assertEqual(self.shown_text(), stand_in.STORY)


def main():
    global REAL
    arguments = sys.argv[1:]
    if arguments[:1] == ["--real"]:
        REAL = arguments[1].rstrip("/") + "/"
        arguments = arguments[2:]
    for program, package in [("chromium", "chromium"), ("chromedriver", "chromium-driver")]:
        if not shutil.which(program):
            print(f"skipped: {program} is missing. On Debian: apt-get install {package} (Ubuntu has it as a snap only, which will not do)")
            return 77
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the browser ends with us
    suite = unittest.TestSuite()
    for case in [AnyServer] if REAL else [AnyServer, StandIn]:
        names = unittest.defaultTestLoader.getTestCaseNames(case)
        suite.addTests(case(name) for name in names if not arguments or any(part in name for part in arguments))
    result = unittest.TextTestRunner(verbosity=2).run(suite)
    return 0 if result.wasSuccessful() and result.testsRun > 0 else 1


if __name__ == "__main__":
    sys.exit(main())

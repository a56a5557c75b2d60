#!/usr/bin/env python3
"""Stands in for `auspex serve` where the page is tested: serves the page's files with the server's headers, and answers
as the first word of the last message says (see SCRIPTS). Prints its address. GET /stand_in/log tells what was asked.

    stand_in.py [PORT]
"""
import http.server
import json
import pathlib
import random
import re
import sys
import threading
import time

PAGE = pathlib.Path(__file__).resolve().parents[2] / "apps" / "server" / "page"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8"}
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
KEY = "sesame"
PLAIN, ACCEPTED, CORRECTION, BONUS = range(4)

STORY = (
    "Once upon a time there was a curious fox named Ruby. She lived in a big and noisy city. Ruby never left home without "
    "her music box. One day, Ruby wanted to build a bridge near the busy market. The moon was already up. She worked and "
    "worked, but it was very hard.\n\n“Let me help you,” said Owl. They carried stone after stone, and when the sun rose, "
    "the bridge was done. “We are a good team,” said Ruby. Ruby learned that being patient is sometimes the best thing to do."
)
MARKDOWN = """# A heading

Some *emphasis*, **strength**, `inline code` and snake_case_names; a [link](https://example.org/a?b=c).

- one
- two
  1. two, first
  2. two, second

> quoted **words**

```cpp
int main() { return 0; } // <b>not bold</b>
```

2 * 3 * 4 = 24
"""
HOSTILE = (
    "<img src=x onerror=\"alert(1)\"><script>alert(2)</script><svg onload=alert(3)><iframe srcdoc=\"<script>alert(4)</script>\">"
    "</iframe><style>body{display:none}</style><base href=//evil.example><form action=//evil.example><button>Send</button></form>\n\n"
    "[click](javascript:alert(5)) [click](data:text/html,<script>alert(6)</script>) [click](vbscript:x) "
    "![picture](https://evil.example/x.png) <a href=javascript:alert(7)>a</a>\n\n"
    "`<img src=x onerror=alert(8)>`\n\n```html\n<img src=x onerror=alert(9)>\n```\n\n${alert(10)} {{constructor.constructor('alert(11)')()}}"
)
RTL = "Before \u202egnp.exe\u202c after. \u2067\u202d\u2066 unclosed isolates and \u202e an unclosed override, \u0000 \u0007 \u001b[31m and controls."
EMOJI = "A 🦊 and a 🦉 met at the café — naïve, 中文, עברית, e\u0301 — 👩‍🚀 done."


def long_line(_):
    return "x" * 500_000 + "*_`[" * 125_000  # 1 MB, and all that opens emphasis


UNENDED = "\n\n".join(["**a " * 4900, "*a " * 6600, "`a ``b " * 2800, "[a](" * 4900, "_a __b " * 2800] * 4)

SCRIPTS = {"markdown": MARKDOWN, "hostile": HOSTILE, "rtl": RTL, "emoji": EMOJI, "long": long_line, "unended": UNENDED}


def pieces_of(text, most):
    """Tokens as models have them: words with the space before them; of a long text larger ones."""
    if most > 100:
        yield from (text[i : i + most] for i in range(0, len(text), most))
        return
    for word in re.findall(r"\s?[^\W_]+|\s+|.", text, re.S):
        for i in range(0, len(word), most):
            yield word[i : i + most]


def rounds_of(text, draft_len, chance, most=8):
    """Rounds of (piece, origin)."""
    pieces = list(pieces_of(text, most))
    while pieces:
        k = draft_len if draft_len != "auto" else chance.choice([0, 2, 3, 4, 5])
        n = 0
        while n < k and chance.random() < 0.86 - 0.04 * n:
            n += 1
        taken, pieces = pieces[: n + 1], pieces[n + 1 :]
        own = PLAIN if k == 0 else BONUS if n == k else CORRECTION
        yield k, [(piece, ACCEPTED if i < n else own) for i, piece in enumerate(taken)]


class StandIn(http.server.ThreadingHTTPServer):
    daemon_threads = True
    log = []
    n_loading = 0  # requests for props that it refuses first


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    is_cut = False

    def log_message(self, *_):
        pass

    # ---- whole answers ---------------------------------------------------------------------------------------------------
    def answer(self, status, body, content_type="application/json", headers={}):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Type": content_type, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def refuse(self, status, message, **headers):
        kinds = {401: "authentication_error", 429: "rate_limit_error", 503: "unavailable_error"}
        kind = kinds.get(status, "invalid_request_error")
        self.answer(status, {"error": {"message": message, "type": kind, "param": None, "code": None}}, headers=headers)

    def do_GET(self):
        name = self.path.split("?")[0].lstrip("/") or "index.html"
        file = PAGE / name
        if self.path == "/props" and self.server.n_loading > 0:
            self.server.n_loading -= 1
            self.refuse(503, "Loading model", **{"Retry-After": "1"})
        elif self.path == "/props":
            usual = {"temperature": 0.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0, "draft_len": "auto", "drafter": "auto", "acceptance": "rejection"}
            self.answer(200, {"model": "stand-in", "n_ctx": 512, "max_draft_len": 8, "has_draft": True, "drafters": ["model", "ngram", "lookup", "hybrid", "none", "auto"],
                              "device": "no device", "version": "0", "default_generation_settings": {"n_ctx": 512, "params": usual}})
        elif self.path == "/stand_in/log":
            self.answer(200, self.server.log)
        elif self.path == "/health":
            self.answer(200, {"status": "ok"})
        elif "/" not in name and file.suffix in TYPES and file.is_file():
            self.answer(200, file.read_bytes(), TYPES[file.suffix], HEADERS)
        else:
            self.refuse(404, "nothing here")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        entry = {"body": body, "authorization": self.headers.get("Authorization"), "type": self.headers.get("Content-Type"), "end": None}
        self.server.log.append(entry)
        words = (body["messages"][-1]["content"].split() or [""])
        script = words[0].lower()
        if script == "key" and entry["authorization"] != f"Bearer {KEY}":
            return self.refuse(401, "no key, or a wrong one")
        if script == "full":
            return self.refuse(429, "20 requests wait already", **{"Retry-After": "7"})
        if script == "unwell":
            return self.refuse(503, "the server is stopping", **{"Retry-After": "3"})
        if script == "wrong":
            return self.refuse(400, "top_p: found 7, expected a number from 0 to 1 <b onclick=alert(1)>")
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-cache")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            entry["end"] = self.stream(script, body)
        except (BrokenPipeError, ConnectionResetError):
            entry["end"] = "gone"

    # ---- streams -----------------------------------------------------------------------------------------------------------
    def write(self, text):
        data = text.encode()
        size = 7 if self.is_cut else len(data)
        for i in range(0, len(data), size):
            self.wfile.write(data[i : i + size])
            self.wfile.flush()
            if self.is_cut:
                time.sleep(0.0005)

    def chunk(self, choices, **more):
        self.write("data: " + json.dumps({"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 0, "model": "stand-in",
                                          "choices": choices, **more}, ensure_ascii=False) + "\n\n")

    def stream(self, script, body):
        self.is_cut = script == "emoji"  # its bytes come in pieces that end inside characters
        draft_len = body.get("draft_len", "auto")
        seed = body["seed"]
        chance = random.Random(f"{seed} {script}")
        text = SCRIPTS.get(script, STORY)
        text = text(body) if callable(text) else text
        by_chance = body.get("temperature", 0) > 0
        if by_chance:
            text = text.replace("Ruby", random.Random(seed).choice(["Mara", "Otto", "Nina", "Paul"]) + str(seed % 1000))
        is_free = by_chance and body.get("acceptance", "rejection") == "rejection"
        if draft_len == 0 and (script == "unequal" or is_free):
            text = text.replace("bridge", "tower")
        pause = {"slow": 0.05, "endless": 0.02, "queue": 0.02, "gone": 0.1}.get(script, 0.004)
        if script == "queue":
            for comment in ["queued 3", "queued 2", "queued 1", "prompt 120/300", "prompt 240/300"]:
                self.write(f": {comment}\n\n")
                time.sleep(0.25)
        if script == "garbage":
            self.write("data: {this is no JSON\n\n")
        if script == "endless" or script == "gone":
            text *= 40
        most = 4000 if script in ("long", "unended") else 8

        histogram, n, n_drafts, n_accepted, n_rounds = [0] * 16, 0, 0, 0, 0
        limit = body.get("max_tokens", 10**9)
        sent, told = "", ""  # text that went out, and text of the tokens that were told
        rounds = list(rounds_of(text, draft_len, chance, most))
        rounds[-1] = (rounds[-1][0], rounds[-1][1] + ([("", BONUS if rounds[-1][0] else PLAIN)] if rounds[-1][1][-1][1] == ACCEPTED else []))
        for i, (k, tokens) in enumerate(rounds):
            tokens = tokens[: limit - n]
            if not tokens:
                break
            n += len(tokens)
            told += "".join(piece for piece, _ in tokens)
            accepted = sum(origin == ACCEPTED for _, origin in tokens)
            if k:
                n_rounds += 1
                n_drafts += k if len(tokens) > accepted else accepted
                n_accepted += accepted
                histogram[accepted] += 1
            # Every third event holds its last character back, as a server does that waits for the rest of a stop text.
            is_last = i + 1 == len(rounds) or n >= limit
            upto = len(told) - (1 if i % 3 == 1 and not is_last else 0)
            delta, sent = told[len(sent) : upto], told[:upto]
            origins = [[7 + len(piece), origin, len(piece.encode())] for piece, origin in tokens]
            if script == "emoji":  # bytes of a character count for the token that completes it
                origins = [part for t in origins for part in ([[t[0], t[1], 0], t] if t[2] >= 4 and t[1] in (PLAIN, ACCEPTED) else [t])]
                n += len(origins) - len(tokens)
            more = {"auspex": {"tokens": origins}} if script != "bare" else {}
            self.chunk([{"index": 0, "delta": {"content": delta}, "finish_reason": None}], usage=None, **more)
            if script == "error" and i == 5:
                self.write("data: " + json.dumps({"error": {"message": "the device was lost", "type": "server_error", "param": None, "code": None}}) + "\n\n")
                return "error"
            if script == "cut" and i == 5:
                return "cut"
            time.sleep(pause)
        finish = "length" if n >= limit else "stop"
        self.chunk([{"index": 0, "delta": {}, "finish_reason": finish}], usage=None)
        speed = 120.0 if draft_len == 0 else 180.0
        timings = {"cache_n": 12, "prompt_n": 30, "prompt_ms": 41.0, "prompt_per_second": 731.7, "predicted_n": n,
                   "predicted_ms": 1000 * n / speed, "predicted_per_second": speed}
        if n_drafts:
            timings.update(draft_n=n_drafts, draft_n_accepted=n_accepted, draft_rounds=n_rounds)
        auspex = {"seed": seed, "alpha": 0.84 if n_drafts else None, "c": 0.17, "v": 1.31, "predicted_speedup": 1.42 if n_drafts else None,
                  "choice": "3 drafts of the model: 2.59 tokens a round for the time of 1.83" if draft_len == "auto" else None,
                  "accepted_histogram": histogram[: max([i + 1 for i, h in enumerate(histogram) if h], default=0)]}
        usage = {"prompt_tokens": 42, "completion_tokens": n, "total_tokens": 42 + n, "prompt_tokens_details": {"cached_tokens": 12}}
        more = {} if script == "bare" else {"timings": timings, "auspex": auspex}
        self.chunk([], usage=usage, **more)
        self.write("data: [DONE]\n\n")
        return "done"


def start(port=0):
    server = StandIn(("127.0.0.1", port), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_address[1]}/"


if __name__ == "__main__":
    server, url = start(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    print(url, flush=True)
    threading.Event().wait()

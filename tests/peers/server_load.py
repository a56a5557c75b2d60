#!/usr/bin/env python3
"""How fast servers are under load: N clients at once, each asking again as soon as it was answered. What is compared takes turns.

    server_load.py SIDE…            SIDE: NAME=COMMAND (with {port} in it; the server is started, and stopped at the end),
                                    NAME=URL of one that runs, NAME=@OTHER for OTHER's server with other fields,
                                    NAME=batch:PROGRAM ARGUMENT… for `auspex batch` with the same requests
        --fields NAME=JSON          more fields in this side's requests, e.g. 'plain={"draft_len": 0}'
        --clients 1,4,8,16          how many at once; a table for each
        --requests 4                of each client, or
        --seconds S                 begun within this time
        --max-tokens 64             of each answer, which does not end before
        --repetitions 3             medians of these, after a warm-up
        --whole                     answers in one piece; streamed otherwise
        --temperature 0
        --kind prose|json|list|all  of prompts
        --cpu                       CPU time by the servers' threads; "io" is the first one

The ratios are the first side's tokens/s over each other's. *First* is the time to the first event with text, *gap* that between two events of a
stream, each of which may hold several tokens.
"""
import argparse
import asyncio
import itertools
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "server_ops"))
import http_client
from service import Service

PROMPTS = {
    "prose": ["Once upon a time there was a curious fox named Ruby.", "One morning a small robot found a key in the garden.",
              "The old lighthouse had not been lit for years.", "Ben and Mia wanted to build a boat.", "It was raining, and the baker was late.",
              "A tiny dragon lived behind the library."],
    "json": ['{"name": "Ruby", "kind": "fox", "friends": [{"name": "Ben", "kind": "bear"}, {"name": "Mia", "kind":',
             '[{"id": 1, "colour": "red", "size": 3}, {"id": 2, "colour": "green", "size": 4}, {"id": 3, "colour":'],
    "list": ["Things to pack:\n- a map\n- a lamp\n- a rope\n- a", "def first(items):\n    return items[0]\n\ndef second(items):\n    return items[1]\n\ndef"],
}


def percentile(samples, share):
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


class Side:
    def __init__(self, name, spec, fields):
        self.name, self.spec, self.fields = name, spec, fields
        self.service, self.host, self.port = None, "127.0.0.1", 0
        self.runs = {}  # clients: [Run]

    async def open(self, sides):
        if self.spec.startswith("@"):
            of = sides[self.spec[1:]]
            self.service, self.host, self.port = of.service, of.host, of.port
        elif self.spec.startswith("http://"):
            url = urllib.parse.urlsplit(self.spec)
            self.host, self.port = url.hostname, url.port or 80
        elif not self.spec.startswith("batch:"):
            self.service = Service(self.spec)
            self.port = self.service.port
            await self.service.wait_ready()


class Run:
    """What one turn of one side gave."""

    def __init__(self):
        self.tokens, self.seconds, self.errors = 0, 0.0, []
        self.first, self.gaps, self.whole, self.cpu = [], [], [], {}

    @property
    def speed(self):
        return self.tokens / self.seconds if self.seconds else float("nan")


def bodies(options, side, client, n):
    """The requests of a client, endlessly the same in every turn."""
    prompts = [prompt for kind, list_ in PROMPTS.items() if options.kind in (kind, "all") for prompt in list_]
    for i in range(n) if n else itertools.count():
        body = {"prompt": prompts[(client * 3 + i) % len(prompts)], "max_tokens": options.max_tokens, "temperature": options.temperature,
                "seed": 1000 * client + i, "ignore_eos": True, **side.fields}
        if not options.whole:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        yield body


async def serve_client(options, side, client, run, end):
    connection = http_client.Connection(side.host, side.port)
    for body in bodies(options, side, client, 0 if options.seconds else options.requests):
        begin = time.perf_counter()
        if end and begin >= end:
            break
        try:
            answer = await connection.ask("POST", "/v1/completions", body)
        except (OSError, asyncio.IncompleteReadError) as error:
            run.errors.append(repr(error))
            continue
        if answer.status != 200 or not answer.is_done:
            run.errors.append(f"status {answer.status}: {answer.body[:200]!r}")
            continue
        run.tokens += answer.usage()["completion_tokens"]
        run.whole.append(time.perf_counter() - begin)
        if answer.events:
            run.first.append(answer.events[0] - begin)
            run.gaps += [after - before for before, after in zip(answer.events, answer.events[1:-2])]  # the last ones have no text
    connection.close()


async def turn(options, side, clients):
    run = Run()
    if side.spec.startswith("batch:"):
        return await asyncio.to_thread(batch_turn, options, side, clients, run)
    before = side.service.cpu_seconds() if side.service else {}
    begin = time.perf_counter()
    await asyncio.gather(*(serve_client(options, side, client, run, begin + options.seconds if options.seconds else 0) for client in range(clients)))
    run.seconds = time.perf_counter() - begin
    if side.service:
        for (thread, name), seconds in side.service.cpu_seconds().items():
            if spent := seconds - before.get((thread, name), 0):
                run.cpu[f"{name} {thread - side.service.process.pid}"] = spent / run.seconds
    return run


def batch_turn(options, side, clients, run):
    """Without its start: from the first result's request to the last result, as its own last line has it."""
    with tempfile.TemporaryDirectory() as folder:
        requests, results = pathlib.Path(folder, "in.jsonl"), pathlib.Path(folder, "out.jsonl")
        lines = [{"custom_id": f"{client}-{i}", "method": "POST", "url": "/v1/completions",
                  "body": {key: value for key, value in body.items() if not key.startswith("stream")}}
                 for client in range(clients) for i, body in enumerate(bodies(options, side, client, options.requests))]
        requests.write_text("".join(json.dumps(line) + "\n" for line in lines))
        done = subprocess.run([*side.spec[6:].split(), "--parallel", str(clients), "-i", requests, "-o", results], capture_output=True, text=True)
        match = re.search(r"(\d+) tokens, ([\d.]+) tok/s", done.stderr)
        if done.returncode or not match:
            run.errors.append(done.stderr[-500:])
            return run
        run.tokens = int(match[1])
        run.seconds = run.tokens / float(match[2])
    return run


def table(options, sides, clients):
    print(f"\n**{clients} client{'s' * (clients > 1)}**, {options.max_tokens} tokens each, "
          f"{'whole' if options.whole else 'streamed'}, medians of {options.repetitions}\n")
    print("| side | tok/s | spread | ratio | first p50 / p99, ms | gap p50 / p99, ms | whole p50 / p99, ms | requests | errors |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    first_runs = next(iter(sides.values())).runs[clients]
    for side in sides.values():
        runs = side.runs[clients]
        speeds = [run.speed for run in runs]
        pair = lambda name: " / ".join(f"{1e3 * percentile(sum((getattr(run, name) for run in runs), []), share):.1f}" for share in (0.5, 0.99))
        ratio = statistics.median(a.speed / b.speed for a, b in zip(first_runs, runs))
        errors = sum((run.errors for run in runs), [])
        print(f"| {side.name} | {statistics.median(speeds):.1f} | {100 * (max(speeds) - min(speeds)) / statistics.median(speeds):.0f} % "
              f"| {ratio:.2f} | {pair('first')} | {pair('gaps')} | {pair('whole')} | {sum(len(run.whole) for run in runs)} | {len(errors)} |")
        for error in errors[:3]:
            print(f"  {side.name}: {error}", file=sys.stderr)
        if options.cpu:
            total = {name: statistics.median(run.cpu.get(name, 0) for run in runs) for run in runs for name in run.cpu}
            print(f"  {side.name}: CPU " + ", ".join(f"{name} {100 * share:.1f} %" for name, share in sorted(total.items(), key=lambda at: -at[1]) if share > 0.002),
                  file=sys.stderr)
    sys.stdout.flush()


async def main(options):
    fields = dict(text.split("=", 1) for text in options.fields)
    sides = {}
    for text in options.sides:
        name, _, spec = text.partition("=")
        sides[name] = Side(name, spec, json.loads(fields.pop(name, "{}")))
    if fields:
        sys.exit(f"--fields {next(iter(fields))}: there is no such side")
    try:
        for side in sides.values():
            await side.open(sides)
        for clients in options.clients:
            for repetition in range(-1, options.repetitions):
                for side in sides.values() if repetition % 2 else reversed(sides.values()):
                    if repetition < 0 and (options.no_warm_up or side.spec.startswith("batch:")):
                        continue
                    run = await turn(options, side, clients)
                    if repetition >= 0:
                        side.runs.setdefault(clients, []).append(run)
            table(options, sides, clients)
    finally:
        for side in sides.values():
            if side.service and not side.spec.startswith("@"):
                await side.service.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("sides", nargs="+")
    parser.add_argument("--fields", action="append", default=[])
    parser.add_argument("--clients", type=lambda text: [int(n) for n in text.split(",")], default=[1, 4, 8, 16])
    parser.add_argument("--requests", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=0)
    parser.add_argument("--max-tokens", type=int, default=64)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--kind", choices=[*PROMPTS, "all"], default="all")
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--cpu", action="store_true")
    parser.add_argument("--no-warm-up", action="store_true")
    asyncio.run(main(parser.parse_args()))

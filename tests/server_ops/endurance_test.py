#!/usr/bin/env python3
"""What a server withstands: the bundled pair on loopback, a part at a time.

    endurance_test.py PROGRAM [PART…]      PROGRAM: auspex. All parts take about 6 minutes.

    metrics       after some load promtool finds nothing to say about /metrics, and its numbers fit together
    disconnects   2,000 clients leave at random moments; slots, pages and connections are as before, and another's text, too
    slow          slowhttptest sends heads, bodies and reads by drops, while /health answers in 50 ms (p99) and a stream keeps 90 % of its rate
    soak          REQUESTS (10,000) of the environment, short ones: memory grows by at most 1 KiB a request; threads and files do not

`metrics` needs promtool (package prometheus), `slow` slowhttptest (cmake/packages-long.txt); without them the part is skipped, and where it is the
only one the program ends with 77.
"""
import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import time

import http_client
from service import Service, metrics

ELSEWHERE = "127.0.0.2"  # where good clients ask from: the cap of connections is one for each address
TEXT = "Once upon a time there was a curious fox named Ruby."


class Skipped(Exception):
    pass


def total(values, name):
    return sum(value for key, value in values.items() if key.split("{")[0] == name)


async def is_quiet(port):
    values = await metrics(port)
    return (values["auspex_requests_running"] == values["auspex_requests_waiting"] == values["auspex_requests_paused"] == 0 and
            all(values[f'auspex_cache_pages{{pool="{pool}",state="live"}}'] == 0 for pool in ("target", "draft")))


async def wait_quiet(port, seconds=5):
    for _ in range(int(seconds / 0.1)):
        if await is_quiet(port):
            return
        await asyncio.sleep(0.1)
    values = await metrics(port)
    raise AssertionError({key: value for key, value in values.items() if key.startswith(("auspex_requests_", "auspex_cache_pages")) and value})


async def complete(port, **fields):
    answer = await http_client.ask(port, "POST", "/v1/completions", {"prompt": TEXT, "max_tokens": 64, "ignore_eos": True, **fields}, source=ELSEWHERE)
    assert answer.status == 200, answer.body
    return answer


async def metrics_part(server):
    if not shutil.which("promtool"):
        raise Skipped("promtool is not installed (apt-get install prometheus)")
    await asyncio.gather(*(complete(server.port, n=1 + i % 3, seed=i, temperature=i % 2, stream=i % 2 == 1, draft_len=i % 4) for i in range(16)))
    assert (await http_client.ask(server.port, "POST", "/v1/completions", {"prompt": 5})).status == 400
    await wait_quiet(server.port)
    text = (await http_client.ask(server.port, "GET", "/metrics")).body
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    assert done.returncode == 0 and not done.stdout + done.stderr, (done.returncode, done.stdout + done.stderr)
    values = await metrics(server.port)
    accepted, drafted = total(values, "auspex_accepted_tokens_total"), total(values, "auspex_draft_tokens_total")
    assert drafted > 0 and accepted == total(values, "auspex_accepted_tokens_per_position_total") and accepted <= drafted
    assert total(values, "auspex_prefix_hit_tokens_total") <= total(values, "auspex_prefix_lookup_tokens_total")
    assert values["auspex_first_token_seconds_count"] == 16, values["auspex_first_token_seconds_count"]
    sequences = sum(1 + i % 3 for i in range(16))
    assert values["auspex_generated_tokens_total"] == 64 * sequences, values["auspex_generated_tokens_total"]
    print(f"metrics: {len(values)} samples, promtool says nothing; {drafted:.0f} drafts, {accepted:.0f} accepted")


async def disconnects_part(server, n=2000, at_once=16):
    rng, left, whole = random.Random(1), 0, 0
    expected = (await complete(server.port)).json()["choices"][0]["text"]
    await wait_quiet(server.port)
    n_files, numbers = server.n_files(), iter(range(n))

    async def leaver():
        nonlocal left, whole
        for i in numbers:
            body = {"prompt": TEXT * rng.choice([1, 1, 4, 20]), "max_tokens": rng.choice([1, 20, 200]), "ignore_eos": True, "stream": rng.random() < 0.5,
                    "n": rng.choice([1, 1, 1, 2]), "seed": i}
            try:
                await asyncio.wait_for(http_client.ask(server.port, "POST", "/v1/completions", body), rng.expovariate(1 / 0.06))
                whole += 1
            except asyncio.TimeoutError:
                left += 1

    async def stayer():
        while left + whole < n - at_once:
            text = (await complete(server.port)).json()["choices"][0]["text"]
            assert text == expected, (text, expected)

    await asyncio.gather(stayer(), *(leaver() for _ in range(at_once)))
    await wait_quiet(server.port)
    for _ in range(50):
        if server.n_files() <= n_files:
            break
        await asyncio.sleep(0.1)
    values = await metrics(server.port)
    cancelled = sum(value for key, value in values.items() if key.startswith("auspex_requests_total") and 'result="cancelled"' in key)
    print(f"disconnects: {left} left, {whole} were faster; {cancelled:.0f} cancelled; {server.n_files()} files, {n_files} before")
    assert server.n_files() <= n_files and left >= n / 2


async def slow_part(server):
    if not shutil.which("slowhttptest"):
        raise Skipped("slowhttptest is not installed")

    async def seen(seconds):
        """Events per second of a stream, and p99 of /health in ms."""
        times, n, end = [], 0, time.perf_counter() + seconds

        async def health():
            while time.perf_counter() < end:
                begin = time.perf_counter()
                assert (await http_client.ask(server.port, "GET", "/health", source=ELSEWHERE)).status == 200
                times.append(time.perf_counter() - begin)
                await asyncio.sleep(0.05)

        async def stream():
            nonlocal n
            connection = http_client.Connection(port=server.port, source=ELSEWHERE)
            while time.perf_counter() < end:
                answer = await connection.ask("POST", "/v1/completions", {"prompt": TEXT, "max_tokens": 100, "ignore_eos": True, "stream": True, "draft_len": 0})
                assert answer.is_done
                n += sum(at < end for at in answer.events)
            connection.close()

        await asyncio.gather(health(), stream())
        return n / seconds, 1e3 * sorted(times)[int(0.99 * len(times))]

    await seen(3)
    faults = []
    for name, flags in {"heads": ["-H", "-i", "2"], "bodies": ["-B", "-i", "2", "-s", "8192", "-f", "application/json"],
                        "reads": ["-X", "-w", "8", "-y", "16", "-n", "2", "-z", "8", "-k", "3"]}.items():
        before, _ = await seen(6)
        path = "/v1/completions" if name == "bodies" else "/metrics" if name == "reads" else "/"
        attack = subprocess.Popen(["nice", "-n", "19", "slowhttptest", "-c", "1000", "-r", "200", "-l", "20", "-p", "5", *flags, "-u", f"http://127.0.0.1:{server.port}{path}"],
                                  stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            await asyncio.sleep(3)
            n_files, io_s = server.n_files(), server.cpu_seconds()[server.process.pid, "io"]
            during, p99 = await seen(12)
            io = (server.cpu_seconds()[server.process.pid, "io"] - io_s) / 12
        finally:
            attack.terminate()
            attack.wait()
        await asyncio.sleep(1)
        after, _ = await seen(6)
        share = during / statistics.mean([before, after])
        print(f"slow {name}: the stream kept {share:.2f} of its rate ({before:.0f}, {during:.0f}, {after:.0f} events/s); /health p99 {p99:.1f} ms; "
              f"{n_files} files at first; the I/O thread took {100 * io:.1f} % of a core", flush=True)
        if share < 0.9 or p99 > 50:
            faults.append(name)
    assert not faults, faults


def slope(points):
    mean_x, mean_y = (statistics.mean(column) for column in zip(*points))
    return sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)


async def soak_part(server, at_once=8):
    n_requests = int(os.environ.get("REQUESTS", "10000"))
    begin, n, points, counts = time.monotonic(), 0, [], set()
    numbers = iter(range(n_requests))
    rng = random.Random(2)

    async def client(number):
        nonlocal n
        connection = http_client.Connection(port=server.port)
        for i in numbers:
            body = {"prompt": f"{number} {i} {TEXT}", "max_tokens": rng.randint(1, 8), "stream": i % 2 == 0, "temperature": rng.choice([0, 1])}
            answer = await connection.ask("POST", "/v1/completions", body)
            assert answer.status == 200 and answer.is_done, (answer.status, answer.body)
            n += 1
        connection.close()

    async def watch():
        while n < 0.98 * n_requests:
            if n > 0.2 * n_requests:  # before, caches fill
                points.append((n, server.rss_kib()))
                counts.add((server.n_threads(), server.n_files()))
            await asyncio.sleep(0.5)

    await asyncio.gather(watch(), *(client(number) for number in range(at_once)))
    await wait_quiet(server.port)
    each = slope(points)
    assert n == n_requests, (n, n_requests)
    print(f"soak: {n} requests in {time.monotonic() - begin:.0f} s; {each:.3f} KiB a request from {points[0][1] / 1024:.1f} to {points[-1][1] / 1024:.1f} MiB; "
          f"(threads, files): {sorted(counts)}")
    assert each <= 1 and len({threads for threads, _ in counts}) == 1 and len({files for _, files in counts}) == 1


PARTS = {"metrics": metrics_part, "disconnects": disconnects_part, "slow": slow_part, "soak": soak_part}


async def main(program, names):
    n_skipped = 0
    for name in names:
        server = await Service([program, "serve", "--port", "{port}", "-c", "1024"]).wait_ready()
        try:
            await PARTS[name](server)
            assert server.process.poll() is None, f"it ended with {server.process.returncode}: {server.output()[-2000:]}"
            code = await server.stop()
            assert code == 0, f"it ended with {code}: {server.output()[-2000:]}"
        except Skipped as why:
            print(f"{name} skipped: {why}")
            n_skipped += 1
        finally:
            if server.process.poll() is None:
                server.kill()
        sys.stdout.flush()
    return 77 if n_skipped == len(names) else 0


if __name__ == "__main__":
    if len(sys.argv) < 2 or not set(sys.argv[2:]) <= set(PARTS):
        sys.exit(__doc__)
    sys.exit(asyncio.run(main(sys.argv[1], sys.argv[2:] or list(PARTS))))

#!/usr/bin/env python3
"""Three servers behind HAProxy on loopback, with the configuration of apps/server/README.md: conversations stay on the server that knows
them, and clients see nothing of a killed server, a drained one, or of restarts, but streams that had begun on the killed one.

    haproxy_test.py PROGRAM [CONFIGURATION]     PROGRAM: auspex. CONFIGURATION: another one. About 90 s.

Needs HAProxy from 2.6 on (cmake/packages-long.txt). Ends with 77, "skipped", without it.
"""
import asyncio
import itertools
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import http_client
from service import Service, free_port

README = pathlib.Path(__file__).resolve().parents[2] / "apps/server/README.md"
NAMES = ["a", "b", "c"]
CONVERSATIONS, TURNS, AT_ONCE = 24, 3, 4
PLACES = ["a big city", "a small village", "an old mill", "a quiet harbour", "a green valley", "a tall tower"]
HEROES = ["fox named Ruby", "bear named Ben", "robot named Tin", "girl named Mia"]
QUESTIONS = ["Who is in the story?", "Where did it happen?", "What can we learn from it?"]


def configuration(text, ports, api, stats, socket):
    text = re.sub(r"bind 127\.0\.0\.1:8000", f"bind 127.0.0.1:{api}", text)
    text = re.sub(r"bind 127\.0\.0\.1:8404", f"bind 127.0.0.1:{stats}", text)
    text = re.sub(r"stats socket \S+", f"stats socket {socket}", text)
    for name, port in zip(NAMES, ports):
        text, n = re.subn(rf"server {name} 127\.0\.0\.1:\d+", f"server {name} 127.0.0.1:{port}", text)
        assert n == 1, f"the configuration has no server {name}"
    return text


class Site:
    """HAProxy and the servers behind it."""

    def __init__(self, program, text, folder):
        self.program, self.text, self.folder = program, text, folder
        self.ports = [free_port() for _ in NAMES]
        self.api, self.socket = free_port(), folder / "admin.sock"
        self.proxy, self.servers = None, {}

    def server(self, port):
        return Service([self.program, "serve", "--port", port, "--slots", 4, "--queue", 16, "--overload-status", 503, "-c", 1024], port)

    async def open(self):
        path = self.folder / "haproxy.cfg"
        path.write_text(configuration(self.text, self.ports, self.api, free_port(), self.socket))
        subprocess.run(["haproxy", "-c", "-q", "-f", path], check=True)
        for name, port in zip(NAMES, self.ports):
            self.servers[name] = self.server(port)
        await asyncio.gather(*(server.wait_ready() for server in self.servers.values()))
        self.proxy = subprocess.Popen(["haproxy", "-db", "-f", path], stdin=subprocess.DEVNULL, stderr=(self.folder / "log").open("w"))
        for name in NAMES:
            await self.wait_for(name, "UP")

    async def admin(self, command):
        reader, writer = await asyncio.open_unix_connection(self.socket)
        writer.write(command.encode() + b"\n")
        answer = (await reader.read(-1)).decode()
        writer.close()
        return answer

    async def wait_for(self, name, state, seconds=30):
        """Until HAProxy sees it so."""
        for _ in range(int(seconds / 0.1)):
            try:
                rows = [line.split(",") for line in (await self.admin("show stat")).splitlines()]
                if any(row[:2] == ["auspex", name] and row[17].startswith(state) for row in rows):
                    return
            except OSError:
                pass  # not there yet
            await asyncio.sleep(0.1)
        raise AssertionError(f"server {name} did not become {state}")

    async def close(self):
        if self.proxy:
            self.proxy.terminate()
            self.proxy.wait()
        for server in self.servers.values():
            if server.process.poll() is None:
                server.kill()


class Load:
    """Clients that ask all the time, half of them for streams."""

    def __init__(self, site):
        self.site, self.is_over = site, False
        self.served, self.failed, self.n = [], [], 0  # (server, begun, ended), (server or None, was a stream, why)

    async def client(self, number):
        connection = http_client.Connection(port=self.site.api)
        for i in itertools.count():
            if self.is_over:
                break
            is_stream = (number + i) % 2 == 0
            body = {"prompt": f"{number}.{i}: Once upon a time in {PLACES[i % len(PLACES)]}", "max_tokens": 100 if is_stream else 24,
                    "ignore_eos": True, "stream": is_stream}
            begun, self.n = time.monotonic(), self.n + 1
            seen = []
            try:
                answer = await connection.ask("POST", "/v1/completions", body, on_head=lambda head: seen.append(head.headers.get("x-served-by")))
                if answer.status == 200 and answer.is_done:
                    self.served.append((answer.headers["x-served-by"], begun, time.monotonic()))
                else:
                    self.failed.append((seen[0], is_stream and answer.status == 200, f"{answer.status} {answer.body[:200]} {answer.ending}"))
            except (OSError, asyncio.IncompleteReadError) as error:
                self.failed.append((seen[0] if seen else None, is_stream and bool(seen), repr(error)))
        connection.close()

    async def __aenter__(self):
        self.tasks = [asyncio.create_task(self.client(number)) for number in range(AT_ONCE)]
        return self

    async def __aexit__(self, *_):
        self.is_over = True
        await asyncio.gather(*self.tasks)

    def since(self, moment):
        return [name for name, begun, _ in self.served if begun >= moment]


async def converse(port, tag):
    """Cached tokens of all turns, and the servers that each conversation saw."""
    cached, servers, gate = 0, [], asyncio.Semaphore(AT_ONCE)

    async def one(number):
        nonlocal cached
        async with gate:
            hero, place = HEROES[number % len(HEROES)], PLACES[number // len(HEROES) % len(PLACES)]
            messages = [{"role": "user", "content": f"{tag}{number}: Tell me a story about a {hero} in {place}."}]
            seen = set()
            for turn in range(TURNS):
                answer = await http_client.ask(port, "POST", "/v1/chat/completions", {"messages": messages, "max_tokens": 40, "seed": 1})
                assert answer.status == 200, answer.body
                cached += answer.usage()["prompt_tokens_details"]["cached_tokens"]
                seen.add(answer.headers.get("x-served-by"))
                messages += [answer.json()["choices"][0]["message"], {"role": "user", "content": QUESTIONS[turn]}]
            servers.append(seen)

    await asyncio.gather(*(one(number) for number in range(CONVERSATIONS)))
    return cached, servers


async def affinity(site):
    alone = site.server(free_port())
    try:
        await alone.wait_ready()
        possible, _ = await converse(alone.port, "")
    finally:
        alone.kill()
    cached, servers = await converse(site.api, "")
    used = set.union(*servers)
    moved = sum(len(seen) > 1 for seen in servers)
    print(f"affinity: {cached} of {possible} possible tokens were cached ({cached / possible:.3f}); {moved} of {CONVERSATIONS} conversations moved; "
          f"{len(used)} servers", flush=True)
    assert possible > 0 and cached >= 0.9 * possible and len(used) == len(NAMES)


async def kill(site):
    async with Load(site) as load:
        await asyncio.sleep(4)
        before = load.since(0)
        site.servers["b"].kill()
        await site.wait_for("b", "DOWN")
        down = time.monotonic()
        await asyncio.sleep(3)
        assert "b" in before and "b" not in load.since(down)
        site.servers["b"].start()
        await site.servers["b"].wait_ready()
        await site.wait_for("b", "UP")
        up = time.monotonic()
        await asyncio.sleep(4)
    broken = [failure for failure in load.failed if failure[:2] == ("b", True)]
    others = [failure for failure in load.failed if failure not in broken]
    print(f"kill: {load.n} requests, {len(broken)} streams broken off with their server, {len(others)} others failed", flush=True)
    assert not others, others[:3]
    assert "b" in load.since(up) and len(broken) <= AT_ONCE


async def drain(site):
    async with Load(site) as load:
        await asyncio.sleep(2)
        await site.admin("set server auspex/c state drain")
        begun = time.monotonic() + 0.1
        await asyncio.sleep(3)
        drained = load.since(begun)
        await site.admin("set server auspex/c state ready")
        ready = time.monotonic()
        await asyncio.sleep(4)
    print(f"drain: {load.n} requests, {len(load.failed)} failed", flush=True)
    assert not load.failed, load.failed[:3]
    assert "c" not in drained and "c" in load.since(ready)


async def rolling_restart(site):
    async with Load(site) as load:
        for name, server in site.servers.items():
            await asyncio.sleep(1)
            server.send(signal.SIGTERM)
            code = await asyncio.to_thread(server.process.wait, 40)
            assert code == 0, f"{name} ended with {code}: {server.output()[-1000:]}"
            server.start()
            await server.wait_ready()
            await site.wait_for(name, "UP")
    print(f"rolling restart: {load.n} requests, {len(load.failed)} failed", flush=True)
    assert not load.failed, load.failed[:3]


async def main(program, configuration_path=None):
    if configuration_path:
        text = pathlib.Path(configuration_path).read_text()
    else:
        text = re.search(r"```\n(global\n.*?)```", README.read_text(), re.S)[1]
    folder = pathlib.Path(tempfile.mkdtemp())
    site = Site(program, text, folder)
    try:
        await site.open()
        for part in (affinity, kill, drain, rolling_restart):
            begin = time.monotonic()
            await part(site)
            print(f"  {time.monotonic() - begin:.0f} s", flush=True)
    finally:
        await site.close()
        shutil.rmtree(folder)


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    if not shutil.which("haproxy"):
        print("skipped: HAProxy is not installed (apt-get install haproxy)")
        sys.exit(77)
    asyncio.run(main(*sys.argv[1:]))

"""Servers that are started for a test, and what is seen of their processes."""
import asyncio
import os
import pathlib
import shlex
import signal
import socket
import subprocess
import tempfile

import http_client


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Service:
    """A command with {port} in it, which answers /health when it is ready. What it prints is kept in `log`."""

    def __init__(self, command, port=0, environment=None):
        self.port = port or free_port()
        words = shlex.split(command) if isinstance(command, str) else [str(word) for word in command]
        self.command = [word.replace("{port}", str(self.port)) for word in words]
        self.environment = {**os.environ, **(environment or {})}
        self.log = tempfile.TemporaryFile()
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=self.environment)

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    async def is_healthy(self):
        try:
            return (await http_client.ask(self.port, "GET", "/health")).status == 200
        except (OSError, asyncio.IncompleteReadError):
            return False

    async def wait_ready(self, seconds=120):
        for _ in range(int(seconds / 0.05)):
            if await self.is_healthy():
                return self
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.command[0]} ended with {self.process.returncode}:\n{self.output()[-2000:]}")
            await asyncio.sleep(0.05)
        raise RuntimeError(f"{self.command[0]} was not ready after {seconds} s:\n{self.output()[-2000:]}")

    def send(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)

    async def stop(self, seconds=40):
        """Its exit code after SIGTERM."""
        self.send(signal.SIGTERM)
        try:
            return await asyncio.to_thread(self.process.wait, seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def kill(self):
        self.send(signal.SIGKILL)
        self.process.wait()

    # ---- seen from outside
    def rss_kib(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise RuntimeError("no VmRSS")

    def n_threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def n_files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self):
        """Of every thread: {(id, name): user and system time}."""
        ticks = os.sysconf("SC_CLK_TCK")
        seconds = {}
        for thread in os.listdir(f"/proc/{self.process.pid}/task"):
            try:
                text = pathlib.Path(f"/proc/{self.process.pid}/task/{thread}/stat").read_text()
            except OSError:
                continue
            fields = text[text.rindex(")") + 2:].split()
            name = "io" if int(thread) == self.process.pid else text[text.index("(") + 1:text.rindex(")")]
            seconds[int(thread), name] = (int(fields[11]) + int(fields[12])) / ticks
        return seconds


async def metrics(port):
    """{"name{labels}": value}"""
    text = (await http_client.ask(port, "GET", "/metrics")).body.decode()
    return {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}

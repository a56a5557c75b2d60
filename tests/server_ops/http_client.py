"""HTTP/1.1 and server-sent events over asyncio, with nothing but the standard library: what the tests here ask servers with."""
import asyncio
import json
import time


class Answer:
    """An answer that is whole. `events`: when each event came (`time.perf_counter()`); `ending`: the last ones of a stream."""

    def __init__(self, status, headers):
        self.status, self.headers = status, headers
        self.body, self.events, self.ending = b"", [], []
        self.is_done = False  # a stream: [DONE] came; an answer in one piece: all of it did

    def json(self):
        return json.loads(self.body)

    def usage(self):
        """Of an answer that is whole, or of the stream's last events."""
        if self.body:
            return self.json().get("usage") or {}
        for event in reversed(self.ending):
            if event != b"[DONE]" and (usage := json.loads(event).get("usage")):
                return usage
        return {}


class Connection:
    """Kept alive from request to request, opened again when the server has closed it."""

    def __init__(self, host="127.0.0.1", port=0, source=None):
        self.host, self.port = host, port
        self.source = source  # the address to ask from
        self.reader = self.writer = None

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection(
            self.host, self.port, limit=1 << 22, local_addr=(self.source, 0) if self.source else None)

    def close(self):
        if self.writer:
            self.writer.transport.abort()
        self.reader = self.writer = None

    async def ask(self, method, path, body=None, headers=None, on_event=None, on_head=None):
        """Raises OSError or asyncio.IncompleteReadError where the answer breaks off. `on_head(answer)` and `on_event(data)` may raise, too."""
        is_fresh = self.writer is None
        try:
            return await self._ask(method, path, body, headers or {}, on_event, on_head)
        except (ConnectionResetError, BrokenPipeError, asyncio.IncompleteReadError) as error:
            self.close()
            nothing_came = not getattr(error, "partial", b"") and not self.has_head
            if is_fresh or not nothing_came:
                raise
            return await self._ask(method, path, body, headers or {}, on_event, on_head)  # it had been closed while nobody asked
        except BaseException:
            self.close()
            raise

    async def _ask(self, method, path, body, headers, on_event, on_head):
        self.has_head = False
        if self.writer is None:
            await self.open()
        payload = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        head = [f"{method} {path} HTTP/1.1", f"Host: {self.host}:{self.port}"]
        if body is not None:
            head += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        self.writer.write("\r\n".join(head).encode() + b"\r\n\r\n" + payload)
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        self.has_head = True
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:] if line)}
        answer = Answer(int(lines[0].split()[1]), fields)
        if on_head:
            on_head(answer)
        is_stream = fields.get("content-type", "").startswith("text/event-stream")
        if fields.get("transfer-encoding") == "chunked":
            await self._read_chunks(answer, on_event if is_stream else None, is_stream)
        elif "content-length" in fields:
            answer.body = await self.reader.readexactly(int(fields["content-length"]))
            answer.is_done = True
        else:
            answer.body = await self.reader.read(-1)
        if fields.get("connection", "").lower() == "close":
            self.close()
        return answer

    async def _read_chunks(self, answer, on_event, is_stream):
        rest = b""
        while size := int((await self.reader.readuntil(b"\r\n")).split(b";")[0], 16):
            rest += (await self.reader.readexactly(size + 2))[:-2]
            if not is_stream:
                continue
            now = time.perf_counter()
            *events, rest = rest.split(b"\n\n")
            for event in events:
                if not event.startswith(b"data: "):
                    continue  # a comment
                data = event[6:]
                answer.ending = [*answer.ending[-2:], data]
                if data == b"[DONE]":
                    answer.is_done = True
                    continue
                answer.events.append(now)
                if on_event:
                    on_event(data)
        await self.reader.readuntil(b"\r\n")
        if not is_stream:
            answer.body, answer.is_done = rest, True


async def ask(port, method, path, body=None, headers=None, source=None):
    """One request on a connection of its own."""
    connection = Connection(port=port, source=source)
    try:
        return await connection.ask(method, path, body, headers)
    finally:
        connection.close()

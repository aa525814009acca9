"""A receiver that answers at once and notes when each callback came: a process of its own.

It reads only what it must of a request: the key and the run time in its headers. A POST to `/wait/MS` is
answered after so many ms. `GET /report` gives the notes as JSON and forgets them.
"""

import asyncio
import gc
import json
import sys
import time

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
END = b"\r\n\r\n"
KEY, RUN_TIME, LENGTH = b"webhook-id: ", b"X-Scheduler-Run-Time: ", b"Content-Length: "
WAIT = b"POST /wait/"

seen: list[tuple[float, bytes, bytes]] = []


class Sink(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        at = time.time()
        self._rest += data
        answers = b""
        while (end := self._rest.find(END)) >= 0:
            head, follows = self._rest[:end], end + 4
            length = value(head, LENGTH)
            if length:
                follows += int(length)
                if len(self._rest) < follows:
                    break
            self._rest = self._rest[follows:]
            if head.startswith(b"GET /report "):
                answers += report()
                continue
            if key := value(head, KEY):
                seen.append((at, key, value(head, RUN_TIME)))
            if head.startswith(WAIT):
                seconds = int(head[len(WAIT) : head.index(b" ", len(WAIT))]) / 1000
                asyncio.get_running_loop().call_later(seconds, self._transport.write, ANSWER)
            else:
                answers += ANSWER
        if answers:
            self._transport.write(answers)


def value(head: bytes, name: bytes) -> bytes:
    start = head.find(name)
    if start < 0:
        return b""
    end = head.find(b"\r\n", start)
    return head[start + len(name) : end if end >= 0 else None]


def report() -> bytes:
    body = json.dumps([[at, key.decode(), run_time.decode()] for at, key, run_time in seen]).encode()
    seen.clear()
    return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body


async def main() -> None:
    gc.disable()
    server = await asyncio.get_running_loop().create_server(Sink, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))

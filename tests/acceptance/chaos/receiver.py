"""A receiver in a process of its own that misbehaves as the path says, and writes down every request.

    /ok          200 at once                       /fail/2      500 to a key's first two requests, then 200
    /slow/700    200 after 700 ms                  /hang/1      no answer to a key's first request
    /late/1      the first answer comes when the client has given up
    /bytes/1     the first answer comes byte by byte and is not whole in time
    /close/1     closes instead of the first answer

`GET /report` gives the notes as JSON, `[arrival (Unix seconds), key, path, run time]` each, and forgets them.
"""

import asyncio
import json
import sys
import time
from collections import Counter

OK, FAILED = b"200 OK", b"500 Internal Server Error"
TOO_LATE_SECONDS = 6.0
END = b"\r\n\r\n"


class Receiver:
    def __init__(self) -> None:
        self.seen: list[tuple[float, str, str, str]] = []
        self._requests: Counter[str] = Counter()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(END)
                arrived = time.time()
                headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:] if line)
                headers = {name.lower(): value for name, value in headers.items()}
                await reader.readexactly(int(headers.get("content-length", 0)))
                path = head.split(b" ", 2)[1].decode()
                if path == "/report":
                    self._report(writer)
                else:
                    await self._answer(arrived, path, headers, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()  # the client has gone

    async def _answer(
        self, arrived: float, path: str, headers: dict[str, str], writer: asyncio.StreamWriter
    ) -> None:
        key = headers["idempotency-key"]
        self.seen.append((arrived, key, path, headers["x-scheduler-run-time"]))
        self._requests[key] += 1
        how, _, number = path.strip("/").partition("/")
        spoilt = how != "slow" and self._requests[key] <= int(number or 0)
        if how == "slow":
            await asyncio.sleep(int(number) / 1000)
        if not spoilt:
            writer.write(_response(OK, b"ok"))
        elif how == "fail":
            writer.write(_response(FAILED, b"not this time"))
        elif how == "bytes":
            for byte in _response(OK, b"slowly"):
                writer.write(bytes([byte]))
                await writer.drain()
                await asyncio.sleep(0.1)
        elif how == "close":
            writer.transport.abort()
            raise ConnectionError
        else:
            await asyncio.sleep(TOO_LATE_SECONDS if how == "late" else 3600)
            writer.write(_response(OK, b"late"))

    def _report(self, writer: asyncio.StreamWriter) -> None:
        body = json.dumps(self.seen).encode()
        self.seen.clear()
        writer.write(_response(OK, body))


def _response(status: bytes, body: bytes) -> bytes:
    return b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body)


async def main(host: str = "127.0.0.1") -> None:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.serve, host, 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))

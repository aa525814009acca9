"""TLS in front of a server that speaks none, as a terminator in front of Redis does it."""

import asyncio
import contextlib
import ssl
import threading
from types import TracebackType
from typing import Self


class TlsLink:
    """Passes what comes by TLS to a port of 127.0.0.1 on to `target_port`; the thread ends with `close`."""

    def __init__(self, target_port: int, context: ssl.SSLContext) -> None:
        self._target_port = target_port
        self._context = context
        self._loop = asyncio.new_event_loop()
        self.port = 0
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        # Refused handshakes are what some tests are about.
        self._loop.set_exception_handler(lambda loop, context: None)
        starting = asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        server = self._loop.run_until_complete(starting)
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target_port)
        await asyncio.gather(_pass(reader, back), _pass(there, writer))


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    # A lost connection is the end of this one: the other end is told by the close.
    with contextlib.suppress(ConnectionError, ssl.SSLError), contextlib.closing(writer):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()

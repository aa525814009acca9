"""A TCP link that can be cut in one direction or in both, without either end being told.

Bytes of a cut direction are held back, as a network that drops packets holds them back: the ends see silence,
and neither an error nor a closed connection. New connections are accepted and hear nothing. What was held
goes on its way when the link is restored.
"""

import asyncio
import contextlib
import threading
from types import TracebackType
from typing import Self


class Link:
    """A proxy on a port of 127.0.0.1 to `target_port`; the thread ends with `close`."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._there, self._back = asyncio.Event(), asyncio.Event()
        self._there.set()
        self._back.set()
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        ready.wait()

    def cut(self, *, there: bool = True, back: bool = True) -> None:
        """`there` is from the client to the server, `back` the way of the answers."""
        if there:
            self._loop.call_soon_threadsafe(self._there.clear)
        if back:
            self._loop.call_soon_threadsafe(self._back.clear)

    def restore(self) -> None:
        self._loop.call_soon_threadsafe(self._there.set)
        self._loop.call_soon_threadsafe(self._back.set)

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
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_server = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            self._pass(reader, to_server[1], self._there), self._pass(to_server[0], writer, self._back)
        )

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, is_open: asyncio.Event
    ) -> None:
        # A lost connection is the end of this one: the other end is told by the close.
        with contextlib.suppress(ConnectionError), contextlib.closing(writer):
            while data := await reader.read(65536):
                await is_open.wait()
                writer.write(data)
                await writer.drain()

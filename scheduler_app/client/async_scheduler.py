"""The client for asyncio, `AsyncScheduler`, which sends calls with `httpx`."""

import asyncio
from collections.abc import AsyncIterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx

from scheduler_app.client.calls import Call, tenant_header
from scheduler_app.client.methods import AsyncClient
from scheduler_app.client.operations import SchedulerOperations
from scheduler_app.client.tries import Reply, Tries, no_address, refusal, unreachable

if TYPE_CHECKING:
    from scheduler_app.client.audit import AsyncAudit
    from scheduler_app.client.calendars import AsyncCalendars
    from scheduler_app.client.destinations import AsyncDestinations
    from scheduler_app.client.ledger import AsyncLedger
    from scheduler_app.client.messages import AsyncMessages

T = TypeVar("T")


class AsyncHttp:
    """Kept connections, which the tasks of one event loop share."""

    def __init__(
        self,
        url: str,
        api_key: str | None,
        tenant: str | None,
        timeout: float,
        retries: int,
        give_up_seconds: float | None,
    ) -> None:
        """`timeout` for connecting, for each wait for bytes and for a free connection, seconds; `retries`
        beyond the first try."""
        self._url = url.rstrip("/")
        self._retries = retries
        self._give_up_seconds = give_up_seconds
        headers = tenant_header(tenant) | ({"Authorization": f"Bearer {api_key}"} if api_key else {})
        # A redirect could send the key to another server.
        self._client = httpx.AsyncClient(headers=headers, timeout=timeout, follow_redirects=False)

    async def send(self, call: Call[T]) -> T:
        """The result of `call`, which is sent again where that is safe. Raises SchedulerError."""
        tries, request = Tries(call, self._retries, self._give_up_seconds), self._request(call)
        while True:
            try:
                reply = _reply(await self._client.send(request))
            except httpx.HTTPError as error:
                lost = isinstance(error, httpx.TransportError)
                delay = tries.delay_after(None) if lost else None
                if delay is None:
                    raise unreachable(self._url, error) from error
            else:
                delay = tries.delay_after(reply)
                if delay is None:
                    return tries.result(reply)
            await asyncio.sleep(delay)

    async def lines(self, call: Call[Any]) -> AsyncIterator[str]:
        """Yields the lines of an answer as they come. It does not retry: lines may have been used."""
        request = self._request(call)
        try:
            answer = await self._client.send(request, stream=True)
            try:
                if answer.status_code != 200:
                    await answer.aread()
                    raise refusal(_reply(answer))
                rest = b""
                # httpx's own lines end also where a text within JSON has a line separator of Unicode.
                async for chunk in answer.aiter_bytes():
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        yield line.decode()
                if rest:
                    yield rest.decode()
            finally:
                await answer.aclose()
        except httpx.HTTPError as error:
            raise unreachable(self._url, error) from error

    async def close(self) -> None:
        await self._client.aclose()

    def _request(self, call: Call[T]) -> httpx.Request:
        """Raises SchedulerError if the client's URL is not a URL."""
        try:
            url = httpx.URL(f"{self._url}{call.target}")
        except httpx.InvalidURL:
            raise no_address(self._url) from None
        if url.scheme not in ("http", "https") or not url.host:
            raise no_address(self._url)
        return self._client.build_request(call.method, url, content=call.content, headers=call.headers)


def _reply(answer: httpx.Response) -> Reply:
    return Reply(answer.status_code, answer.reason_phrase, answer.headers, answer.content)


class AsyncScheduler(SchedulerOperations, AsyncClient):
    """`Scheduler` for asyncio, over httpx: the same methods, to be awaited, and iterators for `async for`.

    The tasks of one event loop share it, and its connections; close it, or use it by `async with`.
    """

    _http: AsyncHttp

    def __init__(
        self,
        url: str,
        api_key: str | None = None,
        *,
        tenant: str | None = None,
        timeout: float = 10.0,
        retries: int = 3,
        give_up_seconds: float | None = None,
    ) -> None:
        """`tenant` is for a key of the installation, which acts in `default` without it.
        `timeout` seconds for connecting and for each wait for bytes; `retries` beyond the first try, and
        none that would begin later than `give_up_seconds`."""
        super().__init__(AsyncHttp(url, api_key, tenant, timeout, retries, give_up_seconds))

    # Imported on demand: most programs, and each command, use one of them at most.

    @cached_property
    def messages(self) -> "AsyncMessages":
        from scheduler_app.client.messages import AsyncMessages

        return AsyncMessages(self._http)

    @cached_property
    def calendars(self) -> "AsyncCalendars":
        from scheduler_app.client.calendars import AsyncCalendars

        return AsyncCalendars(self._http)

    @cached_property
    def ledger(self) -> "AsyncLedger":
        from scheduler_app.client.ledger import AsyncLedger

        return AsyncLedger(self._http)

    @cached_property
    def audit(self) -> "AsyncAudit":
        from scheduler_app.client.audit import AsyncAudit

        return AsyncAudit(self._http)

    @cached_property
    def destinations(self) -> "AsyncDestinations":
        from scheduler_app.client.destinations import AsyncDestinations

        return AsyncDestinations(self._http)

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self.close()

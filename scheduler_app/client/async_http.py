"""Calls sent with `httpx`, for asyncio."""

import asyncio
from collections.abc import AsyncIterator
from typing import TypeVar

import httpx

from scheduler_app.client.calls import Call
from scheduler_app.client.tries import Reply, Tries, no_address, refusal, unreachable

T = TypeVar("T")


class AsyncHttp:
    """Kept connections, which the tasks of one event loop share."""

    def __init__(
        self, url: str, api_key: str | None, *, timeout: float, retries: int, give_up_seconds: float | None
    ) -> None:
        """`timeout` for connecting, for each wait for bytes and for a free connection, seconds; `retries`
        beyond the first try."""
        self._url = url.rstrip("/")
        self._retries = retries
        self._give_up_seconds = give_up_seconds
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
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
                delay = tries.delay_after_failure() if lost else None
                if delay is None:
                    raise unreachable(self._url, error) from error
            else:
                delay = tries.delay_after(reply)
                if delay is None:
                    return tries.result(reply)
            await asyncio.sleep(delay)

    async def lines(self, call: Call[None]) -> AsyncIterator[str]:
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
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Reply(answer.status_code, answer.reason_phrase, headers, answer.content)

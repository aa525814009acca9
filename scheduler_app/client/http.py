"""Calls sent with `requests`."""

import time
from collections.abc import Iterator
from typing import TypeVar

import requests
from requests.auth import AuthBase

from scheduler_app.client.calls import Call
from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.tries import Reply, Tries, no_address, refusal, unreachable

T = TypeVar("T")

_CHUNK_BYTES = 65_536


class _Key(AuthBase):
    """The key as `auth` of the session: requests would replace a plain header by a login of ~/.netrc."""

    def __init__(self, key: str | None) -> None:
        self._key = key

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        return request


class Http:
    """One session of kept connections; threads may not share it."""

    def __init__(
        self, url: str, api_key: str | None, *, timeout: float, retries: int, give_up_seconds: float | None
    ) -> None:
        """`timeout` for connecting and for each wait for bytes, seconds; `retries` beyond the first try."""
        self._url = url.rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self._give_up_seconds = give_up_seconds
        self._session = requests.Session()
        self._session.auth = _Key(api_key)

    def send(self, call: Call[T]) -> T:
        """The result of `call`, which is sent again where that is safe. Raises SchedulerError."""
        tries = Tries(call, self._retries, self._give_up_seconds)
        while True:
            try:
                with self._answer(call) as answer:
                    reply = _reply(answer)
            except requests.RequestException as error:
                lost = isinstance(error, requests.ConnectionError | requests.Timeout)
                delay = tries.delay_after_failure() if lost else None
                if delay is None:
                    raise self._unreachable(error) from error
            else:
                delay = tries.delay_after(reply)
                if delay is None:
                    return tries.result(reply)
            time.sleep(delay)

    def lines(self, call: Call[None]) -> Iterator[str]:
        """Yields the lines of an answer as they come. It does not retry: lines may have been used."""
        try:
            with self._answer(call, stream=True) as answer:
                if answer.status_code != 200:
                    raise refusal(_reply(answer))
                for line in answer.iter_lines(_CHUNK_BYTES):
                    yield line.decode()
        except requests.RequestException as error:
            raise self._unreachable(error) from error

    def close(self) -> None:
        self._session.close()

    def _answer(self, call: Call[T], *, stream: bool = False) -> requests.Response:
        return self._session.request(
            call.method,
            f"{self._url}{call.target}",
            data=call.content,
            headers=call.headers,
            timeout=self._timeout,
            # A redirect could send the key to another server.
            allow_redirects=False,
            stream=stream,
        )

    def _unreachable(self, error: requests.RequestException) -> SchedulerError:
        if isinstance(error, requests.exceptions.InvalidSchema | requests.exceptions.MissingSchema):
            return no_address(self._url)
        return unreachable(self._url, error)


def _reply(answer: requests.Response) -> Reply:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    return Reply(answer.status_code, answer.reason, headers, answer.content)

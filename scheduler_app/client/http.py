"""Requests to the API, with the key and a time limit, retried where that is safe."""

import random
import time
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

import requests
from requests.auth import AuthBase

from scheduler_app.client.errors import SchedulerError, of_answer

Json = dict[str, Any]

#: Transient statuses: overloaded or unavailable.
_TRANSIENT = (429, 502, 503, 504)
_FIRST_DELAY_SECONDS = 0.2
_LONGEST_DELAY_SECONDS = 10.0
_CHUNK_BYTES = 65_536
_EXAMPLE = "http://127.0.0.1:8080"


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

    def __init__(self, url: str, api_key: str | None, *, timeout: float, retries: int) -> None:
        """`timeout` for connecting and for each wait for bytes, seconds; `retries` beyond the first try."""
        self._url = url.rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self._session = requests.Session()
        self._session.auth = _Key(api_key)

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Json:
        return self._request("GET", path, query=query)

    def lines(self, path: str, query: Mapping[str, Any]) -> Iterator[str]:
        """Yields the lines of an answer as they come. It does not retry: lines may have been used."""
        try:
            with self._session.get(
                f"{self._url}{path}",
                params=query,
                timeout=self._timeout,
                allow_redirects=False,
                stream=True,
            ) as answer:
                if not answer.ok or answer.is_redirect:
                    raise of_answer(answer)
                for line in answer.iter_lines(_CHUNK_BYTES):
                    yield line.decode()
        except requests.RequestException as error:
            raise self._unreachable(error) from error

    def put(self, path: str, body: Json, *, dry_run: bool = False) -> Json:
        return self._request("PUT", path, query=_dry(dry_run), body=body)

    def post(
        self, path: str, body: Json | None = None, *, key: str | None = None, dry_run: bool = False
    ) -> Json:
        """Sends an Idempotency-Key, `key` or a new one: the API acts once, however often it is asked."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        body = {} if body is None else body
        return self._request("POST", path, query=_dry(dry_run), body=body, headers=headers)

    def delete(self, path: str) -> None:
        """Deletes. A 404 after a retry is a success: the first try, whose answer was lost, has deleted it."""
        self._request("DELETE", path, accept_404_after_retry=True)

    def close(self) -> None:
        self._session.close()

    def _unreachable(self, error: requests.RequestException) -> SchedulerError:
        if isinstance(error, requests.exceptions.InvalidSchema | requests.exceptions.MissingSchema):
            return SchedulerError(f"{self._url!r} is no address of an API; give one such as {_EXAMPLE}")
        return SchedulerError(f"{self._url} cannot be reached: {_short(error)}")

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Json | None = None,
        headers: Mapping[str, str] | None = None,
        accept_404_after_retry: bool = False,
    ) -> Json:
        tries = 0
        while True:
            tries += 1
            try:
                answer = self._session.request(
                    method,
                    f"{self._url}{path}",
                    params=query,
                    json=body,
                    headers=headers,
                    timeout=self._timeout,
                    # A redirect could send the key to another server.
                    allow_redirects=False,
                )
            except requests.RequestException as error:
                if tries > self._retries or not isinstance(
                    error, requests.ConnectionError | requests.Timeout
                ):
                    raise self._unreachable(error) from error
                time.sleep(_delay(tries, None))
                continue
            if accept_404_after_retry and tries > 1 and answer.status_code == 404:
                return {}
            if not _is_transient(answer) or tries > self._retries:
                return _content(answer)
            time.sleep(_delay(tries, answer.headers.get("Retry-After")))


def _dry(dry_run: bool) -> Json | None:
    return {"dry_run": "true"} if dry_run else None


def _is_transient(answer: requests.Response) -> bool:
    # A conflict with Retry-After: the first request with this Idempotency-Key is still being processed.
    in_flight = answer.status_code == 409 and "Retry-After" in answer.headers
    return answer.status_code in _TRANSIENT or in_flight


def _delay(tries: int, retry_after: str | None) -> float:
    """Returns the seconds until the next try: Retry-After, or a delay that doubles, with random jitter."""
    if retry_after and retry_after.isdigit():
        return min(float(retry_after), _LONGEST_DELAY_SECONDS)
    most = min(_FIRST_DELAY_SECONDS * 2 ** (tries - 1), _LONGEST_DELAY_SECONDS)
    return random.uniform(most / 2, most)  # noqa: S311


def _content(answer: requests.Response) -> Json:
    if not answer.ok or answer.is_redirect:
        raise of_answer(answer)
    try:
        content = answer.json()
    except ValueError:
        raise of_answer(answer) from None
    if not isinstance(content, dict):
        raise of_answer(answer)
    return content


def _short(error: Exception) -> str:
    """Returns a requests error in few words: its root cause says what happened."""
    cause: BaseException = error
    while cause.__cause__ or cause.__context__:
        cause = cause.__cause__ or cause.__context__ or cause
    return str(cause) or type(cause).__name__

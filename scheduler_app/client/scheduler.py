"""The client `Scheduler`, which sends calls with `requests`."""

import time
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import requests
from requests.auth import AuthBase

from scheduler_app.client.calls import Call, tenant_header
from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.methods import SyncClient
from scheduler_app.client.operations import SchedulerOperations
from scheduler_app.client.tries import Reply, Tries, no_address, refusal, unreachable

if TYPE_CHECKING:
    from scheduler_app.client.audit import Audit
    from scheduler_app.client.calendars import Calendars
    from scheduler_app.client.destinations import Destinations
    from scheduler_app.client.ledger import Ledger
    from scheduler_app.client.messages import Messages

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
        self,
        url: str,
        api_key: str | None,
        tenant: str | None,
        timeout: float,
        retries: int,
        give_up_seconds: float | None,
    ) -> None:
        """`timeout` for connecting and for each wait for bytes, seconds; `retries` beyond the first try."""
        self.url = url.rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self._give_up_seconds = give_up_seconds
        self._session = requests.Session()
        self._session.auth = _Key(api_key)
        self._session.headers.update(tenant_header(tenant))

    def send(self, call: Call[T]) -> T:
        """The result of `call`, which is sent again where that is safe. Raises SchedulerError."""
        tries = Tries(call, self._retries, self._give_up_seconds)
        while True:
            try:
                with self._answer(call) as answer:
                    reply = _reply(answer)
            except requests.RequestException as error:
                lost = isinstance(error, requests.ConnectionError | requests.Timeout)
                delay = tries.delay_after(None) if lost else None
                if delay is None:
                    raise self._unreachable(error) from error
            else:
                delay = tries.delay_after(reply)
                if delay is None:
                    return tries.result(reply)
            time.sleep(delay)

    def lines(self, call: Call[Any]) -> Iterator[str]:
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
            f"{self.url}{call.target}",
            data=call.content,
            headers=call.headers,
            timeout=self._timeout,
            # A redirect could send the key to another server.
            allow_redirects=False,
            stream=stream,
        )

    def _unreachable(self, error: requests.RequestException) -> SchedulerError:
        if isinstance(error, requests.exceptions.InvalidSchema | requests.exceptions.MissingSchema):
            return no_address(self.url)
        return unreachable(self.url, error)


def _reply(answer: requests.Response) -> Reply:
    return Reply(answer.status_code, answer.reason, answer.headers, answer.content)


class Scheduler(SchedulerOperations, SyncClient):
    """Every method raises SchedulerError. What they return has attributes, and is also the API's JSON as a
    mapping: see `Record`.

    Each thread needs its own. What is sent again after a lost answer is done once.
    """

    _http: Http

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
        self._sending = Http(url, api_key, tenant, timeout, retries, give_up_seconds)
        super().__init__(self._sending)

    @property
    def url(self) -> str:
        """The address of the API."""
        return self._sending.url

    # Imported on demand: most programs, and each command, use one of them at most.

    @cached_property
    def messages(self) -> "Messages":
        from scheduler_app.client.messages import Messages

        return Messages(self._http)

    @cached_property
    def calendars(self) -> "Calendars":
        from scheduler_app.client.calendars import Calendars

        return Calendars(self._http)

    @cached_property
    def ledger(self) -> "Ledger":
        from scheduler_app.client.ledger import Ledger

        return Ledger(self._http)

    @cached_property
    def audit(self) -> "Audit":
        from scheduler_app.client.audit import Audit

        return Audit(self._http)

    @cached_property
    def destinations(self) -> "Destinations":
        from scheduler_app.client.destinations import Destinations

        return Destinations(self._http)

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

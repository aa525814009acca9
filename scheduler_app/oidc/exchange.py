"""One request to the provider and its answer, bounded in time and in size.

A thread of its own makes each: whoever asks waits `ANSWER_SECONDS` at most, however slowly an answer comes. A
provider that gave no answer is left alone for `AWAY_SECONDS`: whoever asks meanwhile is told at once.
Redirects are not followed, proxies and `.netrc` of the environment not used, certificates always verified.
"""

import ipaddress
import json
import queue
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter

from scheduler_app.clock import monotonic
from scheduler_app.domain.sign_in_flow import ProviderAway

#: What a person waits for one answer.
ANSWER_SECONDS: Final = 5.0
#: To connect, and between two pieces of an answer.
_SOCKET_SECONDS: Final = (3.0, 4.0)
MAX_ANSWER_BYTES: Final = 256 * 1024
AWAY_SECONDS: Final = 10.0
#: Requests of a process at a time; who comes beyond that is told at once.
MAX_IN_FLIGHT: Final = 4


class _BoundedAdapter(HTTPAdapter):
    """Reads an answer as it is sent, up to `MAX_ANSWER_BYTES`."""

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        options["stream"] = True
        answer = super().send(request, *args, **options)
        try:
            content = answer.raw.read(MAX_ANSWER_BYTES + 1, decode_content=True)
        finally:
            answer.close()
        if len(content) > MAX_ANSWER_BYTES:
            raise requests.exceptions.ContentDecodingError(
                f"it is larger than {MAX_ANSWER_BYTES // 1024} KiB", request=request
            )
        # As requests keeps what it has read itself.
        answer._content, answer._content_consumed = content, True  # type: ignore[attr-defined]
        return answer


def bound(session: requests.Session) -> None:
    """Makes a session of requests send as this module says."""
    session.trust_env = False
    for prefix in ("https://", "http://"):
        session.mount(prefix, _BoundedAdapter(max_retries=0))


class Exchanges:
    """The requests of one process."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(MAX_IN_FLIGHT)
        self._away_at = float("-inf")

    def get(self, url: str, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON object at a URL. Raises ProviderAway."""

        def ask() -> dict[str, Any]:
            with requests.Session() as session:
                bound(session)
                answer = session.get(url, headers=headers, timeout=_SOCKET_SECONDS, allow_redirects=False)
            if answer.status_code != 200:
                raise ProviderAway(f"{_shown(url)} answered {answer.status_code}")
            try:
                found = json.loads(answer.content)
            except ValueError:
                found = None
            if not isinstance(found, dict):
                raise ProviderAway(f"{_shown(url)} answered what is no JSON object")
            return found

        return self.run(url, ask)

    def run(self, url: str, ask: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What `ask` answers, which makes one request to this URL. Raises ProviderAway, and what `ask` raises
        beside the errors of requests."""
        if monotonic() - self._away_at < AWAY_SECONDS:
            raise ProviderAway("it gave no answer a moment ago")
        if not self._free.acquire(blocking=False):
            raise ProviderAway(f"{MAX_IN_FLIGHT} requests to it wait for their answers already")
        answers: queue.SimpleQueue[dict[str, Any] | BaseException] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put(ask())
            except requests.RequestException as error:
                # Its text may quote the URL with its parameters.
                self._away_at = monotonic()
                answers.put(ProviderAway(f"{_shown(url)} gave no answer: {type(error).__name__}"))
            except BaseException as error:
                answers.put(error)
            finally:
                self._free.release()

        threading.Thread(target=work, name="oidc", daemon=True).start()
        try:
            found = answers.get(timeout=ANSWER_SECONDS)
        except queue.Empty:
            self._away_at = monotonic()
            raise ProviderAway(f"{_shown(url)} gave no answer within {ANSWER_SECONDS:g} s") from None
        if isinstance(found, BaseException):
            raise found
        return found


def timeouts() -> tuple[float, float]:
    """What requests takes for the times of its sockets."""
    return _SOCKET_SECONDS


def is_safe(url: object) -> bool:
    """Whether nobody between may read or change what is asked there: by https, or on this machine."""
    if not isinstance(url, str):
        return False
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return False
    if parts.username is not None or parts.fragment or not host:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and _is_loopback(host))


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(url: str) -> str:
    """The URL without its parameters."""
    return url.partition("?")[0][:200]

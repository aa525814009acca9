"""The API as a careful client uses it: whoever gets no answer asks again, at another process."""

import itertools
import secrets
import time
from collections.abc import Mapping, Sequence
from typing import Any

import requests

GIVE_UP_SECONDS = 150
#: Longer than any command to MongoDB: what was asked is answered, or its process is gone.
ANSWER_SECONDS = 35
ASK_AGAIN = {409, 500, 502, 503, 504}


class People:
    """Thread-safe; asks the APIs on `ports` in turn, with `headers` in each request."""

    def __init__(self, ports: Sequence[int], headers: Mapping[str, str] | None = None) -> None:
        self._ports = itertools.cycle(ports)
        self._headers = headers or {}

    def post(self, path: str, body: Any = None, **headers: str) -> requests.Response:
        return self.ask("POST", path, body, **{"Idempotency-Key": secrets.token_hex(8), **headers})

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> requests.Response:
        """The first answer that is neither an error of theirs nor a conflict with our own try before."""
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while True:
            said: object
            try:
                answer = requests.request(
                    method,
                    f"http://127.0.0.1:{next(self._ports)}/api{path}",
                    json=body,
                    headers={**self._headers, **headers},
                    timeout=(2, ANSWER_SECONDS),
                )
                if answer.status_code not in ASK_AGAIN:
                    return answer
                said = f"{answer.status_code} {answer.text}"
            except requests.RequestException as error:
                said = error
            if time.monotonic() > deadline:
                raise TimeoutError(f"{method} {path}: no answer within {GIVE_UP_SECONDS} s; last: {said}")
            time.sleep(0.2)

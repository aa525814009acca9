"""A recorded run: requests and what they were answered, as pages of text."""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from werkzeug.test import TestResponse

from tests.acceptance.journal import Journal
from tests.golden.product import ADMIN, Product, readable

#: What Werkzeug adds, and what follows from a body whose placeholders have other lengths.
NOT_OURS: Final = {"Content-Length", "Date", "Server", "Connection"}
#: Bodies of these types are other people's files or the manual: their length and hash say enough.
_LEFT_OUT: Final = (
    "text/css",
    "javascript",
    "image/",
    "font/",
    "application/yaml",
    "application/schema+json",
)
#: Of a long body the beginning is written down.
MOST_OF_A_BODY: Final = 2_000
#: Several requests to one path are sent at the same time, in any order.
SORTED_BY: Final = (
    "x-scheduler-run-time",
    "x-scheduler-schedule-id",
    "x-scheduler-attempt",
    "content-length",
)


class Recording:
    """What one product was asked, by topic, in order. `asked` holds each request's method and path with the
    status of its answer; `names` what was drawn, with what stands for it."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.pages: defaultdict[str, list[str]] = defaultdict(list)
        self.asked: list[tuple[str, str, int]] = []
        self.names: dict[str, str] = {}
        self.topic = ""
        self._messages: list[dict[str, Any]] = []

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        data: bytes | str | None = None,
        key: str | None = ADMIN,
    ) -> TestResponse:
        """Makes a request with `body` as JSON, or `data` as it is, and writes down both sides. The header
        with the key is not written down where it is the usual one. A second passes before each write."""
        if method != "GET":
            self.product.time.pass_by(seconds=1)
        sent = dict(headers or {})
        said = dict(sent)
        if key is not None:
            sent["X-API-Key"] = key
            if key != ADMIN:
                said["X-API-Key"] = key
        given: dict[str, Any] = {} if body is None else {"json": body}
        if data is not None:
            given["data"] = data
        answer = self.product.client.open(path, method=method, headers=sent, **given)
        self.asked.append((method, path.partition("?")[0], answer.status_code))
        shown = [f"{method} {path}", *(f"{name}: {value}" for name, value in said.items())]
        if body is not None:
            shown.append(_json(body))
        if data is not None:
            shown.append((data if isinstance(data, str) else repr(data))[:MOST_OF_A_BODY])
        shown += ["", answer.status, *_headers(answer), *_body(answer)]
        self.write("\n".join(shown))
        return answer

    def write(self, text: str) -> None:
        self.pages[self.topic].append(text.rstrip("\n") + "\n")

    def tick(self, *names: str) -> None:
        """One with all duties or those of these names."""
        self.product.beat(*names).run()
        self.write(f"(a tick of a beat{': ' if names else ''}{', '.join(names)})")

    def deliver(self) -> None:
        """A worker delivers what is in the queue, and the messages are kept, for the page of messages."""
        for message in self.product.deliver():
            self._messages.append(message)
        self.write("(a worker has delivered what was in the queue)")

    def pass_by(self, **length: float) -> None:
        self.product.time.pass_by(**length)
        self.write(f"(it is {self.product.time.at:%Y-%m-%dT%H:%M:%SZ})")

    def messages(self) -> str:
        """Those for our workers, as they were taken from Redis, and those for another Celery application."""
        return shown_messages([*self._messages, *self.product.foreign_messages()])

    def callbacks(self, journal: Journal) -> str:
        """The requests that receivers got, by path and by what they were for."""
        shown = []
        for path, calls in sorted(journal.calls.items()):
            for call in sorted(
                calls, key=lambda call: [call.seen.headers.get(name, "") for name in SORTED_BY]
            ):
                headers = [f"{name}: {value}" for name, value in sorted(call.seen.headers.items())]
                body = call.seen.body.decode("utf-8", "backslashreplace").replace("\0", "\\x00")
                shown.append(
                    "\n".join([f"{call.seen.method} {path}", *headers, *(["", body] if body else [])])
                )
        return "\n\n--------\n\n".join(shown) + "\n"

    def text(self, topic: str) -> str:
        return "\n--------\n\n".join(self.pages[topic])


def shown_messages(messages: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(_json(readable(each)) for each in messages) + "\n"


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False)


def _in_order(value: Any) -> Any:
    """Failures and what they touch, in an order that follows neither from ids of their causes, which are
    made of the receiver's port, nor from which worker was first."""
    if isinstance(value, list):
        return [_in_order(each) for each in value]
    if not isinstance(value, dict):
        return value
    found = {name: _in_order(each) for name, each in value.items()}
    if "exact" in found:
        found["names"] = sorted(found["names"])
    if isinstance(found.get("failures"), list):
        of_one_time = sorted(found["failures"], key=lambda each: [each["kind"], each.get("failure", "")])
        # Not as texts: an instant without milliseconds would come after those of the same second.
        found["failures"] = sorted(
            of_one_time, key=lambda each: datetime.fromisoformat(each["since"]), reverse=True
        )
    return found


def _headers(answer: TestResponse) -> list[str]:
    # A file's are made of its time, which differs from checkout to checkout.
    of_file = ("ETag", "Last-Modified") if "Content-Disposition" in answer.headers else ()
    shown = ((name, "(of the file)" if name in of_file else value) for name, value in sorted(answer.headers))
    return [f"{name}: {value}" for name, value in shown if name not in NOT_OURS]


def _body(answer: TestResponse) -> list[str]:
    if any(each in (answer.content_type or "") for each in _LEFT_OUT):
        return ["", "(not recorded)"]
    if not answer.data:
        return []
    text = answer.get_data(as_text=True)
    kind = answer.mimetype or ""
    if kind == "application/x-ndjson":
        return ["", *(_json(json.loads(line)) for line in text.splitlines())]
    if kind.endswith("json"):
        return ["", _json(_in_order(json.loads(text)))]
    if kind == "text/html":
        return ["", *(line.strip() for line in text.splitlines() if line.strip())]
    return ["", text.replace("\r\n", "\n").rstrip("\n")]

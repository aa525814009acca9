"""How something is delivered, as documents of schedules, destinations and messages keep it: retries, timeout,
codes of success, lateness, notifications, signing.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from scheduler_app.config import MAX_TIMEOUT_SECONDS
from scheduler_app.domain.deliverable import RetiringSecret, Signing
from scheduler_app.domain.ids import SEPARATOR
from scheduler_app.domain.lateness import LEAST_SECONDS, MAX_SECONDS, CatchUp, Lateness
from scheduler_app.domain.notification import Notifying
from scheduler_app.domain.retry import MAX_BACKOFF_SECONDS, MAX_RETRIES, Codes, RetryPolicy
from scheduler_app.domain.stored_fields import (
    Corrupt,
    fields,
    instant,
    items,
    number,
    one_of,
    optional,
    text,
    whole,
)
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.mongo import Document

#: The shortest timeout, whatever a schedule asks for.
LEAST_TIMEOUT_SECONDS = 0.001

#: Most documents have the same fields: how many different ones are kept as they were read, and the most
#: characters of one that is kept.
MOST_READ, LONGEST_READ = 256, 2_000
_read: dict[str, "DeliveryFields"] = {}

#: Most documents have the same ones, and reading them is half of what reading a schedule costs.
_codes = lru_cache(maxsize=256)(Codes)


class DeliveryFields(NamedTuple):
    """What `read_delivery` finds in a document."""

    retry: RetryPolicy
    timeout_seconds: float
    success: Codes


@lru_cache(maxsize=256, typed=True)
def delivery_document(retry: RetryPolicy, timeout_seconds: float, success: Codes) -> Document:
    """The fields that `read_delivery` reads. Documents share them, and they are never changed."""
    return {
        "retry": {
            "max_retries": retry.max_retries,
            "backoff_seconds": retry.backoff_seconds,
            "backoff_max_seconds": retry.backoff_max_seconds,
            "codes": list(retry.codes.written),
        },
        "timeout_seconds": timeout_seconds,
        "success": list(success.written),
    }


def read_delivery(row: Mapping[str, Any]) -> DeliveryFields:
    """Raises Corrupt."""
    # As text, in which 1, 1.0 and true differ.
    written = repr((row.get("retry"), row.get("timeout_seconds"), row.get("success")))
    found = _read.get(written)
    if found is None:
        found = _read_delivery(row)
        if len(written) <= LONGEST_READ:
            if len(_read) >= MOST_READ:
                _read.clear()
            _read[written] = found
    return found


def _read_delivery(row: Mapping[str, Any]) -> DeliveryFields:
    retry = fields(row.get("retry"), "retry")
    return DeliveryFields(
        RetryPolicy(
            max_retries=whole(retry.get("max_retries"), "retry.max_retries", most=MAX_RETRIES),
            backoff_seconds=number(
                retry.get("backoff_seconds"), "retry.backoff_seconds", most=MAX_BACKOFF_SECONDS
            ),
            backoff_max_seconds=number(
                retry.get("backoff_max_seconds"), "retry.backoff_max_seconds", most=MAX_BACKOFF_SECONDS
            ),
            codes=read_codes(retry.get("codes"), "retry.codes"),
        ),
        number(
            row.get("timeout_seconds"),
            "timeout_seconds",
            least=LEAST_TIMEOUT_SECONDS,
            most=MAX_TIMEOUT_SECONDS,
        ),
        read_codes(row.get("success"), "success"),
    )


def notifies_document(on_success: str | None, on_failure: str | None) -> list[Document] | None:
    """What `read_notifies` reads; None if nobody is told. A list, so that one index tells who names a
    destination."""
    named = {Notifying.ON_SUCCESS: on_success, Notifying.ON_FAILURE: on_failure}
    return [{"when": when.value, "destination": name} for when, name in named.items() if name] or None


def read_notifies(value: Any) -> dict[Notifying, str]:
    """Who is told when, by the names of destinations. Raises Corrupt."""
    found: dict[Notifying, str] = {}
    for each in items([] if value is None else value, "notifies"):
        pair = fields(each, "an item of notifies")
        when = Notifying(one_of(pair.get("when"), "notifies.when", tuple(Notifying)))
        found[when] = destination_name(pair.get("destination"), "notifies.destination")
    return found


def destination_name(value: Any, name: str) -> str:
    """The name of a destination of the document's own tenant. Raises Corrupt."""
    if SEPARATOR in text(value, name) or not value:
        raise Corrupt(f"{name} is no name that a destination may have")
    return str(value)


def read_codes(value: Any, name: str) -> Codes:
    """Raises Corrupt."""
    # To a cache 5.0 and True are numbers like 5 and 1, and a list has no hash.
    written = [
        code if isinstance(code, str) else whole(code, f"an item of {name}") for code in items(value, name)
    ]
    try:
        return _codes(tuple(written))
    except ValueError as error:
        raise Corrupt(f"{name}: {error}") from None


_CATCH_UP = tuple(each.value for each in CatchUp)
_NEVER_LATE = Lateness()


def lateness_document(lateness: Lateness) -> Document | None:
    """What `read_lateness` reads; None for what a document without the field means."""
    if lateness == _NEVER_LATE:
        return None
    document: Document = {
        "catch_up": lateness.catch_up.value,
        "window_seconds": lateness.window_seconds,
        "late_after_seconds": lateness.late_after_seconds,
    }
    if lateness.expire_after_seconds is not None:
        document["expire_after_seconds"] = lateness.expire_after_seconds
    return document


def read_lateness(value: Any) -> Lateness:
    """Raises Corrupt."""
    if value is None:
        return _NEVER_LATE
    row = fields(value, "lateness")

    def seconds(given: Any, name: str) -> float:
        return number(given, f"lateness.{name}", least=LEAST_SECONDS, most=MAX_SECONDS)

    return Lateness(
        CatchUp(one_of(row.get("catch_up"), "lateness.catch_up", _CATCH_UP)),
        seconds(row.get("window_seconds"), "window_seconds"),
        seconds(row.get("late_after_seconds"), "late_after_seconds"),
        optional(seconds, row.get("expire_after_seconds"), "expire_after_seconds"),
    )


def unsealed(value: Any, name: str, secret_box: SecretBox) -> str:
    """The value that an older release encrypted by itself, or that was not encrypted. Raises Corrupt and
    UnreadableSecret."""
    single = fields(value, name)
    text(single.get("value"), f"{name}: a sealed value")
    whole(single.get("enc"), f"{name}: enc", most=1)
    return secret_box.open_single(single)


def signing_document(signing: Signing | None) -> Document | None:
    """What `read_signing` reads; None if nothing signs."""
    if signing is None:
        return None
    return {
        "secret": {"enc": 0, "value": signing.secret},
        "since": signing.since,
        "retiring": [
            {"secret": {"enc": 0, "value": old.secret}, "until": old.until} for old in signing.retiring
        ],
    }


def read_signing(value: Any, secret_box: SecretBox) -> Signing | None:
    """Raises Corrupt and UnreadableSecret."""
    if value is None:
        return None
    kept = fields(value, "signing")
    retiring = [
        fields(old, "an item of signing.retiring") for old in items(kept.get("retiring"), "signing.retiring")
    ]
    return Signing(
        secret=unsealed(kept.get("secret"), "signing.secret", secret_box),
        since=instant(kept.get("since"), "signing.since"),
        retiring=tuple(
            RetiringSecret(
                unsealed(old.get("secret"), "signing.retiring", secret_box),
                instant(old.get("until"), "signing.retiring: until"),
            )
            for old in retiring
        ),
    )

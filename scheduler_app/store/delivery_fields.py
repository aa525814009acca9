"""How something is delivered, as documents of schedules, destinations and messages keep it: retries, timeout,
codes of success, lateness, notifications, signing.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from scheduler_app.domain.deliverable import RetiringSecret, Signing
from scheduler_app.domain.lateness import Lateness
from scheduler_app.domain.notification import Notifying
from scheduler_app.domain.resources.delivery import RETRY, TIMEOUT
from scheduler_app.domain.resources.schedule import LATENESS
from scheduler_app.domain.retry import Codes, RetryPolicy
from scheduler_app.domain.stored_fields import (
    fields,
    instant,
    items,
    one_of,
    text,
    whole,
)
from scheduler_app.store.encryption import SecretBox
from scheduler_app.store.mongo import Document
from scheduler_app.store.row_codec import RowCodec, destination_name, read_codes, read_value

#: Most documents have the same fields: how many different ones are kept as they were read, and the most
#: characters of one that is kept.
MOST_READ, LONGEST_READ = 256, 2_000
_read: dict[str, "DeliveryFields"] = {}

_RETRY = RowCodec(RetryPolicy, RETRY)


class DeliveryFields(NamedTuple):
    """What `read_delivery` finds in a document."""

    retry: RetryPolicy
    timeout_seconds: float
    success: Codes


@lru_cache(maxsize=256, typed=True)
def delivery_document(retry: RetryPolicy, timeout_seconds: float, success: Codes) -> Document:
    """The fields that `read_delivery` reads. Documents share them, and they are never changed."""
    return {
        "retry": _without_none(_RETRY.document(retry)),
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
    return DeliveryFields(
        RetryPolicy(**_RETRY.read(fields(row.get("retry"), "retry"))),
        read_value(TIMEOUT.type, row.get("timeout_seconds"), "timeout_seconds"),
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


_NEVER_LATE = Lateness()
_LATENESS = RowCodec(Lateness, LATENESS)


def lateness_document(lateness: Lateness) -> Document | None:
    """What `read_lateness` reads; None for what a document without the field means."""
    if lateness == _NEVER_LATE:
        return None
    return _without_none(_LATENESS.document(lateness))


def _without_none(document: Document) -> Document:
    return {key: value for key, value in document.items() if value is not None}


def read_lateness(value: Any) -> Lateness:
    """Raises Corrupt."""
    return _NEVER_LATE if value is None else Lateness(**_LATENESS.read(fields(value, "lateness")))


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

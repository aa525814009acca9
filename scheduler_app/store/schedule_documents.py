"""A schedule as MongoDB keeps it, and back."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from scheduler_app.domain.masking import is_secret
from scheduler_app.domain.retry import Codes, RetryPolicy
from scheduler_app.domain.schedule import Action, Body, BodyKind, Schedule, ScheduleState
from scheduler_app.domain.signing import Retiring, Signing
from scheduler_app.domain.timing import Timing
from scheduler_app.store.mongo import Document
from scheduler_app.store.secrets import Envelope

DOCUMENT_VERSION = 1

#: Most schedules have the same ones, and reading them is half of what reading a schedule costs.
_codes = lru_cache(maxsize=256)(Codes)


def to_document(schedule: Schedule, envelope: Envelope) -> Document:
    """The whole document but for the claim's fields. None is left out: partial indexes ask what exists."""
    timing, action, retry = schedule.timing, schedule.action, schedule.retry
    document: Document = {
        "_id": schedule.id,
        "v": DOCUMENT_VERSION,
        "tenant": schedule.tenant,
        "name": schedule.name,
        "rrule": timing.rrule,
        "pinned": timing.pinned,
        "run_at": timing.run_at,
        "timezone": timing.timezone,
        "gap": timing.gap,
        "overlap": timing.overlap,
        "action": {
            "type": "http",
            "url": action.url,
            "method": action.method,
            "headers": [[name, _sealed(name, value, envelope)] for name, value in action.headers],
            "body": _body(action.body),
        },
        "retry": {
            "max_retries": retry.max_retries,
            "backoff_seconds": retry.backoff_seconds,
            "backoff_max_seconds": retry.backoff_max_seconds,
            "codes": list(retry.codes.written),
        },
        "timeout_seconds": schedule.timeout_seconds,
        "success": list(schedule.success.written),
        "tags": list(schedule.tags),
        "state": schedule.state.value,
        "reason": schedule.reason,
        "version": schedule.version,
        "revision": schedule.revision,
        "revised_at": schedule.revised_at,
        "cuts": [list(cut) for cut in schedule.cuts] or None,
        "next_run_at": schedule.next_run_at,
        "finishes_at": schedule.finishes_at,
        "cut_pending": schedule.cut_pending or None,
        "checkpoint": dict(schedule.checkpoint) if schedule.checkpoint else None,
        "zone_data": schedule.zone_data,
        "signing": _sealed_signing(schedule.signing, envelope),
        "hops": schedule.hops or None,
        "created_at": schedule.created_at,
        "updated_at": schedule.updated_at,
    }
    return {key: value for key, value in document.items() if value is not None}


def from_document(row: Mapping[str, Any], envelope: Envelope) -> Schedule:
    """Raises UnreadableSecret, and KeyError, TypeError or ValueError for a document that somebody bent."""
    action, retry = row["action"], row["retry"]
    return Schedule(
        id=row["_id"],
        name=row["name"],
        timing=Timing(
            rrule=row.get("rrule"),
            pinned=row.get("pinned"),
            run_at=row.get("run_at"),
            timezone=row["timezone"],
            gap=row["gap"],
            overlap=row["overlap"],
        ),
        action=Action(
            url=action["url"],
            method=action["method"],
            headers=tuple((name, _opened(value, envelope)) for name, value in action["headers"]),
            body=Body(BodyKind(action["body"]["kind"]), action["body"]["data"]) if action["body"] else None,
        ),
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        retry=RetryPolicy(
            max_retries=retry["max_retries"],
            backoff_seconds=retry["backoff_seconds"],
            backoff_max_seconds=retry["backoff_max_seconds"],
            codes=_codes(tuple(retry["codes"])),
        ),
        timeout_seconds=row["timeout_seconds"],
        success=_codes(tuple(row["success"])),
        tags=tuple(row.get("tags", ())),
        state=ScheduleState(row["state"]),
        reason=row.get("reason"),
        version=row["version"],
        revision=row["revision"],
        revised_at=row["revised_at"],
        cuts=tuple((number, since) for number, since in row.get("cuts", ())),
        next_run_at=row.get("next_run_at"),
        finishes_at=row.get("finishes_at"),
        cut_pending=row.get("cut_pending", False),
        checkpoint=row.get("checkpoint"),
        zone_data=row.get("zone_data"),
        signing=_opened_signing(row.get("signing"), envelope),
        tenant=row["tenant"],
        hops=row.get("hops", 0),
    )


def _body(body: Body | None) -> Document | None:
    return {"kind": body.kind.value, "data": body.data} if body else None


def _sealed(name: str, value: str, envelope: Envelope) -> Any:
    return envelope.seal(value) if is_secret(name) else value


def _opened(value: Any, envelope: Envelope) -> str:
    return envelope.open(value) if isinstance(value, dict) else value


def _sealed_signing(signing: Signing | None, envelope: Envelope) -> Document | None:
    if signing is None:
        return None
    return {
        "secret": envelope.seal(signing.secret),
        "since": signing.since,
        "retiring": [{"secret": envelope.seal(old.secret), "until": old.until} for old in signing.retiring],
    }


def _opened_signing(value: Mapping[str, Any] | None, envelope: Envelope) -> Signing | None:
    if value is None:
        return None
    return Signing(
        secret=envelope.open(value["secret"]),
        since=value["since"],
        retiring=tuple(Retiring(envelope.open(old["secret"]), old["until"]) for old in value["retiring"]),
    )

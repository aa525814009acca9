"""A process of the product with one of its mechanisms switched off: `python -m …without MECHANISM MODULE …`.

A run of the suite with it must fail: that is how the audit shows that it can see what it claims to see.
"""

import runpy
import sys
from collections.abc import Callable
from typing import Any


def _unique_id() -> None:
    """An event's id is drawn, and not derived: the same occurrence may become an event twice."""
    from scheduler_app.domain import event

    derived = event.event_id  # type: ignore[attr-defined]

    def drawn(schedule_id: str, revision: int, run_time: Any) -> str:
        import secrets

        return (
            f"{schedule_id}-{secrets.randbelow(10**9)}-{derived('', revision, run_time).rpartition('-')[2]}"
        )

    event.event_id = drawn  # type: ignore[attr-defined]


def _claim() -> None:
    """Whoever has a message sends its events, claimed by others or finished."""
    from scheduler_app.store.events import claims

    def any_state(verb: str) -> Any:
        return {"$exists": True}

    claims.source_states = any_state  # type: ignore[attr-defined]
    claims.Claims.claim = _taking_all(claims.Claims.claim)  # type: ignore[method-assign]


def _taking_all(claim: Any) -> Any:
    from scheduler_app.store.events.documents import CLAIMED, to_event

    def taken(self: Any, ids: Any, **options: Any) -> Any:
        token, _ = claim(self, ids, **options)
        rows = self._majority.find({"_id": {"$in": list(ids)}}, CLAIMED)
        return token, [to_event({"due_at": row["run_time"], **row}) for row in rows]

    return taken


def _token_fence() -> None:
    """An outcome is written whoever has the event now, and whatever became of it."""
    from scheduler_app.store.events import outcomes

    fenced = outcomes._written_at_once

    def unfenced(records: Any) -> Any:
        which, pipeline = fenced(records)
        return {"_id": which["_id"]}, pipeline

    outcomes._written_at_once = unfenced


def _message_recovery() -> None:
    """Lost messages stay lost."""
    from scheduler_app.store.recoveries import Recoveries

    Recoveries.recover_messages = lambda self, now, **_: []  # type: ignore[method-assign]


def _worker_recovery() -> None:
    """What a dead worker had claimed stays claimed."""
    from scheduler_app.store.recoveries import Recoveries

    Recoveries.recover_workers = lambda self, now, **_: ([], [])  # type: ignore[method-assign]


def _cut() -> None:
    """An edit withdraws nothing of the old rule, and a worker does not look."""
    from scheduler_app.domain.schedule import Schedule
    from scheduler_app.store.events.cancellations import Cancellations

    Cancellations.cancel_past_cut = lambda *_, **__: 0  # type: ignore[method-assign]
    Schedule.is_cancelled_by_edit = lambda *_: False  # type: ignore[method-assign]


def _restore_override() -> None:
    """kombu's own transport: what it raises when Redis dies ends the worker."""
    from scheduler_app.broker.redis import transport

    transport.ResilientChannel.QoS = transport.redis.QoS  # type: ignore[attr-defined]


def _overlap() -> None:
    """A worker looks at no earlier event."""
    from scheduler_app.worker.policies import Overlap

    Overlap.held_back = lambda *_: {}  # type: ignore[method-assign]


def _kill_switch() -> None:
    """A worker sends what it has, whatever was stopped meanwhile; beats still hold the rest."""
    from scheduler_app.worker.withholding import Withholding

    Withholding.withheld = lambda *_: None  # type: ignore[method-assign]


def _blackout() -> None:
    """Nobody sees a blackout."""
    from scheduler_app.domain.blackout import Blackouts
    from scheduler_app.store.stops import BlackoutDocuments

    BlackoutDocuments.everybodys = lambda *_: Blackouts()  # type: ignore[method-assign]


MECHANISMS: dict[str, Callable[[], None]] = {
    "unique-id": _unique_id,
    "claim": _claim,
    "token-fence": _token_fence,
    "message-recovery": _message_recovery,
    "worker-recovery": _worker_recovery,
    "cut": _cut,
    "restore-override": _restore_override,
    "overlap": _overlap,
    "kill-switch": _kill_switch,
    "blackout": _blackout,
}

if __name__ == "__main__":
    MECHANISMS[sys.argv[1]]()
    del sys.argv[:2]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)

"""Events whose destinations have limits: each has its place in the line before a message is sent for it.

What is dispatched is what its destination can take within `AHEAD_SECONDS`. The rest is put off in MongoDB,
each event to its own place, so that a backlog costs one write for each event and no message in vain.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta

from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow import Ask, Grant, Limiter, Why
from scheduler_app.domain.http_action import DESTINATION_PREFIX
from scheduler_app.domain.instants import shown_instant, whole_milliseconds
from scheduler_app.domain.queues import CALLBACKS
from scheduler_app.store import Store
from scheduler_app.store.events.outbox import Due, PutOff
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.usecases.dispatch.destination_queues import misplaced

log = get_logger(__name__)

#: A place so near is not worth a write: the event waits for it in a worker.
AHEAD_SECONDS = 2.0
#: When events of a paused destination are looked at again.
PAUSED_SECONDS = 60.0
#: Between two that are put off to the same instant, so that they keep their order.
ORDER = timedelta(milliseconds=1)
#: Why a line stands still; that it moves by the rate and the slots needs no word.
_SAID = (Why.BREAKER, Why.ASKED)


class Lines:
    """Knows which due events have to wait for their destinations. Threads may share it."""

    def __init__(self, store: Store, limiter: Limiter | None) -> None:
        """`limiter` None: there is none to ask, and workers put off what they cannot judge."""
        self._store = store
        self._limiter = limiter

    def in_time(
        self, events: Sequence[Due], until: datetime, now: datetime, *, queue: str = CALLBACKS
    ) -> Sequence[Due]:
        """Returns the events of `queue`, due up to `until`, that are to be dispatched now. It puts off the
        others, and moves those that belong into another queue, which has its own turn.

        It costs nothing where no event goes to a destination. A limiter that is away lets all pass: workers
        ask it again before anything is sent. Raises a STORE_FAULT.
        """
        by_id: dict[str, list[Due]] = {}
        for event in events:
            if event.origin.startswith(DESTINATION_PREFIX):
                by_id.setdefault(event.origin.removeprefix(DESTINATION_PREFIX), []).append(event)
        if not by_id:
            return events
        found = self._store.destinations.for_delivery(list(by_id))
        if moves := misplaced(by_id, found, queue):
            moved = {each for ids in moves.values() for each in ids}
            self._store.outbox.move(moves, until)
            by_id = {own_id: [each for each in of if each.id not in moved] for own_id, of in by_id.items()}
            events = [event for event in events if event.id not in moved]
        if self._limiter is None:
            return events
        limited = [each for each in found.values() if isinstance(each, Destination) and each.is_limited]
        if not limited:
            return events
        later = {each.id: list(_until_resumed(by_id[each.id], now)) for each in limited if each.paused}
        waiting = [each for each in limited if not each.paused]
        later |= self._behind(waiting, by_id, now, self._limiter)
        put_off: set[str] = set()
        unused: list[Ask] = []
        for each in limited:
            theirs = later.get(each.id)
            if theirs:
                written = self._store.outbox.put_off(theirs, until, now)
                metrics.flow_put_off.inc(written)
                put_off |= {put.id for put in theirs}
                if written < len(theirs) and not each.paused:
                    unused.append(Ask(each, reserve=written - len(theirs)))
        if unused:  # another dispatcher has put them off, to places of its own
            self._decide(unused, self._limiter)
        return [event for event in events if event.id not in put_off] if put_off else events

    def _behind(
        self, limited: Sequence[Destination], by_id: dict[str, list[Due]], now: datetime, limiter: Limiter
    ) -> dict[str, list[PutOff]]:
        """The events whose place is further off. An event that was put off before has had its place."""
        new = {
            each.id: sorted(event for event in by_id[each.id] if event.postponed_from is None)
            for each in limited
        }
        asked = [each for each in limited if new[each.id]]
        if not asked:
            return {}
        grants = self._decide([Ask(each, reserve=len(new[each.id])) for each in asked], limiter)
        return {
            each.id: list(_placed(each, new[each.id], grant, now))
            for each, grant in zip(asked, grants, strict=False)
        }

    @staticmethod
    def _decide(asks: Sequence[Ask], limiter: Limiter) -> list[Grant]:
        """The answers; none while the limiter is away."""
        try:
            return limiter.decide(asks)
        except limiter.unavailable as error:
            log.warning(
                "flow.unknown",
                message="The limits of destinations cannot be read; workers judge their events",
                error=str(error)[:300],
            )
            return []


def _placed(destination: Destination, events: Sequence[Due], grant: Grant, now: datetime) -> Iterator[PutOff]:
    because = f", which waits for {grant.why.value}" if grant.why in _SAID else ""
    for place, event in enumerate(events):
        seconds = grant.first + place * grant.step
        due_at = whole_milliseconds(now + timedelta(seconds=seconds))
        if seconds > AHEAD_SECONDS and due_at > event.due_at:
            yield PutOff(
                event.id,
                due_at,
                event.due_at,
                f"Postponed to {shown_instant(due_at)}: its place in the line of the destination"
                f" {destination.name}{because}",
            )


def _until_resumed(events: Sequence[Due], now: datetime) -> Iterator[PutOff]:
    for place, event in enumerate(sorted(events)):
        due_at = whole_milliseconds(now + timedelta(seconds=PAUSED_SECONDS) + place * ORDER)
        yield PutOff(
            event.id,
            due_at,
            event.postponed_from or event.due_at,
            f"Postponed to {shown_instant(due_at)}: its destination is paused",
        )

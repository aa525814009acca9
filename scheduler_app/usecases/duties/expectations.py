"""See which schedules have no runs as they expect: a run that takes too long, one that was not completed in
its time, and no success for too long. Each is a cause while it lasts.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from scheduler_app.domain.cause import Cause
from scheduler_app.domain.expectation import ObservedRuns
from scheduler_app.domain.schedule import LastRun
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.paging import FIRST
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

SCHEDULES_A_LOOK: Final = 500
#: Schedules of one look whose last success is searched for among their runs.
SEARCHES_A_LOOK: Final = 50
#: Causes of one look whose schedules may expect nothing any more.
CAUSES_A_LOOK: Final = 1_000


class ExpectationInspection:
    """Of one beat. It looks at schedules in turn; any number of beats may do so at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._after = FIRST
        self._cause_after = ""
        """The cause up to which schedules were asked whether they still expect something."""

    def inspect(self, living: Iterable[Cause], now: datetime) -> None:
        """Looks at the next schedules that expect something. `living` are the causes that expectations have
        opened. Raises a STORE_FAULT."""
        page, last = self._store.expectations.after(self._after, limit=SCHEDULES_A_LOOK)
        looked_at = self._observed(page, now)
        is_cut = len(looked_at) < len(page)
        self._after = (looked_at[-1].tenant, looked_at[-1].schedule_id) if is_cut else last
        seen = [tally for each in looked_at for tally in each.tallies(now)]
        self._store.causes.touch(seen, observed=True)
        self._end(living, {each.key.id for each in seen}, looked_at, now)

    def _observed(self, page: Sequence[ObservedRuns], now: datetime) -> list[ObservedRuns]:
        """The schedules with what is known of their runs: the first ones, where too many want a search."""
        if not page:
            return []
        expectations = self._store.expectations
        newest = self._store.last_runs.newest([each.schedule_id for each in page])
        found: list[ObservedRuns] = []
        searches = 0
        for each in page:
            last = newest.get(each.schedule_id)
            known = replace(
                each,
                gave_up=(last.event_id, last.time) if last and last.outcome == State.ERROR else None,
                succeeded_at=_success(last),
            )
            if each.expect.max_runtime_seconds or each.expect.completes_within_seconds:
                runs = expectations.unfinished(each.schedule_id, now)
                known = replace(known, running=runs.running, unfinished=runs.oldest)
            if last is not None and known.succeeded_at is None and known.wants_success(now):
                if searches == SEARCHES_A_LOOK:
                    break
                searches += 1
                known = replace(known, succeeded_at=expectations.last_success(each.schedule_id, now))
            found.append(known)
        return found

    def _end(
        self, living: Iterable[Cause], seen: set[str], looked_at: Sequence[ObservedRuns], now: datetime
    ) -> None:
        """Ends what is as expected again, and what nobody expects any more."""
        judged = {each.schedule_id for each in looked_at}
        ended: list[Cause] = []
        others: list[Cause] = []
        for cause in living:
            if cause.key.subject not in judged:
                others.append(cause)
            elif cause.key.id not in seen:
                ended.append(cause)
        some = self._in_turn(others)
        left = self._store.expectations.expecting({each.key.subject for each in some}) if some else set()
        ended += [cause for cause in some if cause.key.subject not in left]
        over = [cause.over(now) for cause in ended]
        for cause in self._store.causes.write(over):
            log.info("cause.over", message="A cause is over", cause_id=cause.id, kind=cause.key.kind.value)

    def _in_turn(self, causes: Sequence[Cause]) -> list[Cause]:
        """The next ones of many, so that each has its turn."""
        some = sorted(causes, key=lambda each: (each.id <= self._cause_after, each.id))[:CAUSES_A_LOOK]
        if some:
            self._cause_after = some[-1].id
        return some


def _success(last: LastRun | None) -> datetime | None:
    return (last.ended_at or last.time) if last is not None and last.outcome == State.COMPLETED else None

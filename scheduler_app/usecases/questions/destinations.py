"""How destinations are: what fails, what waits, what they answered last, and how many schedules name them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from scheduler_app.domain.cause import Cause, CauseKind
from scheduler_app.domain.destination import Destination
from scheduler_app.domain.flow_control import FlowState
from scheduler_app.domain.http_action import destination_key
from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.figures import EventSummary
from scheduler_app.usecases.deeds.destinations import DestinationService

#: Destinations that are looked at together, causes that are read, schedules that are counted of each. All of
#: these are read: no index says which are deleted.
MOST_AT_ONCE: Final = 50
MOST_CAUSES: Final = 1_000
MOST_SCHEDULES: Final = 1_000
#: Runs that are shown of each destination: the last ones of so many of its schedules.
MOST_RUNS: Final = 20
SCHEDULES_LOOKED_AT: Final = 5
_ENDED = frozenset({State.COMPLETED, State.ERROR, State.RETRYING})


class DestinationState(StrEnum):
    """How a destination is, in one word; of several that are true, the first."""

    PAUSED = "paused"
    """A person paused it."""
    STOPPED = "stopped"
    """A kill switch is on for it, or for everything."""
    FAILING = "failing"
    """It answers with errors, or not at all."""
    SLOWED = "slowed"
    """Its breaker tries whether it answers, or it asked to be called less."""
    WELL = "well"


@dataclass(frozen=True, slots=True)
class DestinationHealth:
    state: DestinationState
    failing: Cause | None
    """The failure that began first, of those that are not over."""
    waiting: int
    """Events and messages that wait for it, counted up to 100,000."""
    schedules: int
    """Schedules that name it, counted up to `MOST_SCHEDULES`."""
    last_runs: Sequence[EventSummary]
    """The newest first."""
    flow: FlowState | None
    """None without limits, and while Redis is away."""


@dataclass(frozen=True)
class DestinationQuestions:
    store: Store
    service: DestinationService

    def sound(self, ids: Sequence[str]) -> list[Destination]:
        """Those of these that there are and that can be read. Raises a STORE_FAULT."""
        found = (self.store.destinations.get(each) for each in ids)
        return [each for each in found if isinstance(each, Destination)]

    def health(self, tenant: str, of: Sequence[Destination], now: datetime) -> dict[str, DestinationHealth]:
        """How each of the tenant's destinations is, by its id; `MOST_AT_ONCE` are asked for at most. Raises a
        STORE_FAULT."""
        switches = self.store.kill_switches.everybodys()
        failing = self._failing(tenant)
        users = {each.id: self.store.destinations.users(each.id, limit=MOST_SCHEDULES) for each in of}
        looked_at = {each: ids[:SCHEDULES_LOOKED_AT] for each, ids in users.items()}
        wanted = sorted({each for ids in looked_at.values() for each in ids})
        runs = self.store.event_figures.last_of_each(wanted, now, most=MOST_RUNS)
        rows: dict[str, DestinationHealth] = {}
        for each in of:
            flow = self.service.flow(each)
            ran = [run for schedule_id in looked_at[each.id] for run in runs.get(schedule_id, ())]
            ended = sorted((run for run in ran if run.state in _ENDED), key=lambda run: run.run_time)
            cause = failing.get(destination_key(each.id))
            stopped = switches.stopping(each.id, (), each.id) is not None
            rows[each.id] = DestinationHealth(
                _state(each, flow, cause, stopped=stopped),
                cause,
                self.service.waiting(each, flow),
                len(users[each.id]),
                ended[::-1][:MOST_RUNS],
                flow,
            )
        return rows

    def _failing(self, tenant: str) -> dict[str, Cause]:
        """The oldest failure of each receiver that is not over."""
        found: dict[str, Cause] = {}
        for cause in self.store.causes.unsettled(tenant, limit=MOST_CAUSES):
            if cause.is_living and cause.key.kind is CauseKind.FAILING:
                found.setdefault(cause.key.subject, cause)
        return found


def _state(
    destination: Destination, flow: FlowState | None, cause: Cause | None, *, stopped: bool
) -> DestinationState:
    if destination.paused:
        return DestinationState.PAUSED
    if stopped:
        return DestinationState.STOPPED
    if cause is not None or (flow is not None and flow.breaker == "open"):
        return DestinationState.FAILING
    if flow is not None and (flow.breaker != "closed" or flow.asked_to_wait):
        return DestinationState.SLOWED
    return DestinationState.WELL

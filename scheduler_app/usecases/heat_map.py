"""How much ran in each hour of some days, and how much of it failed."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from scheduler_app.domain.local_time import local_in
from scheduler_app.store import Store
from scheduler_app.usecases.calendar_view import chosen_schedules

#: So many events are counted, and so many dead letters looked at; of so many schedules that match.
MOST_EVENTS = 50_000
MOST_DEAD = 10_000
MOST_SCHEDULES = 50


@dataclass
class Hour:
    """What was due within one hour."""

    count: int = 0
    dead: int = 0


@dataclass(frozen=True)
class HeatMap:
    """Hours by their dates and their numbers in the zone that was asked for, and what is not in them. An
    hour that a clock change repeats is one with its double."""

    hours: Mapping[tuple[date, int], Hour]
    left_out: list[str]

    @property
    def most(self) -> int:
        """Of the busiest hour; at least 1."""
        return max((each.count for each in self.hours.values()), default=0) or 1


def heat_map(
    store: Store,
    since: datetime,
    until: datetime,
    now: datetime,
    zone: str,
    *,
    tenant: str,
    schedule_id: str | None = None,
    tag: str | None = None,
    destination: str | None = None,
) -> HeatMap:
    """What was due from `since` to `until`, up to `now`, of one schedule or of those that match.
    `destination` is the id of one. Bounded; what is left out is said in words."""
    left_out: list[str] = []
    ids: list[str] | None = None
    if schedule_id is not None or tag is not None or destination is not None:
        chosen = chosen_schedules(store, schedule_id, tag, destination, tenant, left_out)
        if len(chosen) > MOST_SCHEDULES:
            left_out[:] = [f"all but the newest {MOST_SCHEDULES} schedules"]
        ids = [each.id for each in chosen[:MOST_SCHEDULES]]
    end = min(until, now)
    counted = store.hourly_counts.events(ids, since, end, tenant=tenant, most=MOST_EVENTS)
    dead = store.hourly_counts.dead_letters(ids, since, end, tenant=tenant, most=MOST_DEAD)
    if not counted.is_whole:
        left_out.append(f"what is beyond the newest {MOST_EVENTS} events")
    if not dead.is_whole:
        left_out.append(f"what is beyond the newest {MOST_DEAD} dead letters")
    hours: dict[tuple[date, int], Hour] = defaultdict(Hour)
    for moment, count in counted.quarters.items():
        local = local_in(moment, zone)
        hours[local.date(), local.hour].count += count
    for moment, count in dead.quarters.items():
        local = local_in(moment, zone)
        hours[local.date(), local.hour].dead += count
    return HeatMap(hours, left_out)

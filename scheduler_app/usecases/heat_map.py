"""How much ran in each hour of some days, and how much of it failed."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

from scheduler_app.domain.local_time import local_in
from scheduler_app.store import Store
from scheduler_app.usecases.viewed import Viewed

#: The most events counted, dead letters looked at, and matching schedules.
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


def heat_map(store: Store, viewed: Viewed, now: datetime) -> HeatMap:
    """What was due up to `now`. Bounded; what is left out is said in words."""
    left_out: list[str] = []
    ids: list[str] | None = None
    if not viewed.all_schedules:
        chosen = viewed.schedules(store, left_out)
        if len(chosen) > MOST_SCHEDULES:
            left_out[:] = [f"all but the newest {MOST_SCHEDULES} schedules"]
        ids = [each.id for each in chosen[:MOST_SCHEDULES]]
    since, until, tenant = viewed.since, min(viewed.until, now), viewed.tenant
    counted = store.hourly_counts.events(ids, since, until, tenant=tenant, most=MOST_EVENTS)
    dead = store.hourly_counts.dead_letters(ids, since, until, tenant=tenant, most=MOST_DEAD)
    if not counted.is_whole:
        left_out.append(f"what is beyond the newest {MOST_EVENTS} events")
    if not dead.is_whole:
        left_out.append(f"what is beyond the newest {MOST_DEAD} dead letters")
    hours: dict[tuple[date, int], Hour] = defaultdict(Hour)
    for moment, count in counted.quarters.items():
        local = local_in(moment, viewed.zone)
        hours[local.date(), local.hour].count += count
    for moment, count in dead.quarters.items():
        local = local_in(moment, viewed.zone)
        hours[local.date(), local.hour].dead += count
    return HeatMap(hours, left_out)

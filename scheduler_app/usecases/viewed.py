"""What a view of days is about: a time, and one schedule, those that match, or all."""

from dataclasses import dataclass
from datetime import datetime

from scheduler_app.domain.schedule import Schedule
from scheduler_app.store import Store
from scheduler_app.store.paging import Window

#: How many schedules are read, and for how long those of a destination are looked for.
MOST_SCHEDULES = 200
LOOK_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True, slots=True)
class Viewed:
    """A tenant's time from `since` to `until` (exclusive, both aware), told in the days of `zone`."""

    since: datetime
    until: datetime
    zone: str
    tenant: str
    schedule_id: str | None = None
    tag: str | None = None
    destination: str | None = None
    """The id of one."""

    @property
    def all_schedules(self) -> bool:
        """Whether it is about all schedules of the tenant, and messages."""
        return self.schedule_id is None and self.tag is None and self.destination is None

    def schedules(self, store: Store, left_out: list[str]) -> list[Schedule]:
        """The newest schedules that match; appends to `left_out` that there are more."""
        if self.schedule_id is not None:
            found = store.schedules.get(self.schedule_id, tenant=self.tenant)
            return [found] if isinstance(found, Schedule) else []
        window = Window(limit=MOST_SCHEDULES, seconds=LOOK_SECONDS)
        page = store.schedules.page(window, tenant=self.tenant, tag=self.tag, destination=self.destination)
        if page.next is not None:
            shown = (
                f"all but the newest {len(page.rows)} schedules"
                if page.rows
                else "schedules not found in time"
            )
            left_out.append(f"what comes of {shown}")
        return [each for each in page.rows if isinstance(each, Schedule)]

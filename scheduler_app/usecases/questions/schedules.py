"""What people ask about schedules: lists of them, their names and tags, and which of them a word means."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from scheduler_app.domain.errors import NotFound
from scheduler_app.domain.ids import WholeId, name_of, whole_id
from scheduler_app.domain.kill_switch import Target
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.store import Store
from scheduler_app.store.events.figures import EventSummary
from scheduler_app.store.paging import Page, PageRequest
from scheduler_app.store.schedules.documents import CorruptSchedule


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a word may mean: schedules with it in their names, or the id of a schedule or an event."""

    by_name: Page[Schedule | CorruptSchedule]
    is_schedule: bool
    is_event: bool


@dataclass(frozen=True)
class ScheduleQuestions:
    """What people ask about the schedules of a tenant. A schedule that can be changed is read by
    `ScheduleService.get`."""

    store: Store

    def page(self, tenant: str, window: PageRequest, **choice: Any) -> Page[Schedule | CorruptSchedule]:
        """The schedules that match, as `Schedules.page` of the store has them, with their last runs."""
        found = self.store.schedules.page(tenant, window, **choice)
        return replace(found, rows=self.store.last_runs.attach(found.rows))

    def newest(self, tenant: str, *, most: int) -> list[Schedule]:
        """The newest schedules of those that can be read, without their last runs."""
        rows = self.store.schedules.page(tenant, PageRequest(limit=most)).rows
        return [each for each in rows if isinstance(each, Schedule)]

    def count(self, tenant: str, *, most: int, **choice: Any) -> tuple[int, bool]:
        """How many `page` would find, and whether there may be more than `most`."""
        return self.store.schedules.count(tenant, most=most, **choice)

    def last_outcomes(
        self, schedules: Sequence[Schedule | CorruptSchedule], now: datetime, *, most: int
    ) -> dict[str, list[EventSummary]]:
        """The last `most` events of each schedule, by its id, newest first, without what was withdrawn."""
        ids = [each.id for each in schedules if isinstance(each, Schedule)]
        return self.store.event_figures.last_of_each(ids, now, most=most)

    def held_by(self, schedules: Sequence[Schedule | CorruptSchedule]) -> dict[str, Target]:
        """The kill switch that stops each of the schedules, by its id; none where it is stopped by none, or
        sends nothing by itself."""
        switches = self.store.kill_switches.everybodys()
        found: dict[str, Target] = {}
        for each in schedules:
            if isinstance(each, Schedule) and each.state is ScheduleState.ACTIVE:
                target = switches.stopping(each.id, each.tags, each.action.destination)
                if target is not None:
                    found[each.id] = target
        return found

    def check_known(self, schedule_id: WholeId) -> None:
        """Raises NotFound for a schedule that does not exist and never did."""
        if not self.store.schedules.exists(schedule_id):
            raise NotFound(f"there is no schedule {name_of(schedule_id)}")

    def even_deleted(self, ids: Collection[str]) -> dict[str, Schedule]:
        """Schedules by id, deleted ones included; none where the document is gone or corrupt."""
        wanted = sorted(set(ids) - {""})
        found = self.store.schedules.for_delivery(wanted) if wanted else {}
        return {each.id: each for each in found.values() if isinstance(each, Schedule)}

    def tags(self, ids: Collection[str]) -> Mapping[str, tuple[str, ...]]:
        """The tags of schedules by id, deleted ones included."""
        facts = self.store.kill_switches.judged_by(ids)
        return {schedule_id: tags for schedule_id, (tags, _) in facts.items()}

    def search(self, tenant: str, word: str, window: PageRequest) -> SearchResult:
        """Looks for what a person of the tenant may mean by `word`."""
        named = whole_id(tenant, word)
        return SearchResult(
            self.store.schedules.page(tenant, window, text=word),
            self.store.schedules.exists(named),
            self.store.events.get(named) is not None,
        )

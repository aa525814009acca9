"""Search: what a person may mean by some words, wherever they stand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from scheduler_app.domain.ids import name_of
from scheduler_app.domain.search import FoundDestination, FoundEvent, FoundSchedule, before_query
from scheduler_app.store import Store

#: How long schedules are looked through, unless the first ones take longer.
MAX_SECONDS: Final = 0.3
#: Tags that are looked through, and schedules with one that are counted or looked through.
MOST_TAGS: Final = 500
MOST_COUNTED: Final = 1_000
MOST_TAGGED: Final = 2_000


@dataclass(frozen=True, slots=True)
class CountedTag:
    tag: str
    schedules: int
    """How many have it, `MOST_COUNTED` at most."""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """What was found; with `incomplete` there may be more."""

    tags: Sequence[CountedTag]
    schedules: Sequence[FoundSchedule]
    destinations: Sequence[FoundDestination]
    events: Sequence[FoundEvent]
    messages: Sequence[FoundEvent]
    incomplete: bool


@dataclass(frozen=True)
class SearchQuestions:
    store: Store
    seconds: float = MAX_SECONDS

    def search(self, tenant: str, words: str, *, limit: int, tag: str | None = None) -> SearchAnswer:
        """Looks for words of the tenant's, `limit` of each kind; with a tag only for it, the schedules with
        it and their events. Raises a STORE_FAULT."""
        if tag is not None:
            return self._within(tenant, words, tag, limit)
        search = self.store.search
        first = search.schedules_by_index(tenant, words, limit=limit)
        others, all_schedules = search.schedules(tenant, words, limit=limit, seconds=self.seconds)
        schedules = list({each.id: each for each in (*first, *others)}.values())
        destinations, all_destinations = search.destinations(tenant, words, limit=limit)
        known = self.store.tags.in_order(tenant, limit=MOST_TAGS)
        fitting = [tag for tag in known if words.casefold() in tag.casefold()]
        return SearchAnswer(
            self._counted(tenant, fitting[:limit]),
            schedules[:limit],
            destinations,
            search.events(tenant, words, limit=limit),
            search.messages(tenant, words, limit=limit),
            not (all_schedules and all_destinations) or len(known) == MOST_TAGS or len(fitting) > limit,
        )

    def _within(self, tenant: str, words: str, tag: str, limit: int) -> SearchAnswer:
        search = self.store.search
        ids = self.store.tags.schedules(tenant, [tag], limit=MOST_TAGGED + 1)
        schedules = search.schedules_among(tenant, ids[:MOST_TAGGED], words, limit=limit)
        return SearchAnswer(
            self._counted(tenant, [tag] if words.casefold() in tag.casefold() else []),
            schedules,
            [],
            search.events_among(tenant, ids[:MOST_TAGGED], words, limit=limit),
            [],
            len(ids) > MOST_TAGGED or len(schedules) == limit,
        )

    def tags(
        self, tenant: str, *, limit: int, prefix: str = "", after: str = ""
    ) -> tuple[list[CountedTag], str | None]:
        """The tags that begin so, each with the number of its schedules; and the last of them where there are
        more. Raises a STORE_FAULT."""
        found = self.store.tags.in_order(tenant, limit=limit + 1, prefix=prefix, after=after)
        return self._counted(tenant, found[:limit]), found[limit - 1] if len(found) > limit else None

    def counted_tag(self, tenant: str, tag: str) -> CountedTag:
        """A tag, whether any schedule has it or not."""
        return CountedTag(tag, self.store.tags.count(tenant, tag, most=MOST_COUNTED))

    def _counted(self, tenant: str, tags: Iterable[str]) -> list[CountedTag]:
        """Without those that deleted schedules alone have."""
        counted = (self.counted_tag(tenant, tag) for tag in tags)
        return [each for each in counted if each.schedules]


def where_found(schedule: FoundSchedule, words: str) -> str:
    """Which of a schedule's fields has the words: the first of those that people would look at first."""
    wanted = words.casefold()
    fields = {
        "name": schedule.name,
        "tag": "\n".join(schedule.tags),
        "phrase": schedule.phrase,
        "url": before_query(schedule.url),
    }
    if wanted == name_of(schedule.id).casefold():
        return "id"
    return next((name for name, said in fields.items() if wanted in said.casefold()), "name")

"""Calendars of schedules, for programs that show calendars, and the feeds by which they may read them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from scheduler_app.domain.calendar_feed import CalendarFeed
from scheduler_app.domain.errors import Conflict, InvalidRecurrence, NotFound
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.recurrence import AnyRecurrence, Once, Recurrence
from scheduler_app.domain.recurrence.standard_rule import StandardRule, standard_rule
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import UNSENT, Kind
from scheduler_app.domain.url_token import id_of
from scheduler_app.ics import CalendarEntry, EntryTime, write_calendar
from scheduler_app.store import Store
from scheduler_app.store.access_tokens import MAX_FEEDS, CorruptFeed
from scheduler_app.store.events.events import EventRecord
from scheduler_app.store.events.lists import EventListFilter
from scheduler_app.store.paging import PageRequest
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)

#: Schedules and past events of a feed, past events of one schedule.
MAX_SCHEDULES: Final = 500
MAX_PAST: Final = 500
MAX_PAST_OF_ONE: Final = 100
#: Where no rule says it, a schedule's occurrences of the next year are written one by one, up to a number.
AHEAD: Final = timedelta(days=366)
MAX_INSTANTS: Final = 100
MAX_INSTANTS_OF_ONE: Final = 1_000
#: Of all schedules of a feed together: each instant is an event of some hundred bytes.
MAX_INSTANTS_OF_ALL: Final = 5_000
#: The most characters of an outcome's sentence.
_MAX_MESSAGE: Final = 300
_LAST: Final = datetime(9998, 1, 1, tzinfo=UTC)

ComingEntry = tuple[CalendarEntry, EntryTime]


@dataclass(frozen=True)
class CalendarFeedService:
    """Makes, lists and deletes feeds, and writes calendars."""

    store: Store
    new_token: Callable[[str], tuple[str, str]]
    """See `domain.url_token`; a dry run makes none."""

    def create(self, tenant: str, name: str, tag: str | None, now: datetime) -> tuple[CalendarFeed, str]:
        """A new feed, and its token, which cannot be shown again. Raises Conflict beyond `MAX_FEEDS`."""
        feeds = self.store.calendar_feeds
        if len(feeds.all(tenant)) >= MAX_FEEDS:
            raise Conflict(
                f"there are {MAX_FEEDS} calendar feeds already; delete one that is not read any more"
            )
        feed_id = feeds.new_id(tenant)
        token, digest = self.new_token(feed_id)
        feed = CalendarFeed(feed_id, name, digest, now, tag)
        feeds.insert(feed)
        log.info("calendar_feed.created", message="A calendar feed was created", feed_id=feed_id)
        return feed, token

    def all(self, tenant: str) -> list[CalendarFeed | CorruptFeed]:
        """A tenant's feeds, newest first."""
        return self.store.calendar_feeds.all(tenant)

    def delete(self, feed_id: str) -> None:
        """From now on its token opens nothing. Raises NotFound."""
        if not self.store.calendar_feeds.delete(feed_id):
            raise NotFound(f"there is no calendar feed {name_of(feed_id)}")
        log.info("calendar_feed.deleted", message="A calendar feed was deleted", feed_id=feed_id)

    def opened(self, token: str) -> CalendarFeed | None:
        """The feed whose token that is; None if no feed has it."""
        feed = self.store.calendar_feeds.find(id_of(token))
        return feed if feed is not None and feed.opened_by(token) else None

    def of_schedule(self, schedule: Schedule, now: datetime) -> bytes:
        """The calendar of one schedule: what is coming, and its newest past events."""
        left_out: list[str] = []
        coming = _coming_entries([schedule], now, MAX_INSTANTS_OF_ONE, left_out)
        window = PageRequest(limit=MAX_PAST_OF_ONE, until=now)
        found = self.store.event_lists.page(
            schedule.tenant, window, schedule_id=schedule.id, narrowing=_SHOWN
        )
        if found.next is not None:
            left_out.append(f"past events before the newest {MAX_PAST_OF_ONE}")
        past = _past_entries(found.rows, {schedule.id: schedule.name})
        return write_calendar(
            schedule.name or name_of(schedule.id),
            coming,
            past,
            now=now,
            description=_left_out_notice(left_out),
        )

    def of_schedules(self, tenant: str, now: datetime, *, tag: str | None) -> bytes:
        """The calendar of a tenant's active schedules, or of those with a tag, and of their past events."""
        left_out: list[str] = []
        page = self.store.schedules.page(
            tenant, PageRequest(limit=MAX_SCHEDULES), state=ScheduleState.ACTIVE.value, tag=tag
        )
        schedules = [each for each in page.rows if isinstance(each, Schedule)]
        if page.next is not None:
            left_out.append(f"schedules before the newest {MAX_SCHEDULES}")
        if len(schedules) < len(page.rows):
            left_out.append(f"{len(page.rows) - len(schedules)} schedules whose documents are corrupt")
        coming = _coming_entries(schedules, now, MAX_INSTANTS, left_out)
        found = self.store.event_lists.page(
            tenant,
            PageRequest(limit=MAX_PAST, until=now),
            narrowing=EventListFilter(tag=tag, early_withdrawals=False),
        )
        if found.next is not None:
            left_out.append(f"past events before the newest {MAX_PAST}")
        names = {each.id: each.name for each in schedules}
        # Messages belong to no schedule.
        past = [each for each in found.rows if each.kind is not Kind.MESSAGE]
        missing = list({each.schedule_id for each in past} - names.keys())
        for each in self.store.schedules.for_delivery(missing).values():
            if isinstance(each, Schedule):
                names[each.id] = each.name
        return write_calendar(
            tag or "Scheduler",
            coming,
            _past_entries(past, names),
            now=now,
            description=_left_out_notice(left_out),
        )


#: A feed leaves out events that were withdrawn before they were due.
_SHOWN: Final = EventListFilter(early_withdrawals=False)


def _left_out_notice(what: list[str]) -> str:
    return f"Not shown: {'; '.join(what)}." if what else ""


def _coming_entries(
    schedules: Iterable[Schedule], now: datetime, most: int, left_out: list[str]
) -> list[ComingEntry]:
    found: list[tuple[Schedule, AnyRecurrence, StandardRule | None]] = []
    for schedule in schedules:
        if schedule.state is not ScheduleState.ACTIVE:
            continue
        try:
            recurrence = schedule.recurrence()
            rule = standard_rule(recurrence, now) if isinstance(recurrence, Recurrence) else None
        except InvalidRecurrence as error:
            left_out.append(_not_evaluated(schedule, error))
            continue
        found.append((schedule, recurrence, rule))
    singles = sum(rule is None for _, _, rule in found)
    most = min(most, max(MAX_INSTANTS_OF_ALL // singles, 1)) if singles else most
    coming: list[ComingEntry] = []
    for schedule, recurrence, rule in found:
        try:
            made = _schedule_entries(schedule, recurrence, rule, now, most)
        except InvalidRecurrence as error:
            left_out.append(_not_evaluated(schedule, error))
            continue
        if made is not None:
            coming.append(made)
    return coming


def _not_evaluated(schedule: Schedule, error: InvalidRecurrence) -> str:
    return f"{name_of(schedule.id)}, whose recurrence cannot be evaluated ({error.message})"


def _schedule_entries(
    schedule: Schedule, recurrence: AnyRecurrence, rule: StandardRule | None, now: datetime, most: int
) -> ComingEntry | None:
    """What is coming of a schedule: its `rule` if one says it exactly, else its instants, `most` of them. It
    is None if nothing is coming. Raises InvalidRecurrence."""
    said = [recurrence.description]
    once = isinstance(recurrence, Once) or (isinstance(recurrence, Recurrence) and recurrence.is_once)
    when: StandardRule | datetime | list[datetime] | None = recurrence.after(now) if once else rule
    if when is None and not once:
        end = min(now, _LAST) + AHEAD
        when, following = recurrence.between_and_next(now, end, most)
        if not when and following is not None:
            when = [following]
        elif following is not None:
            said.append(f"Shown up to {when[-1]:%Y-%m-%d %H:%M} UTC.")
    if not when:
        return None
    entry = CalendarEntry(
        uid=name_of(schedule.id),
        name=schedule.name,
        written_at=schedule.updated_at,
        description="\n".join(said),
        categories=schedule.tags,
        sequence=schedule.version - 1,
    )
    return entry, when


def _past_entries(
    events: Iterable[EventRecord], names: dict[str, str]
) -> list[tuple[CalendarEntry, datetime]]:
    return [
        (_past_entry(each, names.get(each.schedule_id, each.schedule_id)), each.run_time) for each in events
    ]


def _past_entry(event: EventRecord, name: str) -> CalendarEntry:
    last = event.status[-1] if event.status else {}
    said = [str(last.get("message", ""))[:_MAX_MESSAGE], f"Attempts: {event.attempt}"]
    return CalendarEntry(
        uid=name_of(event.id),
        name=f"{name}: {event.state.value}",
        written_at=event.archived_at or event.due_at or event.run_time,
        description="\n".join(filter(None, said)),
        categories=(event.state.value,),
        cancelled=event.state in UNSENT,
        sequence=event.attempt,
    )

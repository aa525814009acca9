"""What a person asks for: a new schedule, or changes to one; its action, retries and workers are those of a
message, too.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from scheduler_app.domain.action import CALLBACKS, COMMANDS, Action, check_queue
from scheduler_app.domain.calendars import CalendarUse, NamedCalendar
from scheduler_app.domain.command_action import COMMAND
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.http_action import (
    DEFAULT_METHOD,
    DEFAULT_METHOD_WITH_BODY,
    HttpAction,
    RequestBody,
    with_kept_secrets,
)
from scheduler_app.domain.ids import WholeId, tenant_of, whole_id
from scheduler_app.domain.lateness import DEFAULT_LATENESS, CatchUp, Lateness
from scheduler_app.domain.recurrence import AnyRecurrence, Gap, OnHoliday, Overlap
from scheduler_app.domain.resource_fields import NOT_GIVEN, NotGiven, given
from scheduler_app.domain.retry import RetryDraft
from scheduler_app.domain.schedule import CarriedOver, Schedule, ScheduleState, pause_after_edit
from scheduler_app.domain.triggers import Given, Trigger, TriggerContext, edited_trigger, new_trigger


@dataclass(frozen=True, slots=True)
class ActionDraft(CarriedOver, RetryDraft):
    """The part of a `ScheduleDraft` that says what is sent, and how."""

    url: str | NotGiven = field(default=NOT_GIVEN, repr=False)
    destination: str | NotGiven | None = NOT_GIVEN
    """The name of a destination of the schedule's tenant, in place of `url`."""
    path: str | NotGiven = field(default=NOT_GIVEN, repr=False)
    """The path and query below the destination's URL."""
    method: str | NotGiven = NOT_GIVEN
    headers: tuple[tuple[str, str], ...] | NotGiven = field(default=NOT_GIVEN, repr=False)
    body: RequestBody | NotGiven | None = field(default=NOT_GIVEN, repr=False)
    action: Action | NotGiven = NOT_GIVEN
    """A whole action of another kind than `http`, whose fields stand in the draft itself."""
    sealed: str | NotGiven = field(default=NOT_GIVEN, repr=False)
    """The secrets of an exported schedule, which its masks stand for; the key opens it."""
    known: HttpAction | NotGiven = field(default=NOT_GIVEN, repr=False)
    """What was in `sealed`."""
    queue: str | NotGiven = NOT_GIVEN
    """Which workers its events are for; commands have a queue of their own."""

    def new_action(self, tenant: str, *, default_method: str) -> HttpAction:
        """The request of something new of a tenant, whose destinations it may name. Raises InvalidField where
        a mask stands for nothing."""
        return self._http_action(HttpAction(url="", method=default_method), tenant)

    def _action(self, old: Action | None, tenant: str) -> Action:
        """The new action; `old` is the schedule's, None for a new schedule."""
        http = (self.url, self.destination, self.path, self.method, self.headers, self.body)
        if self.action is not NOT_GIVEN:
            if any(value is not NOT_GIVEN for value in http):
                raise InvalidField("action", "give action, or callback_url and what belongs to it, not both")
            return self.action.unmasked(old)
        if old is None and self.url is NOT_GIVEN and given(self.destination, None) is None:
            raise InvalidField("callback_url", "is missing: give it, the name of a destination, or an action")
        if old is not None and not isinstance(old, HttpAction) and all(value is NOT_GIVEN for value in http):
            return old
        if not isinstance(old, HttpAction):
            method = DEFAULT_METHOD_WITH_BODY if given(self.body, None) else DEFAULT_METHOD
            old = HttpAction(url="", method=method)
        return self._http_action(old, tenant)

    def queue_of(self, action: Action, old: str = CALLBACKS) -> str:
        """The queue of what has this action; `old` is the schedule's. Raises InvalidField."""
        if action.kind == COMMAND:
            if self.queue is NOT_GIVEN or self.queue == COMMANDS:
                return COMMANDS
            raise InvalidField("queue", f"of a command is always {COMMANDS}: leave it out")
        queue = given(self.queue, CALLBACKS if old == COMMANDS else old)
        if queue == COMMANDS:
            raise InvalidField("queue", f"{COMMANDS} is for commands alone; take another")
        check_queue(queue)
        return queue

    def _http_action(self, old: HttpAction, tenant: str) -> HttpAction:
        destination, url = self._receiver(old, tenant)
        method = old.method
        if destination is not None and old.destination is None:
            method = ""  # the destination's, unless this says which
        elif destination is None and not method:
            method = DEFAULT_METHOD_WITH_BODY if given(self.body, old.body) else DEFAULT_METHOD
        asked = HttpAction(
            url=url,
            destination=destination,
            method=given(self.method, method),
            headers=given(self.headers, old.headers),
            body=given(self.body, old.body),
        )
        kept = {
            name
            for name, value in (("headers", self.headers), ("body", self.body))
            if value is NOT_GIVEN and old.is_whole
        }
        return with_kept_secrets(asked, kept, old, given(self.known, old))

    def _receiver(self, old: HttpAction, tenant: str) -> tuple[WholeId | None, str]:
        """The destination's id and the path below it, or None and the URL. Raises InvalidField."""
        name = given(self.destination, None)
        if self.url is not NOT_GIVEN:
            if name is not None or self.path is not NOT_GIVEN:
                raise InvalidField(
                    "callback_url" if name is not None else "path",
                    "give callback_url, or destination and path, not both",
                )
            return None, self.url
        if self.destination is NOT_GIVEN:
            if self.path is not NOT_GIVEN and old.destination is None:
                raise InvalidField("path", "is below a destination: give destination, too")
            return old.destination, given(self.path, old.url)
        if name is None:
            if old.destination is not None or not old.url:
                raise InvalidField("destination", "give another one, or callback_url in its place")
            return None, old.url
        destination = whole_id(tenant, name)
        return destination, given(self.path, old.url if old.destination == destination else "")


#: The timezone of a schedule that names none.
UTC_NAME = "UTC"


@dataclass(frozen=True, slots=True)
class ScheduleDraft(ActionDraft):
    """The fields that were given; the others are NOT_GIVEN. Each value is valid by itself; whether they fit
    together is checked when the draft is applied."""

    trigger: Given | NotGiven = NOT_GIVEN
    """The trigger fields by their wire names (`rrule`, `run_at`, …); None takes one away."""
    timezone: str | NotGiven = NOT_GIVEN
    gap: Gap | NotGiven = NOT_GIVEN
    overlap: Overlap | NotGiven = NOT_GIVEN
    calendar: str | NotGiven | None = NOT_GIVEN
    """The name of one; None for none."""
    named_calendar: NamedCalendar | NotGiven = NOT_GIVEN
    """The calendar of that name, looked up by the use case."""
    on_holiday: OnHoliday | NotGiven | None = NOT_GIVEN
    """None for what the trigger implies."""
    catch_up: CatchUp | NotGiven = NOT_GIVEN
    catch_up_window_seconds: float | NotGiven = NOT_GIVEN
    late_after_seconds: float | NotGiven = NOT_GIVEN
    expire_after_seconds: float | NotGiven | None = NOT_GIVEN
    """None: its events never expire by it."""
    signing: bool | NotGiven = NOT_GIVEN
    """Whether callbacks are signed; the secret is generated when the schedule is stored."""
    state: ScheduleState | NotGiven = NOT_GIVEN
    """The state to be in, as far as the rule allows: `active` without an occurrence left is `finished`."""
    reason: str | NotGiven | None = NOT_GIVEN
    """Why it is in error, for one that is."""
    note: str | NotGiven | None = NOT_GIVEN
    """Why it is paused, for one that is."""
    paused_until: datetime | NotGiven | None = NOT_GIVEN
    """When that ends by itself."""

    def schedule(self, schedule_id: str, now: datetime, *, max_retries: int) -> Schedule:
        """The new schedule; `max_retries` is for one that names none. Raises InvalidField."""
        trigger = new_trigger(given(self.trigger, {}), self.context(None, None, now))
        calendar = self.observed(None, trigger)
        state = given(self.state, ScheduleState.ACTIVE)
        recurrence = trigger.recurrence(now)
        if calendar is not None:
            recurrence = calendar.observed_by(recurrence)
        following = recurrence.after(now) if state is ScheduleState.ACTIVE else None
        if state is ScheduleState.ACTIVE and following is None and trigger.fires_by_itself:
            state = ScheduleState.FINISHED
        action = self._action(None, tenant_of(schedule_id))
        made = Schedule(
            id=schedule_id,
            trigger=trigger,
            action=action,
            queue=self.queue_of(action),
            created_at=now,
            updated_at=now,
            retry=self.new_retry(max_retries),
            state=state,
            reason=given(self.reason, None) if state is ScheduleState.ERROR else None,
            revised_at=now,
            next_run_at=following,
            zone_data=trigger.zone_data(),
            **({"name": ""} | self.carried_over()),
            calendar=calendar,
            lateness=self.late(DEFAULT_LATENESS),
            pause=pause_after_edit(None, None, state, note=self.note, until=self.paused_until),
        )
        _check_completion(made)
        return made

    def edit(self, schedule: Schedule, now: datetime) -> Schedule:
        """The schedule with these changes: a revision when its trigger or its state changes, and `schedule`
        itself when nothing does. Raises InvalidField."""
        old = schedule.trigger
        action = self._action(schedule.action, schedule.tenant)
        queue = self.queue_of(action, schedule.queue)
        trigger = edited_trigger(
            given(self.trigger, {}),
            old,
            self.context(old, schedule.calendar, now),
            schedule.created_at,
            had_calendar=schedule.calendar is not None,
        )
        calendar = self.observed(schedule.calendar, trigger, old)
        same_time = trigger is old and calendar == schedule.calendar
        changed = replace(
            schedule,
            action=action,
            queue=queue,
            retry=self.edited_retry(schedule.retry),
            lateness=self.late(schedule.lateness),
            version=schedule.version + 1,
            updated_at=now,
            **self.carried_over(),
        )
        _check_completion(changed)
        kept = ScheduleState.PAUSED if schedule.state is ScheduleState.PAUSED else ScheduleState.ACTIVE
        state = given(self.state, schedule.state if same_time else kept)
        moved = queue != schedule.queue or changed.jitter_seconds != schedule.jitter_seconds
        # Events that were made already have the old queue and jitter: those after the cut are made anew.
        if not same_time or moved or state is not schedule.state:
            revised = changed.revise(now, trigger=trigger, state=state, calendar=calendar)
            # To a finished schedule "active" says nothing new while its rule has no occurrence left.
            if not same_time or moved or revised.state is not schedule.state:
                changed = revised
        if self.reason is not NOT_GIVEN and changed.state is ScheduleState.ERROR:
            changed = replace(changed, reason=self.reason)
        pause = pause_after_edit(
            schedule.pause, schedule.state, changed.state, note=self.note, until=self.paused_until
        )
        if pause != changed.pause:
            changed = replace(changed, pause=pause)
        unchanged = replace(changed, version=schedule.version, updated_at=schedule.updated_at) == schedule
        return schedule if unchanged else changed

    def late(self, old: Lateness) -> Lateness:
        """What becomes of late events, where `old` held before."""
        return Lateness(
            given(self.catch_up, old.catch_up),
            given(self.catch_up_window_seconds, old.window_seconds),
            given(self.late_after_seconds, old.late_after_seconds),
            given(self.expire_after_seconds, old.expire_after_seconds),
        )

    def observed(
        self, old: CalendarUse | None, trigger: Trigger, old_trigger: Trigger | None = None
    ) -> CalendarUse | None:
        """What is to be observed: `old`, which was observed with `old_trigger`, itself where nothing of it
        changes. Raises InvalidField."""
        name = given(self.calendar, old.name if old else None)
        if name is None:
            if given(self.on_holiday, None) is not None:
                raise InvalidField("on_holiday", "says what a calendar does: give calendar too")
            return None
        if trigger.pinned is None:
            raise InvalidField(
                "calendar", "is for triggers that repeat: leave it out, or give null where there was one"
            )
        on_holiday = given(self.on_holiday, None) or self._kept(old, old_trigger) or _implied(trigger)
        if _implied(trigger) == "uncounted" != on_holiday:
            raise InvalidField(
                "on_holiday", "the phrase counts the calendar's open days: leave it out, or give uncounted"
            )
        if old is not None and (name, on_holiday) == (old.name, old.on_holiday):
            return old
        known = old.known if old is not None and name == old.name else given(self.named_calendar, None)
        return CalendarUse(name, on_holiday, known=known).up_to_date()

    def _kept(self, old: CalendarUse | None, old_trigger: Trigger | None) -> OnHoliday | None:
        """What was chosen for holidays; None if it is what the old trigger implied."""
        if old is None or self.on_holiday is not NOT_GIVEN:
            return None
        is_default = old_trigger is not None and old.on_holiday == _implied(old_trigger)
        return None if is_default else old.on_holiday

    def context(self, old: Trigger | None, observed: CalendarUse | None, now: datetime) -> TriggerContext:
        """What the trigger is read in; `old` and `observed` are the schedule's, None for a new one."""
        timezone = given(self.timezone, old.timezone if old else UTC_NAME)
        return TriggerContext(
            at=now,
            timezone=timezone,
            gap=given(self.gap, old.gap if old else "shift"),
            overlap=given(self.overlap, old.overlap if old else "first"),
            timezone_given=self.timezone is not NOT_GIVEN or timezone != UTC_NAME,
            active=given(self.state, ScheduleState.ACTIVE) is ScheduleState.ACTIVE,
            calendar=given(self.calendar, observed.name if observed else None) is not None,
            observing=self._observing(observed),
        )

    def _observing(
        self, old: CalendarUse | None
    ) -> Callable[[AnyRecurrence, OnHoliday | None], AnyRecurrence] | None:
        name = given(self.calendar, old.name if old else None)
        known = old.known if old is not None and name == old.name else given(self.named_calendar, None)
        if name is None or known is None:
            return None
        chosen = given(self.on_holiday, None)

        def observing(recurrence: AnyRecurrence, implied: OnHoliday | None) -> AnyRecurrence:
            return CalendarUse(name, chosen or implied or "skip", known=known).observed_by(recurrence)

        return observing


def _check_completion(schedule: Schedule) -> None:
    if schedule.completion == "callback" and (problem := schedule.action.completion_problem):
        raise InvalidField("completion", f"callback {problem}")


def _implied(trigger: Trigger) -> OnHoliday:
    """What a trigger does on holidays unless the schedule says otherwise."""
    return trigger.on_holiday or "skip"

"""What `explain` says of a whole schedule agrees with the engine, and with what a beat would have made of it.

Schedules have exceptions, calendars, pauses and resumes; each is asked about instants before its creation, in
each of its pauses and after now. An ordinary run asks about 400 pairs, `make long` about 10,000.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random

import pytest

from scheduler_app.domain.calendars import Calendar, NamedCalendar, NamedDate
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.explanation import EventFacts, explain
from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence
from scheduler_app.domain.recurrence.why.set_reasons import ExplainedRecurrence, WholeBudget, verdict
from scheduler_app.domain.schedule import Schedule, ScheduleState
from scheduler_app.domain.states import State
from tests.builders import draft
from tests.unit.recurrence.everyday_sets import everyday_set
from tests.unit.recurrence.random_sets import FIRST

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
INSTANTS_A_SCHEDULE = 20


@dataclass(frozen=True)
class Life:
    """A schedule, and from when until when each of its revisions was active."""

    schedule: Schedule
    now: datetime
    active: tuple[tuple[int, datetime, datetime], ...]


def lived(random: Random) -> Life:
    """Half a second after any occurrence: what happens in the very instant of a cut is not in question."""
    text, zone = everyday_set(random)
    created = FIRST + timedelta(days=random.randrange(300), seconds=random.randrange(86_400) + 0.5)
    fields = {"rrule": text, "timezone": zone}
    fields |= {"gap": random.choice(["shift", "skip"]), "overlap": random.choice(["first", "last"])}
    if random.random() < 0.75:
        fields |= {"calendar": "c", "on_holiday": random.choice(["skip", "next", "previous"])}
        made = draft(**fields, named_calendar=calendar(random))
    else:
        made = draft(**fields)
    schedule = made.schedule("s1", created, max_retries=3)
    begun, active = created, list[tuple[int, datetime, datetime]]()
    for _ in range(random.choice([0, 0, 1, 2, 3, 4])):
        at = schedule.revised_at + random.randrange(1, 200) * random.choice([SECOND, DAY])
        if schedule.state is ScheduleState.PAUSED:
            schedule, begun = schedule.revise(at, state=ScheduleState.ACTIVE), at
        else:
            active.append((schedule.revision, begun, at))
            schedule = schedule.revise(at, state=ScheduleState.PAUSED)
    now = schedule.revised_at + random.randrange(400) * random.choice([SECOND, DAY])
    if schedule.state is not ScheduleState.PAUSED:
        active.append((schedule.revision, begun, datetime.max.replace(tzinfo=FIRST.tzinfo)))
    return Life(schedule, now, tuple(active))


def calendar(random: Random) -> NamedCalendar:
    days = {
        FIRST.date() + timedelta(days=random.randrange(1_500)) for _ in range(random.choice([1, 20, 150]))
    }
    weekend = tuple(random.sample(range(7), random.choice([0, 1, 2, 6])))
    of = Calendar.of(dates=tuple(NamedDate(each) for each in days), weekend=weekend)
    return NamedCalendar("default", "c", of, FIRST, FIRST)


def instants(random: Random, life: Life, recurrence: Recurrence) -> list[datetime]:
    """Occurrences and their neighbours, near to what happened to the schedule."""
    turns = [life.schedule.created_at, life.now, *(cut for _, *cuts in life.active for cut in cuts)]
    found: list[datetime] = []
    for _ in range(INSTANTS_A_SCHEDULE):
        turn = min(random.choice(turns), life.now + 100 * DAY)
        near = turn.replace(microsecond=0) + random.randrange(-50, 50) * random.choice([SECOND, DAY])
        after = recurrence.after(near)
        nudge = random.choice([0, 0, 0, 1, -1, 3600, -86_400, 86_400])
        found.append(near if after is None or random.random() < 0.2 else after + nudge * SECOND)
    return found


def check(life: Life, recurrence: Recurrence, at: datetime) -> str:
    """Asks, holds the answer against the engine, and returns the code of the first reason."""
    schedule = life.schedule
    occurs = recurrence.between(at, at + SECOND, 1) == [at]
    revision = next((number for number, begun, end in life.active if begun < at <= end), None)
    event = None
    if occurs and revision is not None and at <= life.now:
        event = EventFacts(revision, State.COMPLETED, "")
    steps = WholeBudget()
    found = verdict(
        ExplainedRecurrence(recurrence._set, recurrence._fires, recurrence._start, recurrence.observed),
        at,
        steps,
    )
    assert (found.fires, found.following) == (occurs, recurrence.after(at))
    assert found == recurrence.why(at)
    answer = explain(schedule, found, at, event, life.now)
    assert answer.fires == (occurs and revision is not None) == (not answer.reasons)
    assert all(reason.message and reason.code for reason in answer.reasons)
    return answer.reasons[0].code if answer.reasons else "fires"


def codes(seed: int, number: int) -> Counter[str]:
    random, found = Random(seed), Counter[str]()
    while found.total() < number:
        try:
            life = lived(random)
            recurrence = life.schedule.recurrence()
            assert isinstance(recurrence, Recurrence)
            asked = instants(random, life, recurrence)
        except (InvalidField, InvalidRecurrence):
            continue  # such a schedule cannot be made
        for at in asked:
            found[check(life, recurrence, at)] += 1
    return found


def test_the_answer_agrees_with_the_engine() -> None:
    assert {"fires", "created", "cut", "paused", "holiday"} <= codes(5, 160).keys()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(500, 520))
def test_the_answer_agrees_with_the_engine_for_ten_thousand_pairs(seed: int) -> None:
    """Each seed gives 500 of them."""
    assert {"fires", "paused"} <= codes(seed, 500).keys()

"""Why a rule does not fire at an instant: the reason for each part, beside the nearest occurrences."""

from datetime import UTC, date, datetime

import pytest

from scheduler_app.domain.recurrence import Never, Observance, Once, OnHoliday, Recurrence
from scheduler_app.domain.recurrence.timeline import LIMIT, weekday_sets, year_kind
from scheduler_app.domain.recurrence.why.set_reasons import ExplainedRecurrence, WholeBudget, verdict

CREATED = datetime(2027, 1, 1, tzinfo=UTC)
START = "DTSTART:20270105T090000\n"  # a Tuesday


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def parsed(text: str, zone: str = "UTC", *, gap: str = "shift", overlap: str = "first") -> Recurrence:
    return Recurrence.parse(text, created_at=CREATED, timezone=zone, gap=gap, overlap=overlap)


REASONS = [
    (
        "RRULE:FREQ=DAILY",
        "2027-01-04T09:00",
        "DTSTART",
        "It comes before DTSTART, Tuesday 5 January 2027, 09:00:00.",
    ),
    (
        "RRULE:FREQ=WEEKLY;INTERVAL=2",
        "2027-01-12T09:00",
        "INTERVAL",
        (
            "INTERVAL=2 takes one week in 2, counted from that of DTSTART, and the week of Tuesday 12 January"
            " 2027 is not one of them."
        ),
    ),
    (
        "RRULE:FREQ=HOURLY;INTERVAL=5",
        "2027-01-05T10:00",
        "INTERVAL",
        "INTERVAL=5 takes one hour in 5, counted from that of DTSTART, and this hour is not one of them.",
    ),
    (
        "RRULE:FREQ=DAILY;BYMONTH=3,4",
        "2027-02-05T09:00",
        "BYMONTH",
        "BYMONTH=3,4 does not name Friday 5 February 2027.",
    ),
    (
        "RRULE:FREQ=YEARLY;BYWEEKNO=20;BYDAY=MO",
        "2027-05-10T09:00",
        "BYWEEKNO",
        "BYWEEKNO=20 does not name Monday 10 May 2027.",
    ),
    (
        "RRULE:FREQ=YEARLY;BYYEARDAY=100",
        "2027-04-11T09:00",
        "BYYEARDAY",
        "BYYEARDAY=100 does not name Sunday 11 April 2027.",
    ),
    (
        "RRULE:FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
        "2027-02-12T09:00",
        "BYMONTHDAY",
        "BYMONTHDAY=13 does not name Friday 12 February 2027.",
    ),
    (
        "RRULE:FREQ=MONTHLY;BYMONTHDAY=13;BYDAY=FR",
        "2027-02-13T09:00",
        "BYDAY",
        "BYDAY=FR does not name Saturday 13 February 2027.",
    ),
    (
        "RRULE:FREQ=WEEKLY",
        "2027-01-13T09:00",
        "BYDAY",
        "The rule has no BYDAY, so DTSTART implies BYDAY=TU, which does not name Wednesday 13 January 2027.",
    ),
    ("RRULE:FREQ=DAILY;BYHOUR=8,20", "2027-01-06T09:00", "BYHOUR", "BYHOUR=8,20 does not name the hour 9."),
    (
        "RRULE:FREQ=DAILY",
        "2027-01-06T09:30",
        "BYMINUTE",
        "The rule has no BYMINUTE, so DTSTART implies BYMINUTE=0, and not the minute 30.",
    ),
    (
        "RRULE:FREQ=MINUTELY;BYMINUTE=10",
        "2027-01-06T09:10:30",
        "BYSECOND",
        "The rule has no BYSECOND, so DTSTART implies BYSECOND=0, and not the second 30.",
    ),
    (
        "RRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
        "2027-01-28T09:00",
        "BYSETPOS",
        "The other parts name it, but BYSETPOS=-1 picks other times of the month.",
    ),
    (
        "RRULE:FREQ=DAILY;UNTIL=20270110T090000Z",
        "2027-01-11T09:00",
        "UNTIL",
        "The rule ends with UNTIL=20270110T090000Z.",
    ),
    ("RRULE:FREQ=DAILY;COUNT=3", "2027-01-08T09:00", "COUNT", "The rule has ended: COUNT=3 came before it."),
    (
        "RRULE:FREQ=DAILY\nEXDATE:20270108T090000",
        "2027-01-08T09:00",
        "EXDATE",
        "An EXDATE takes Friday 8 January 2027, 09:00:00 away.",
    ),
    (
        "RRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:20270108",
        "2027-01-08T09:00",
        "EXDATE",
        "An EXDATE takes Friday 8 January 2027 away as a whole.",
    ),
    (
        "RRULE:FREQ=DAILY\nEXRULE:FREQ=WEEKLY;BYDAY=FR",
        "2027-01-08T09:00",
        "EXRULE",
        "EXRULE:FREQ=WEEKLY;BYDAY=FR takes Friday 8 January 2027, 09:00:00 away.",
    ),
    (
        "RDATE:20270109T090000",
        "2027-01-08T09:00",
        "RDATE",
        "No RDATE names Friday 8 January 2027, 09:00:00, and there is no rule.",
    ),
    (
        "RRULE:FREQ=DAILY",
        "2027-01-08T09:00:00.500",
        "whole_second",
        "A recurrence fires at whole seconds, and this has a fraction.",
    ),
]


@pytest.mark.parametrize(("text", "instant", "code", "message"), REASONS)
def test_the_first_part_that_leaves_an_instant_out_is_named(
    text: str, instant: str, code: str, message: str
) -> None:
    found = parsed(START + text).why(at(instant))
    assert not found.fires
    assert (found.reasons[0].code, found.reasons[0].message) == (code, message)


def test_an_occurrence_has_no_reason_and_two_neighbours() -> None:
    found = parsed(START + "RRULE:FREQ=DAILY").why(at("2027-01-08T09:00"))
    assert found.fires
    assert not found.reasons
    assert (found.previous, found.following) == (at("2027-01-07T09:00"), at("2027-01-09T09:00"))


def test_each_rule_has_its_own_reason() -> None:
    text = START + "RRULE:FREQ=DAILY;BYHOUR=8\nRRULE:FREQ=WEEKLY;BYDAY=MO"
    found = parsed(text).why(at("2027-01-08T09:00"))
    assert [(reason.code, reason.rule) for reason in found.reasons] == [
        ("BYHOUR", "FREQ=DAILY;BYHOUR=8"),
        ("BYDAY", "FREQ=WEEKLY;BYDAY=MO"),
    ]


def test_a_time_that_clocks_leave_out_is_a_gap_where_gaps_are_skipped() -> None:
    text = "DTSTART:20270320T023000\nRRULE:FREQ=DAILY"
    found = parsed(text, "Europe/Zurich", gap="skip").why(at("2027-03-28T01:30"))
    assert found.reasons[0].code == "gap"
    assert found.reasons[0].message == (
        "Sunday 28 March 2027, 02:30:00 does not exist in Europe/Zurich, where clocks are put forward then,"
        " and gap=skip leaves it out."
    )
    assert parsed(text, "Europe/Zurich").why(at("2027-03-28T01:30")).fires


def test_of_a_time_that_comes_twice_the_other_one_is_an_overlap() -> None:
    text = "DTSTART:20271020T023000\nRRULE:FREQ=DAILY"
    first, last = at("2027-10-31T00:30"), at("2027-10-31T01:30")
    assert parsed(text, "Europe/Zurich").why(last).reasons[0].code == "overlap"
    assert parsed(text, "Europe/Zurich", overlap="last").why(first).reasons[0].message == (
        "Sunday 31 October 2027, 02:30:00 comes twice in Europe/Zurich, where clocks are put back then, and"
        " overlap=last takes the last time."
    )


def test_after_the_end_there_is_only_a_previous_occurrence() -> None:
    found = parsed(START + "RRULE:FREQ=DAILY;COUNT=3").why(at("2100-01-01T00:00"))
    assert (found.previous, found.following) == (at("2027-01-07T09:00"), None)


def test_a_rule_from_1970_costs_what_one_from_yesterday_costs() -> None:
    old = parsed("DTSTART:19700101T000000\nRRULE:FREQ=SECONDLY;INTERVAL=7;BYMONTH=2;BYDAY=MO")
    steps = WholeBudget()
    verdict(ExplainedRecurrence(old._set, old._set, old._start), at("2027-06-15T12:00"), steps)
    assert LIMIT - steps.steps_left < 500


def test_a_search_for_the_previous_occurrence_is_given_up_within_the_budget() -> None:
    rare = parsed("DTSTART:20000101T000000\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=29;BYDAY=MO")
    steps = WholeBudget()
    steps.steps_left = 150
    found = verdict(ExplainedRecurrence(rare._set, rare._set, rare._start), at("2044-11-05T19:04"), steps)
    assert not found.previous_searched
    assert found.previous is None
    assert found.following is not None


def test_a_single_instant_and_nothing_at_all_can_be_asked_too() -> None:
    once = Once(at("2027-01-08T09:00"))
    assert once.why(once.instant).fires
    assert once.why(at("2027-01-07T00:00")).following == once.instant
    assert once.why(at("2027-01-09T00:00")).previous == once.instant
    assert once.why(at("2027-01-09T00:00")).reasons[0].code == "run_at"
    assert Never().why(once.instant).reasons[0].code == "on_demand"


class Weekends:
    """Saturdays and Sundays are closed."""

    irregular_until = 0

    def of_year(self, year: int) -> int:
        sets = weekday_sets(year_kind(year))
        return sets[5] | sets[6]

    def name_of(self, at: date) -> str:
        return "Easter Saturday" if at == date(2027, 3, 27) else ""


def observing(on_holiday: OnHoliday) -> Recurrence:
    observed = Observance("office", Weekends(), on_holiday)
    return parsed(START + "RRULE:FREQ=MONTHLY;BYMONTHDAY=13,27").observing(observed)


def test_a_closed_day_of_the_calendar_is_a_holiday() -> None:
    found = observing("skip").why(at("2027-02-13T09:00"))  # a Saturday
    assert [reason.code for reason in found.reasons] == ["holiday"]
    assert found.reasons[0].message == (
        "The calendar office is closed on Saturday 13 February 2027, and on_holiday=skip leaves it out."
    )
    assert (found.previous, found.following) == (at("2027-01-27T09:00"), at("2027-04-13T09:00"))
    assert observing("skip").why(at("2027-02-12T09:00")).reasons[0].code == "BYMONTHDAY"


def test_an_occurrence_that_the_calendar_moved_fires_where_it_went() -> None:
    later = observing("next")
    assert later.why(at("2027-02-15T09:00")).fires
    assert (
        later.why(at("2027-02-13T09:00"))
        .reasons[0]
        .message.endswith("on_holiday=next moves it to Monday 15 February 2027, 09:00:00.")
    )
    earlier = observing("previous").why(at("2027-02-12T09:00"))
    assert earlier.fires
    assert (earlier.previous, earlier.following) == (at("2027-01-27T09:00"), at("2027-02-26T09:00"))


CAUSES = [
    (
        "RRULE:FREQ=DAILY",
        "UTC",
        "2027-01-08T09:00",
        "RRULE",
        "FREQ=DAILY names Friday 8 January 2027, 09:00:00.",
    ),
    (
        "RRULE:FREQ=HOURLY;INTERVAL=5",
        "UTC",
        "2027-01-05T14:00",
        "RRULE",
        "FREQ=HOURLY;INTERVAL=5 reaches Tuesday 5 January 2027, 14:00:00 in elapsed time.",
    ),
    ("RRULE:FREQ=DAILY\nRDATE:20270108T100000", "UTC", "2027-01-08T10:00", "RDATE", "A date names Friday 8"),
    ("RDATE:20270105T090000", "UTC", "2027-01-05T09:00", "DTSTART", "It fires once, Tuesday 5 January 2027"),
    (
        "RRULE:RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
        "UTC",
        "2027-04-30T09:00",
        "SKIP",
        (
            "It is the occurrence of the 31st day of the month, which April 2027 does not have:"
            " SKIP=BACKWARD moves"
            " it to Friday 30 April 2027."
        ),
    ),
    (
        "RRULE:RSCALE=GREGORIAN;FREQ=MONTHLY;BYMONTHDAY=31;SKIP=BACKWARD",
        "UTC",
        "2027-05-31T09:00",
        "RRULE",
        "names Monday 31 May 2027, 09:00:00.",
    ),
    (
        "RRULE:RSCALE=GREGORIAN;FREQ=YEARLY;BYYEARDAY=366;SKIP=FORWARD",
        "UTC",
        "2028-01-01T09:00",
        "SKIP",
        (
            "the 366th day of the year, which 2027 does not have: SKIP=FORWARD moves it to Saturday 1"
            " January 2028."
        ),
    ),
    (
        "RRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30",
        "Europe/Zurich",
        "2027-03-28T01:30",
        "gap",
        (
            "It is the occurrence of Sunday 28 March 2027, 02:30:00, which does not exist in Europe/Zurich,"
            " where clocks are put forward then; gap=shift fires it that much later, at Sunday 28 March 2027,"
            " 03:30:00."
        ),
    ),
    (
        "RRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=30",
        "Europe/Zurich",
        "2027-10-31T00:30",
        "overlap",
        (
            "Sunday 31 October 2027, 02:30:00 comes twice in Europe/Zurich, where clocks are put back then,"
            " and overlap=first takes the first time, which this is."
        ),
    ),
]


@pytest.mark.parametrize(("lines", "zone", "instant", "code", "words"), CAUSES)
def test_what_fires_says_what_names_it_or_moved_it(
    lines: str, zone: str, instant: str, code: str, words: str
) -> None:
    found = parsed(START + lines, zone).why(at(instant))
    assert found.fires
    (cause,) = found.causes
    assert cause.code == code
    assert words in cause.message


def test_an_occurrence_that_the_calendar_moved_says_from_where_and_why() -> None:
    moved, own = (
        observing("next").why(at("2027-03-29T09:00")).causes[0],
        observing("next").why(at("2027-04-13T09:00")),
    )
    assert (moved.code, moved.message) == (
        "holiday",
        (
            "It is the occurrence of Saturday 27 March 2027, 09:00:00: the calendar office is closed on"
            " Saturday 27"
            " March 2027 (Easter Saturday), and on_holiday=next moves it to the next open day."
        ),
    )
    assert [cause.code for cause in own.causes] == ["RRULE"]
    left_out = observing("next").why(at("2027-03-27T09:00")).reasons[0].message
    assert left_out == (
        "The calendar office is closed on Saturday 27 March 2027 (Easter Saturday), and"
        " on_holiday=next moves it"
        " to Monday 29 March 2027, 09:00:00."
    )


def test_what_does_not_fire_has_no_cause() -> None:
    assert parsed(START + "RRULE:FREQ=DAILY").why(at("2027-01-08T09:01")).causes == ()


def test_a_question_about_a_time_that_clocks_leave_out_is_answered_for_that_time() -> None:
    rule = parsed(START + "RRULE:FREQ=DAILY;BYHOUR=2;BYMINUTE=0,30;BYSECOND=0", "Europe/Zurich")
    found = rule.why(at("2027-03-28T01:15")).reasons[0]  # 02:15 of that day is taken for 03:15
    assert found.code == "BYMINUTE"
    assert found.message == (
        "BYHOUR=2 does not name the hour 3. It is also what Sunday 28 March 2027, 02:15:00 would be"
        " moved to, which"
        " does not exist in Europe/Zurich, where clocks are put forward then: BYMINUTE=0,30 does not"
        " name the minute"
        " 15."
    )


def test_a_time_that_clocks_leave_out_on_a_closed_day_moves_as_it_was_written() -> None:
    daily = parsed("DTSTART:20270105T023000\nRRULE:FREQ=DAILY", "Europe/Zurich")
    found = daily.observing(Observance("office", Weekends(), "next")).why(at("2027-03-28T01:30"))  # 03:30
    assert found.reasons[0].message.endswith("moves it to Monday 29 March 2027, 02:30:00.")


def test_the_first_occurrence_may_be_moved_to_before_dtstart() -> None:
    text = "DTSTART:20270214T090000\nRRULE:FREQ=YEARLY"  # a Sunday
    moved = parsed(text).observing(Observance("office", Weekends(), "previous"))
    assert moved.why(at("2027-02-13T00:00")).previous == moved.after(at("2027-01-01T00:00"))


def test_what_names_an_instant_is_told_although_the_one_before_it_is_too_far_to_find() -> None:
    rules = parsed(
        "DTSTART;TZID=America/New_York:20260903T010000\n"
        "RRULE:FREQ=HOURLY;INTERVAL=60;UNTIL=20340320T000000Z;BYDAY=WE,SA,SU\n"
        "RRULE:FREQ=HOURLY;BYYEARDAY=-366,1,60,100,366\n"
        "EXRULE:FREQ=HOURLY;INTERVAL=60;BYDAY=WE,SA,SU;BYHOUR="
        + ",".join(str(hour) for hour in range(24) if hour != 20)
    )
    found = rules.why(at("2028-12-31T06:00"))
    assert (found.fires, found.previous_searched) == (True, False)
    assert {cause.code for cause in found.causes} == {"RRULE"}

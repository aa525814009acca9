"""The accepted text, its canonical form, and how DTSTART is pinned."""

from datetime import UTC, datetime, timedelta

import pytest

from scheduler_app.domain.recurrence import Recurrence

CREATED = datetime(2026, 1, 1, 12, 0, 0, 250_000, tzinfo=UTC)
LATER = datetime(2031, 5, 5, tzinfo=UTC)
Z = "DTSTART:20260101T083000Z"
NY = "DTSTART;TZID=America/New_York:20260101T083000"
FORMS = [
    ("FREQ=DAILY", "DTSTART:20260101T120001Z\nRRULE:FREQ=DAILY"),
    ("rrule:freq=daily", "DTSTART:20260101T120001Z\nRRULE:FREQ=DAILY"),
    ("FREQ=DAILY;", "DTSTART:20260101T120001Z\nRRULE:FREQ=DAILY"),
    ("  FREQ = DAILY ; INTERVAL = 2 ", "DTSTART:20260101T120001Z\nRRULE:FREQ=DAILY;INTERVAL=2"),
    (f"{Z}\nRRULE:FREQ=DAILY;INTERVAL=1", f"{Z}\nRRULE:FREQ=DAILY"),
    (f"{Z}\r\nRRULE:FREQ=DAILY\r\n", f"{Z}\nRRULE:FREQ=DAILY"),
    (f"RRULE:FREQ=DAILY\n{Z}", f"{Z}\nRRULE:FREQ=DAILY"),
    (f"{Z}\nRRULE:FREQ=WEEKLY;BYDAY\n =MO,\n\tWE", f"{Z}\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE"),
    (f"{Z}\nFREQ=WEEKLY;BYDAY=WE,MO,WE", f"{Z}\nRRULE:FREQ=WEEKLY;BYDAY=MO,WE"),
    (f"{Z}\nRRULE:FREQ=MONTHLY;BYDAY=+2MO,-1FR", f"{Z}\nRRULE:FREQ=MONTHLY;BYDAY=-1FR,2MO"),
    (f"{Z}\nRRULE:FREQ=WEEKLY;WKST=MO", f"{Z}\nRRULE:FREQ=WEEKLY"),
    (f"{Z}\nRRULE:FREQ=WEEKLY;WKST=SU", f"{Z}\nRRULE:FREQ=WEEKLY;WKST=SU"),
    (f"{Z}\nRRULE:FREQ=DAILY;COUNT=05", f"{Z}\nRRULE:FREQ=DAILY;COUNT=5"),
    (f"{Z}\nRRULE:FREQ=DAILY;UNTIL=20260110T083000Z", f"{Z}\nRRULE:FREQ=DAILY;UNTIL=20260110T083000Z"),
    ('DTSTART;TZID="America/New_York":20260101T083000\nRRULE:FREQ=DAILY', f"{NY}\nRRULE:FREQ=DAILY"),
    ("dtstart;tzid=america/new_york:20260101t083000\nrrule:freq=daily", f"{NY}\nRRULE:FREQ=DAILY"),
    ("DTSTART;TZID=/America/New_York:20260101T083000\nRRULE:FREQ=DAILY", f"{NY}\nRRULE:FREQ=DAILY"),
    ("DTSTART;TZID=UTC:20260101T083000\nRRULE:FREQ=DAILY", f"{Z}\nRRULE:FREQ=DAILY"),
    ("DTSTART;VALUE=DATE-TIME:20260101T083000Z\nRRULE:FREQ=DAILY", f"{Z}\nRRULE:FREQ=DAILY"),
    ("DTSTART;X-NOTE=hi:20260101T083000Z\nRRULE:FREQ=DAILY", f"{Z}\nRRULE:FREQ=DAILY"),
    ("DTSTART:20260101\nRRULE:FREQ=DAILY", "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY"),
    ("DTSTART;VALUE=DATE:20260101\nRRULE:FREQ=DAILY", "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY"),
    (
        "DTSTART:20260101\nRRULE:FREQ=DAILY;UNTIL=20260103\nEXDATE:20260102",
        "DTSTART:20260101T000000Z\nRRULE:FREQ=DAILY;UNTIL=20260103T235959Z\nEXDATE:20260102T000000Z",
    ),
    (f"{Z}\nRRULE:FREQ=DAILY\nEXDATE:20260102", f"{Z}\nRRULE:FREQ=DAILY\nEXDATE;VALUE=DATE:20260102"),
    (
        f"{NY}\nRRULE:FREQ=DAILY\nEXDATE:20260103T083000,20260102T083000\nEXDATE:20260104T133000Z",
        "\n".join(
            (
                NY,
                "RRULE:FREQ=DAILY",
                "EXDATE;TZID=America/New_York:20260102T083000,20260103T083000",
                "EXDATE:20260104T133000Z",
            )
        ),
    ),
    (
        f"{NY}\nRRULE:FREQ=DAILY\nRDATE;TZID=Asia/Tokyo:20260102T083000",
        f"{NY}\nRRULE:FREQ=DAILY\nRDATE;TZID=Asia/Tokyo:20260102T083000",
    ),
    (f"{Z}\nRRULE:FREQ=DAILY\nRRULE:FREQ=DAILY", f"{Z}\nRRULE:FREQ=DAILY"),
    (f"{Z}\nRRULE:FREQ=DAILY\nEXRULE:FREQ=MONTHLY", f"{Z}\nRRULE:FREQ=DAILY\nEXRULE:FREQ=MONTHLY"),
    (
        "RDATE:20260105T000000Z,20260103T000000Z",
        "DTSTART:20260103T000000Z\nRDATE:20260103T000000Z,20260105T000000Z",
    ),
    (Z, Z),
]


@pytest.mark.parametrize(("text", "canonical"), FORMS)
def test_a_text_is_read_and_written_canonically(text: str, canonical: str) -> None:
    assert Recurrence.parse(text, created_at=CREATED).text == canonical


@pytest.mark.parametrize("canonical", sorted({row[1] for row in FORMS}))
def test_the_canonical_text_is_read_as_itself_at_any_later_time(canonical: str) -> None:
    first = Recurrence.parse(canonical, created_at=CREATED)
    again = Recurrence.parse(first.text, created_at=LATER, timezone="Asia/Tokyo")
    assert again == first
    window = (datetime(2025, 12, 1, tzinfo=UTC), datetime(2026, 3, 1, tzinfo=UTC), 20)
    assert again.between(*window) == first.between(*window)


def test_a_missing_dtstart_is_the_next_whole_second_after_creation_in_the_schedules_zone() -> None:
    recurrence = Recurrence.parse("FREQ=DAILY", created_at=CREATED, timezone="America/New_York")
    assert recurrence.text == "DTSTART;TZID=America/New_York:20260101T070001\nRRULE:FREQ=DAILY"
    assert recurrence.timezone == "America/New_York"
    assert recurrence.dtstart == datetime(2026, 1, 1, 12, 0, 1, tzinfo=UTC)
    assert recurrence.after(CREATED) == recurrence.dtstart
    whole = Recurrence.parse("FREQ=DAILY", created_at=CREATED.replace(microsecond=0))
    assert whole.after(CREATED.replace(microsecond=0)) == datetime(2026, 1, 1, 12, 0, 1, tzinfo=UTC)


def test_a_floating_dtstart_is_read_in_the_schedules_zone() -> None:
    text = "DTSTART:20260701T083000\nRRULE:FREQ=DAILY"
    recurrence = Recurrence.parse(text, created_at=CREATED, timezone="Europe/Paris")
    assert recurrence.dtstart == datetime(2026, 7, 1, 6, 30, tzinfo=UTC)
    assert Recurrence.parse(text, created_at=CREATED).dtstart == datetime(2026, 7, 1, 8, 30, tzinfo=UTC)


def test_a_dtstart_that_the_rule_does_not_hit_is_no_occurrence() -> None:
    recurrence = Recurrence.parse(f"{Z}\nRRULE:FREQ=WEEKLY;BYDAY=MO", created_at=CREATED)
    assert recurrence.after(recurrence.dtstart, inclusive=True) == datetime(2026, 1, 5, 8, 30, tzinfo=UTC)


def test_until_is_inclusive_and_a_local_one_is_read_where_dtstart_is_local() -> None:
    end = datetime(2027, 1, 1, tzinfo=UTC)
    for until in ("20260103T133000Z", "20260103T083000"):
        text = f"DTSTART:20260101T083000\nRRULE:FREQ=DAILY;UNTIL={until}"
        recurrence = Recurrence.parse(text, created_at=CREATED, timezone="America/New_York")
        assert recurrence.between(CREATED, end)[-1] == datetime(2026, 1, 3, 13, 30, tzinfo=UTC)
    whole_day = Recurrence.parse(
        "FREQ=HOURLY;UNTIL=20260102", created_at=CREATED, timezone="America/New_York"
    )
    assert whole_day.between(CREATED, end)[-1] == datetime(2026, 1, 3, 4, 0, 1, tzinfo=UTC)


def test_order_and_repeats_in_the_text_change_nothing() -> None:
    one = Recurrence.parse(f"{Z}\nRRULE:FREQ=MONTHLY;BYDAY=FR,MO;BYHOUR=8,20", created_at=CREATED)
    other = Recurrence.parse(f"RRULE:BYHOUR=20,8,8;BYDAY=MO,FR;FREQ=MONTHLY\n{Z}", created_at=CREATED)
    assert one == other
    assert hash(one) == hash(other)


def test_a_recurrence_is_frozen_and_differs_by_its_choices() -> None:
    one = Recurrence.parse(Z + "\nRRULE:FREQ=DAILY", created_at=CREATED)
    with pytest.raises(AttributeError):
        one.text = "FREQ=HOURLY"  # type: ignore[misc]
    assert one != Recurrence.parse(one.text, created_at=CREATED, gap="skip")
    assert one != Recurrence.parse(one.text, created_at=CREATED, overlap="last")


def test_instants_between_two_seconds_are_compared_exactly() -> None:
    recurrence = Recurrence.parse(f"{Z}\nRRULE:FREQ=SECONDLY", created_at=CREATED)
    start = recurrence.dtstart
    half = timedelta(milliseconds=500)
    second = timedelta(seconds=1)
    assert recurrence.after(start + half) == start + second
    assert recurrence.after(start + half, inclusive=True) == start + second
    assert recurrence.after(start, inclusive=True) == start
    assert recurrence.after(start) == start + second
    assert recurrence.between(start + half, start + second + half) == [start + second]
    assert recurrence.between(start, start + second) == [start]
    assert recurrence.between(start, start + 9 * second, 2) == [start, start + second]
    assert recurrence.between(start, start + second, 0) == []
    assert recurrence.between(start + second, start) == []

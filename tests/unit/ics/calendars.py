"""Forty calendars in the style of programs that people export from, and what a careful reader expects.

Each is read at `NOW` with `Europe/Zurich` as the zone of times that name none. An expectation is the outcome
of each item, in the file's order, with the first coming occurrences of all its series together, in UTC.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

NOW = datetime(2026, 11, 22, 10, 0, tzinfo=UTC)

BERLIN = """BEGIN:VTIMEZONE
TZID:{tzid}
BEGIN:STANDARD
DTSTART:16010101T030000
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=10
END:STANDARD
BEGIN:DAYLIGHT
DTSTART:16010101T020000
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
RRULE:FREQ=YEARLY;INTERVAL=1;BYDAY=-1SU;BYMONTH=3
END:DAYLIGHT
END:VTIMEZONE
"""


@dataclass(frozen=True)
class Expected:
    """An item: its outcome, its first coming occurrences, and words that its notes, its reason or what it
    ignores must contain."""

    outcome: str
    times: tuple[str, ...] = ()
    says: tuple[str, ...] = ()


def taken(*times: str, says: tuple[str, ...] = ()) -> Expected:
    return Expected("schedules", times, says)


def over() -> Expected:
    return Expected("over", (), ("have passed",))


def ignored(*says: str) -> Expected:
    return Expected("ignored", (), says)


def refused(*says: str) -> Expected:
    return Expected("refused", (), says)


def event(lines: str, uid: str = "1", kind: str = "VEVENT") -> str:
    return f"BEGIN:{kind}\nUID:{uid}\nDTSTAMP:20260101T000000Z\nSUMMARY:Thing {uid}\n{lines}\nEND:{kind}\n"


def file(*inner: str, head: str = "") -> str:
    return f"BEGIN:VCALENDAR\nVERSION:2.0\nPRODID:-//Test//EN\n{head}{''.join(inner)}END:VCALENDAR\n"


ZURICH = "DTSTART;TZID=Europe/Zurich"

CALENDARS: dict[str, tuple[str, list[Expected]]] = {
    "google: weekly, until in UTC": (
        file(
            event(
                "DTSTART;TZID=America/New_York:20260105T093000\nDTEND;TZID=America/New_York:20260105T100000\n"
                "RRULE:FREQ=WEEKLY;WKST=SU;UNTIL=20261208T045959Z;BYDAY=MO,WE\nSEQUENCE:3\nTRANSP:OPAQUE"
            ),
            head="X-WR-CALNAME:Team\nX-WR-TIMEZONE:America/New_York\n",
        ),
        [
            taken(
                "2026-11-23T14:30",
                "2026-11-25T14:30",
                "2026-11-30T14:30",
                "2026-12-02T14:30",
                "2026-12-07T14:30",
                says=("DTEND",),
            )
        ],
    ),
    "google: one occurrence moved, one cancelled": (
        file(
            event(f"{ZURICH}:20261123T080000\nRRULE:FREQ=DAILY;COUNT=4"),
            event(
                "RECURRENCE-ID;TZID=Europe/Zurich:20261124T080000\nDTSTART;TZID=Europe/Zurich:20261124T110000"
            ),
            event(
                f"RECURRENCE-ID;TZID=Europe/Zurich:20261125T080000\nSTATUS:CANCELLED\n{ZURICH}:20261125T080000"
            ),
        ),
        [taken("2026-11-23T07:00", "2026-11-24T10:00", "2026-11-26T07:00")],
    ),
    "google: all day, yearly birthday": (
        file(event("DTSTART;VALUE=DATE:19800229\nDTEND;VALUE=DATE:19800301\nRRULE:FREQ=YEARLY")),
        [taken("2028-02-28T23:00", "2032-02-28T23:00", says=("midnight in Europe/Zurich",))],
    ),
    "google: calendar's own zone for floating times": (
        file(event("DTSTART:20270110T120000"), head="X-WR-TIMEZONE:Asia/Tokyo\n"),
        [taken("2027-01-10T03:00", says=("Asia/Tokyo", "X-WR-TIMEZONE"))],
    ),
    "google: exceptions line by line": (
        file(
            event(
                f"{ZURICH}:20261123T080000\nRRULE:FREQ=DAILY;COUNT=5\n"
                "EXDATE;TZID=Europe/Zurich:20261124T080000\nEXDATE;TZID=Europe/Zurich:20261126T080000"
            )
        ),
        [taken("2026-11-23T07:00", "2026-11-25T07:00", "2026-11-27T07:00")],
    ),
    "outlook: windows zone name": (
        file(
            BERLIN.format(tzid="W. Europe Standard Time"),
            event(
                "DTSTART;TZID=W. Europe Standard Time:20270104T090000\n"
                "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO\nX-MICROSOFT-CDO-BUSYSTATUS:BUSY"
            ),
        ),
        [
            taken(
                "2027-01-04T08:00",
                "2027-01-18T08:00",
                says=("is read as Europe/Berlin", "X-MICROSOFT-CDO-BUSYSTATUS"),
            )
        ],
    ),
    "outlook: zone named by its label, defined in the file": (
        file(
            BERLIN.format(tzid="(UTC+01:00) Amsterdam\\, Berlin\\, Bern\\, Rome"),
            event('DTSTART;TZID="(UTC+01:00) Amsterdam\\, Berlin\\, Bern\\, Rome":20270704T090000'),
        ),
        [taken("2027-07-04T07:00", says=("is read as Europe/Berlin",))],
    ),
    "outlook: customized time zone": (
        file(
            BERLIN.format(tzid="Customized Time Zone"),
            event("DTSTART;TZID=Customized Time Zone:20270704T090000"),
        ),
        [taken("2027-07-04T07:00", says=("has its offsets from 2025 to 2028",))],
    ),
    "exchange: pacific and a meeting request": (
        file(
            event(
                'DTSTART;TZID="Pacific Standard Time":20270315T100000\nORGANIZER:mailto:a@example.com\n'
                "ATTENDEE;ROLE=REQ-PARTICIPANT:mailto:b@example.com\nBEGIN:VALARM\nTRIGGER:-PT15M\n"
                "ACTION:DISPLAY\nEND:VALARM"
            ),
            head="METHOD:REQUEST\n",
        ),
        [taken("2027-03-15T17:00", says=("America/Los_Angeles", "ORGANIZER", "ATTENDEE", "VALARM"))],
    ),
    "exchange: cancelled meeting": (
        file(event("DTSTART:20270315T100000Z\nSTATUS:CANCELLED"), head="METHOD:CANCEL\n"),
        [ignored("METHOD is CANCEL")],
    ),
    "exchange: an occurrence without its series": (
        file(event(f"RECURRENCE-ID:20270302T080000Z\n{ZURICH}:20270302T100000")),
        [taken("2027-03-02T09:00", says=("not in the file",))],
    ),
    "exchange: first workday of the month": (
        file(event(f"{ZURICH}:20260601T070000\nRRULE:FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1")),
        [taken("2026-12-01T06:00", "2027-01-01T06:00", "2027-02-01T06:00")],
    ),
    "apple: recurrence-id in UTC, local series": (
        file(
            event(f"{ZURICH}:20261130T080000\nRRULE:FREQ=WEEKLY;COUNT=3"),
            event(f"RECURRENCE-ID:20261207T070000Z\n{ZURICH}:20261208T080000"),
        ),
        [taken("2026-11-30T07:00", "2026-12-08T07:00", "2026-12-14T07:00")],
    ),
    "apple: from this one on, at another time": (
        file(
            event(f"{ZURICH}:20261130T080000\nRRULE:FREQ=WEEKLY;COUNT=5"),
            event(
                f"RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Zurich:20261214T080000\n{ZURICH}:20261214T093000"
            ),
        ),
        [
            taken(
                *("2026-11-30T07:00", "2026-12-07T07:00", "2026-12-14T08:30"),
                *("2026-12-21T08:30", "2026-12-28T08:30"),
            )
        ],
    ),
    "apple: from this one on, which is named in UTC": (
        file(
            event(f"{ZURICH}:20261130T080000\nRRULE:FREQ=WEEKLY;COUNT=3"),
            event(f"RECURRENCE-ID;RANGE=THISANDFUTURE:20261207T070000Z\n{ZURICH}:20261207T093000"),
        ),
        [taken("2026-11-30T07:00", "2026-12-07T08:30", "2026-12-14T08:30")],
    ),
    "apple: from this one on, on another day": (
        file(
            event(f"{ZURICH}:20261130T080000\nRRULE:FREQ=WEEKLY;BYDAY=MO,TH;UNTIL=20261218"),
            event(
                f"RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Zurich:20261207T080000\n{ZURICH}:20261208T080000"
            ),
        ),
        [
            taken(
                *("2026-11-30T07:00", "2026-12-03T07:00", "2026-12-08T07:00"),
                *("2026-12-11T07:00", "2026-12-15T07:00", "2026-12-18T07:00"),
            )
        ],
    ),
    "apple: every other week, from this one on a day later": (
        file(
            event(f"{ZURICH}:20261130T080000\nRRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,SU;COUNT=6"),
            event(
                f"RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Zurich:20261214T080000\n{ZURICH}:20261215T080000"
            ),
        ),
        [
            taken(
                *("2026-11-30T07:00", "2026-12-06T07:00", "2026-12-15T07:00"),
                *("2026-12-21T07:00", "2026-12-29T07:00", "2027-01-04T07:00"),
            )
        ],
    ),
    "apple: from this one on, cancelled": (
        file(
            event(f"{ZURICH}:20261130T080000\nRRULE:FREQ=WEEKLY"),
            event(
                "RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Zurich:20261214T080000\nSTATUS:CANCELLED\n"
                f"{ZURICH}:20261214T080000"
            ),
        ),
        [taken("2026-11-30T07:00", "2026-12-07T07:00")],
    ),
    "apple: from this one on, in a way no rule says": (
        file(
            event(f"{ZURICH}:20261201T080000\nRRULE:FREQ=MONTHLY;BYDAY=1TU"),
            event(
                f"RECURRENCE-ID;RANGE=THISANDFUTURE;TZID=Europe/Zurich:20270105T080000\n{ZURICH}:20270106T080000"
            ),
        ),
        [refused("THISANDFUTURE", "its rule cannot say")],
    ),
    "apple: folded lines and escapes": (
        file(event("DTSTART;TZID=Europe/Zu\n rich:20270101T0\n 80000\nDESCRIPTION:a\\, b\\nc")).replace(
            "\n", "\r\n"
        ),
        [taken("2027-01-01T07:00", says=("DESCRIPTION",))],
    ),
    "nextcloud: a task that is due": (
        file(event("DUE;TZID=Europe/Zurich:20270201T170000\nPRIORITY:1", kind="VTODO")),
        [taken("2027-02-01T16:00", says=("PRIORITY",))],
    ),
    "nextcloud: a completed task": (
        file(event("DUE:20270201T170000Z\nSTATUS:COMPLETED", kind="VTODO")),
        [ignored("STATUS is COMPLETED")],
    ),
    "nextcloud: a task without a time": (
        file(event("STATUS:NEEDS-ACTION", kind="VTODO")),
        [refused("DTSTART: is missing")],
    ),
    "nextcloud: a journal beside an event": (
        file(event("DTSTART:20270101T000000Z", kind="VJOURNAL"), event("DTSTART:20270101T000000Z", uid="2")),
        [ignored("VJOURNAL says nothing"), taken("2027-01-01T00:00")],
    ),
    "thunderbird: mozilla's zone name": (
        file(event("DTSTART;TZID=/mozilla.org/20050126_1/Europe/Zurich:20270101T080000")),
        [taken("2027-01-01T07:00")],
    ),
    "evolution: freeassociation's zone name": (
        file(
            event("DTSTART;TZID=/freeassociation.sourceforge.net/America/Argentina/Ushuaia:20270101T080000")
        ),
        [taken("2027-01-01T11:00")],
    ),
    "evolution: place beside the definition": (
        file(
            BERLIN.format(tzid="Private").replace(
                "BEGIN:STANDARD", "X-LIC-LOCATION:Europe/Zurich\nBEGIN:STANDARD", 1
            ),
            event("DTSTART;TZID=Private:20270704T080000"),
        ),
        [taken("2027-07-04T06:00", says=("X-LIC-LOCATION",))],
    ),
    "a zone that nobody knows": (
        file(event("DTSTART;TZID=Moonbase:20270101T080000"), event("DTSTART:20270101T080000Z", uid="2")),
        [refused("TZID", "'Moonbase' is no time zone"), taken("2027-01-01T08:00")],
    ),
    "a zone with offsets that none has": (
        file(
            "BEGIN:VTIMEZONE\nTZID:Odd\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+0117\n"
            "TZOFFSETTO:+0117\nEND:STANDARD\nEND:VTIMEZONE\n",
            event("DTSTART;TZID=Odd:20270101T080000"),
        ),
        [refused("offsets that no known zone has")],
    ),
    "a zone that changes each second": (
        file(
            "BEGIN:VTIMEZONE\nTZID:Mad\nBEGIN:STANDARD\nDTSTART:19700101T000000\nTZOFFSETFROM:+0100\n"
            "TZOFFSETTO:+0200\nRRULE:FREQ=SECONDLY\nEND:STANDARD\nEND:VTIMEZONE\n",
            event("DTSTART;TZID=Mad:20270101T080000"),
        ),
        [refused("'Mad' cannot be read", "more than 1,000 times")],
    ),
    "sports: fixtures, past and coming": (
        file(
            *(
                event(f"DTSTART:{day}T190000Z\nLOCATION:Stadium", uid=day)
                for day in ("20260801", "20261205", "20270220")
            )
        ),
        [over(), taken("2026-12-05T19:00", says=("LOCATION",)), taken("2027-02-20T19:00")],
    ),
    "sports: a postponed match": (
        file(event("DTSTART:20270220T190000Z\nSTATUS:TENTATIVE\nSEQUENCE:4")),
        [taken("2027-02-20T19:00", says=("TENTATIVE",))],
    ),
    "school: holidays as days": (
        file(
            event("DTSTART;VALUE=DATE:20261221\nDTEND;VALUE=DATE:20270103\nTRANSP:TRANSPARENT", uid="winter"),
            event("DTSTART;VALUE=DATE:20270412\nDTEND;VALUE=DATE:20270424", uid="spring"),
        ),
        [taken("2026-12-20T23:00"), taken("2027-04-11T22:00")],
    ),
    "school: days until a day, written as an instant": (
        file(
            event("DTSTART;VALUE=DATE:20270101\nRRULE:FREQ=DAILY;UNTIL=20270103T000000Z"),
            head="X-WR-TIMEZONE:America/New_York\n",
        ),
        [taken("2027-01-01T05:00", "2027-01-02T05:00", "2027-01-03T05:00")],
    ),
    "school: lessons with days left out": (
        file(
            event(
                f"{ZURICH}:20261201T100000\nRRULE:FREQ=WEEKLY;BYDAY=TU;UNTIL=20270119T235959\n"
                "EXDATE;VALUE=DATE:20261222,20261229"
            )
        ),
        [
            taken(
                *("2026-12-01T09:00", "2026-12-08T09:00", "2026-12-15T09:00"),
                *("2027-01-05T09:00", "2027-01-12T09:00", "2027-01-19T09:00"),
            )
        ],
    ),
    "town: waste collection by dates": (
        file(event("DTSTART;VALUE=DATE:20261202\nRDATE;VALUE=DATE:20261216,20270106")),
        [taken("2026-12-01T23:00", "2026-12-15T23:00", "2027-01-05T23:00")],
    ),
    "airline: two zones in one file": (
        file(
            event("DTSTART;TZID=America/Chicago:20270301T080000\nDTEND;TZID=Europe/London:20270301T230000"),
            event("DTSTART;TZID=Asia/Kolkata:20270302T080000", uid="2"),
        ),
        [taken("2027-03-01T14:00"), taken("2027-03-02T02:30")],
    ),
    "bank: periods as dates": (
        file(
            event("DTSTART:20270101T080000Z\nRDATE;VALUE=PERIOD:20270201T080000Z/PT1H,20270301T080000Z/PT1H")
        ),
        [taken("2027-01-01T08:00", "2027-02-01T08:00", "2027-03-01T08:00", says=("Of a period",))],
    ),
    "monitoring: a second since 1970": (
        file(event("DTSTART:19700101T000000Z\nRRULE:FREQ=SECONDLY")),
        [taken("2026-11-22T10:00:01", "2026-11-22T10:00:02")],
    ),
    "hand-written: swapped occurrences": (
        file(
            event("DTSTART:20270101T080000Z\nRRULE:FREQ=DAILY;COUNT=2"),
            event("RECURRENCE-ID:20270101T080000Z\nDTSTART:20270102T080000Z"),
            event("RECURRENCE-ID:20270102T080000Z\nDTSTART:20270101T080000Z"),
        ),
        [taken("2027-01-01T08:00", "2027-01-02T08:00")],
    ),
    "hand-written: only words changed": (
        file(
            event("DTSTART:20270101T080000Z\nRRULE:FREQ=DAILY;COUNT=2"),
            event("RECURRENCE-ID:20270102T080000Z\nDTSTART:20270102T080000Z").replace("Thing 1", "Other"),
        ),
        [taken("2027-01-01T08:00", "2027-01-02T08:00", says=("SUMMARY of changed occurrences",))],
    ),
    "hand-written: one bad among good": (
        file(
            event("DTSTART:20270101T080000Z\nRRULE:FREQ=DAILY;COUNT=0", uid="a"),
            event("DTSTART:yesterday", uid="b"),
            event("DTSTART", uid="c"),
            event("DTSTART:20270101T080000Z", uid="d"),
            event("DTSTART:20270101T080000Z", uid="e") + event("DTSTART:20270102T080000Z", uid="e"),
        ),
        [
            refused("COUNT"),
            refused("yesterday is not a date"),
            refused("malformed"),
            taken("2027-01-01T08:00"),
            refused("same UID"),
        ],
    ),
    "hand-written: a series that never fires": (
        file(event("DTSTART:20270101T080000Z\nRRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30")),
        [refused("can never fire")],
    ),
    "hand-written: two calendars in one file": (
        file(event("DTSTART:20270101T080000"), head="X-WR-TIMEZONE:UTC\n")
        + file(event("DTSTART:20270101T080000")),
        [taken("2027-01-01T08:00"), taken("2027-01-01T07:00", says=("the timezone of the request",))],
    ),
    "hand-written: an excluded rule and lower case": (
        file(
            event("DTSTART:20270101T080000Z\nRRULE:FREQ=DAILY;COUNT=4\nEXRULE:FREQ=DAILY;INTERVAL=2")
        ).lower(),
        [taken("2027-01-02T08:00", "2027-01-04T08:00")],
    ),
}

"""The recorded run: requests by topic, one after the other over one database, so that each topic finds what
those before it have left."""

from tests.acceptance.journal import Journal
from tests.golden.recording import Recording
from tests.golden.run import (
    access,
    destinations,
    doors,
    events,
    notifications,
    pages,
    reading,
    schedules,
    tasks,
)


def record(run: Recording, journal: Journal) -> None:
    """Makes all requests; callbacks go to `journal`."""
    receiver = journal.url("")
    schedules.record(run, receiver)
    destinations.record(run, receiver)
    events.record(run, journal)
    tasks.record(run)
    doors.record(run)
    notifications.record(run, receiver)
    access.record(run)
    pages.record(run)
    reading.record(run)

"""The members of a problem that says what of a text was not understood, or in which ways it can be read."""

from scheduler_app.api.json_types import View
from scheduler_app.domain.instants import shown_time
from scheduler_app.domain.triggers import NotUnderstood
from scheduler_app.domain.triggers.shown_reading import ShownReading, shown_readings


def refused_readings(error: NotUnderstood) -> View:
    """`not_understood` and `readings`; either may be empty."""
    return {
        "not_understood": list(error.not_understood),
        "readings": [_reading(reading) for reading in shown_readings(error)],
    }


def _reading(reading: ShownReading) -> View:
    given: View = {}
    if reading.recurrence is not None:
        given["recurrence"] = reading.recurrence
    if reading.run_at is not None:
        given["run_at"] = shown_time(reading.run_at)
    return given | {
        "description": reading.description,
        "occurrences": [
            {"run_time": shown_time(each.instant), "local": each.local.isoformat()}
            | ({"dst": each.dst} if each.dst else {})
            | ({"rolled_from": each.rolled_from.isoformat()} if each.rolled_from else {})
            for each in reading.occurrences
        ],
    }

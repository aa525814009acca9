"""What is read of everything that there is. The same is asked over documents that were recorded once."""

from datetime import UTC, datetime
from typing import Final

from tests.golden.recording import Recording

#: When it is asked: after all that the recorded run does.
AFTERWARDS: Final = datetime(2040, 3, 9, 12, tzinfo=UTC)


def record(run: Recording) -> None:
    run.topic = "everything"
    run.product.time.at = AFTERWARDS
    ask = run.ask
    ask("GET", "/api/v1/schedules?limit=500")
    ask("GET", "/api/v1/destinations?limit=500")
    ask("GET", "/api/v1/calendars?limit=500")
    ask("GET", "/api/v1/calendars/file/days?from=2040-06-01&to=2040-06-30")
    ask("GET", "/api/v1/blackouts")
    ask("GET", "/api/v1/kill-switch")
    ask("GET", "/api/v1/calendar-feeds")
    for kind in ("notifications", "silences", "heartbeats", "heartbeats/backup"):
        ask("GET", f"/api/v1/{kind}")
    ask("GET", "/api/v1/messages?limit=500")
    for state in ("completed", "error", "expired", "cancelled", "skipped", "ready_queue", "running"):
        ask("GET", f"/api/v1/events?limit=500&state={state}")
    for name in ("full", "least", "succeeds"):
        ask("GET", f"/api/v1/schedules/{name}/edits?limit=500")
    for name in ("full", "least", "t-rrule"):
        ask("GET", f"/api/v1/schedules/{name}.ics")
    ask("GET", "/api/v1/schedules/past/backfill")
    ask("GET", "/api/v1/schedules/export")
    ask("GET", "/tasks?limit=100")

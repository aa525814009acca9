"""A client of the API, over `requests` alone: it needs nothing else of this package, and no settings.

>>> from scheduler_app.client import Scheduler
>>> with Scheduler("http://127.0.0.1:8080", api_key="…") as scheduler:
...     made = scheduler.schedule("https://example.com/backup", rrule="FREQ=DAILY;INTERVAL=1")
...     print(made.id, made.next_run_at)

`AsyncScheduler` is its twin for asyncio, over `httpx`: the extra `async`.
"""

from typing import TYPE_CHECKING, Any

from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.import_results import ImportedItem, ImportResult
from scheduler_app.client.record import Json, Record
from scheduler_app.client.results import (
    Answer,
    Attempt,
    BulkResult,
    Destination,
    DestinationTest,
    EditResult,
    Event,
    Explanation,
    Flow,
    KillSwitch,
    Message,
    MessageResult,
    Move,
    MovedSchedule,
    Occurrence,
    Preview,
    Reason,
    Schedule,
    Skipped,
    StatusLine,
)
from scheduler_app.client.schedule_fields import TRIGGERS, ScheduleFields, TriggerFields
from scheduler_app.client.scheduler import Scheduler
from scheduler_app.client.waves import (
    Backfill,
    Backlog,
    Forecast,
    ForecastBucket,
    ForecastReceiver,
    OwedOfSchedule,
    OwedToReceiver,
)

if TYPE_CHECKING:
    from scheduler_app.client.async_scheduler import AsyncScheduler
    from scheduler_app.client.destination_operations import DestinationFields
    from scheduler_app.client.message_operations import MessageFields

__all__ = [
    "TRIGGERS",
    "Answer",
    "AsyncScheduler",
    "Attempt",
    "Backfill",
    "Backlog",
    "BulkResult",
    "Destination",
    "DestinationFields",
    "DestinationTest",
    "EditResult",
    "Event",
    "Explanation",
    "Flow",
    "Forecast",
    "ForecastBucket",
    "ForecastReceiver",
    "ImportResult",
    "ImportedItem",
    "Json",
    "KillSwitch",
    "Message",
    "MessageFields",
    "MessageResult",
    "Move",
    "MovedSchedule",
    "Occurrence",
    "OwedOfSchedule",
    "OwedToReceiver",
    "Preview",
    "Reason",
    "Record",
    "Schedule",
    "ScheduleFields",
    "Scheduler",
    "SchedulerError",
    "Skipped",
    "StatusLine",
    "TriggerFields",
]


def __getattr__(name: str) -> Any:
    # On demand: httpx is there for those who need it, and the others are for type checkers.
    if name == "AsyncScheduler":
        return _async_scheduler()
    if name == "DestinationFields":
        from scheduler_app.client.destination_operations import DestinationFields

        return DestinationFields
    if name == "MessageFields":
        from scheduler_app.client.message_operations import MessageFields

        return MessageFields
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _async_scheduler() -> "type[AsyncScheduler]":
    try:
        from scheduler_app.client.async_scheduler import AsyncScheduler
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise ImportError("AsyncScheduler needs httpx: pip install 'rrule-scheduler[async]'") from None
    return AsyncScheduler

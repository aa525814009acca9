"""A client of the API, over `requests` alone: it needs nothing else of this package, and no settings.

>>> from scheduler_app.client import Scheduler
>>> with Scheduler("http://127.0.0.1:8080", api_key="…") as scheduler:
...     made = scheduler.schedule("https://example.com/backup", rrule="FREQ=DAILY;INTERVAL=1")
...     print(made.id, made.next_run_at)

`AsyncScheduler` is its twin for asyncio, over `httpx`: the extra `async`.
"""

from typing import TYPE_CHECKING, Any

from scheduler_app.client.destination_fields import DestinationFields
from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.message_fields import MessageFields
from scheduler_app.client.record import Json, Record
from scheduler_app.client.results import (
    Answer,
    Attempt,
    Backfill,
    Backlog,
    BulkResult,
    Destination,
    DestinationTest,
    EditResult,
    Event,
    EventsOfFailure,
    Explanation,
    Failure,
    FailureTouched,
    Flow,
    Forecast,
    ForecastBucket,
    ForecastReceiver,
    ImportedItem,
    ImportResult,
    KillSwitch,
    Message,
    MessageResult,
    Move,
    MovedSchedule,
    Occurrence,
    OwedOfSchedule,
    OwedToReceiver,
    Preview,
    Reason,
    RedriveProgress,
    Schedule,
    Skipped,
    StatusLine,
    SystemVerdict,
    VerdictReason,
)
from scheduler_app.client.schedule_fields import TRIGGERS, ScheduleFields, TriggerFields
from scheduler_app.client.scheduler import Scheduler

if TYPE_CHECKING:
    from scheduler_app.client.async_scheduler import AsyncScheduler

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
    "EventsOfFailure",
    "Explanation",
    "Failure",
    "FailureTouched",
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
    "RedriveProgress",
    "Schedule",
    "ScheduleFields",
    "Scheduler",
    "SchedulerError",
    "Skipped",
    "StatusLine",
    "SystemVerdict",
    "TriggerFields",
    "VerdictReason",
]


def __getattr__(name: str) -> Any:
    # On demand: httpx is there for those who need it.
    if name != "AsyncScheduler":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from scheduler_app.client.async_scheduler import AsyncScheduler
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise ImportError("AsyncScheduler needs httpx: pip install 'rrule-scheduler[async]'") from None
    return AsyncScheduler

"""A client of the API, over `requests` alone: it needs nothing else of this package, and no settings.

>>> from scheduler_app.client import Scheduler
>>> with Scheduler("http://127.0.0.1:8080", api_key="…") as scheduler:
...     made = scheduler.schedule("https://example.com/backup", rrule="FREQ=DAILY;INTERVAL=1")
...     print(made["id"], made["next_run_at"])
"""

from scheduler_app.client.errors import SchedulerError
from scheduler_app.client.http import Json
from scheduler_app.client.schedule_fields import TRIGGERS, ScheduleFields, TriggerFields
from scheduler_app.client.scheduler import Scheduler

__all__ = ["TRIGGERS", "Json", "ScheduleFields", "Scheduler", "SchedulerError", "TriggerFields"]

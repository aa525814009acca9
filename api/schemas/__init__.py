"""The wire, noun by noun: the only place that knows JSON names."""

from api.schemas.bulk import BulkInput, BulkOutput
from api.schemas.common import Message, Paging, Problem, window
from api.schemas.edits import DeletedPage, EditFilter, PausedPage, ResumedPage
from api.schemas.event import EventOutput, EventPage, Triggered
from api.schemas.event_filter import EventFilter, HistoryFilter, RedriveInput, RedriveOutput
from api.schemas.preview import PreviewInput, PreviewOutput, PreviewQuery
from api.schemas.schedule_input import NewSchedule, PutQuery, ScheduleInput, check_same_id
from api.schemas.schedule_output import (
    Created,
    Edited,
    ScheduleChoice,
    ScheduleFilter,
    ScheduleOutput,
    SchedulePage,
)
from api.schemas.signing import SigningInput, SigningOutput

__all__ = [
    "BulkInput",
    "BulkOutput",
    "Created",
    "DeletedPage",
    "EditFilter",
    "Edited",
    "EventFilter",
    "EventOutput",
    "EventPage",
    "HistoryFilter",
    "Message",
    "NewSchedule",
    "Paging",
    "PausedPage",
    "PreviewInput",
    "PreviewOutput",
    "PreviewQuery",
    "Problem",
    "PutQuery",
    "RedriveInput",
    "RedriveOutput",
    "ResumedPage",
    "ScheduleChoice",
    "ScheduleFilter",
    "ScheduleInput",
    "ScheduleOutput",
    "SchedulePage",
    "SigningInput",
    "SigningOutput",
    "Triggered",
    "check_same_id",
    "window",
]

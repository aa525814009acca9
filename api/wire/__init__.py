"""JSON in and out: the schemas of bodies, queries and answers, and what fills the answers."""

from scheduler_app.api.wire.bulk import BulkInput, BulkOutput
from scheduler_app.api.wire.bulk_edits import (
    DeletedPage,
    EditFilter,
    PausedPage,
    PauseFilter,
    PauseInput,
    ResumedPage,
)
from scheduler_app.api.wire.calendar import (
    CalendarEdited,
    CalendarInput,
    CalendarOutput,
    CalendarPage,
    DaysOutput,
    DaysQuery,
)
from scheduler_app.api.wire.calendar_feeds import CalendarQuery, CreatedFeed, FeedInput, FeedList
from scheduler_app.api.wire.completion import FailureInput
from scheduler_app.api.wire.edits import EditPage
from scheduler_app.api.wire.event_filter import EventFilter, HistoryFilter, RedriveInput, RedriveOutput
from scheduler_app.api.wire.event_output import EventOutput, EventPage, Triggered
from scheduler_app.api.wire.explanation import WhyOutput, WhyQuery, explained
from scheduler_app.api.wire.ics_import import ImportInput, ImportOutput
from scheduler_app.api.wire.message_input import MessageBulkInput, MessageFilter, NewMessage, RescheduleInput
from scheduler_app.api.wire.message_output import (
    MessageBulkOutput,
    MessageOutput,
    MessagePage,
    ScheduledMessage,
    message_shown,
)
from scheduler_app.api.wire.output_schema import Message
from scheduler_app.api.wire.paging import Paging, listed, window
from scheduler_app.api.wire.preview import PreviewInput, PreviewOutput, PreviewQuery
from scheduler_app.api.wire.problem_output import Problem
from scheduler_app.api.wire.schedule_input import NewSchedule, PutQuery, ScheduleInput, check_same_id
from scheduler_app.api.wire.schedule_output import (
    Created,
    Edited,
    ScheduleChoice,
    ScheduleFilter,
    ScheduleOutput,
    SchedulePage,
)
from scheduler_app.api.wire.signing import SigningInput, SigningOutput
from scheduler_app.api.wire.zone_check import ZoneCheckOutput, ZoneCheckQuery, zone_check_shown

__all__ = [
    "BulkInput",
    "BulkOutput",
    "CalendarEdited",
    "CalendarInput",
    "CalendarOutput",
    "CalendarPage",
    "CalendarQuery",
    "Created",
    "CreatedFeed",
    "DaysOutput",
    "DaysQuery",
    "DeletedPage",
    "EditFilter",
    "EditPage",
    "Edited",
    "EventFilter",
    "EventOutput",
    "EventPage",
    "FailureInput",
    "FeedInput",
    "FeedList",
    "HistoryFilter",
    "ImportInput",
    "ImportOutput",
    "Message",
    "MessageBulkInput",
    "MessageBulkOutput",
    "MessageFilter",
    "MessageOutput",
    "MessagePage",
    "NewMessage",
    "NewSchedule",
    "Paging",
    "PauseFilter",
    "PauseInput",
    "PausedPage",
    "PreviewInput",
    "PreviewOutput",
    "PreviewQuery",
    "Problem",
    "PutQuery",
    "RedriveInput",
    "RedriveOutput",
    "RescheduleInput",
    "ResumedPage",
    "ScheduleChoice",
    "ScheduleFilter",
    "ScheduleInput",
    "ScheduleOutput",
    "SchedulePage",
    "ScheduledMessage",
    "SigningInput",
    "SigningOutput",
    "Triggered",
    "WhyOutput",
    "WhyQuery",
    "ZoneCheckOutput",
    "ZoneCheckQuery",
    "check_same_id",
    "explained",
    "listed",
    "message_shown",
    "window",
    "zone_check_shown",
]

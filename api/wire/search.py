"""What is found by words, and the tags with what ran of each."""

from collections.abc import Sequence

from marshmallow import validate, validates

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.failure import CauseOutput
from scheduler_app.api.wire.field_types import Instant, check_visible
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OmitNone, OutputSchema
from scheduler_app.api.wire.run_calendar import DAY_SECONDS, CalendarPartOutput, check_zone, part_shown
from scheduler_app.domain.ids import message_id_of, name_of
from scheduler_app.domain.masking import masked_url
from scheduler_app.domain.run_calendar import RunCalendar
from scheduler_app.domain.search import FoundEvent
from scheduler_app.usecases.questions.search import (
    MOST_COUNTED,
    CountedTag,
    SearchAnswer,
    where_found,
)

MAX_WORDS = 200
MAX_TAG = 64
#: Open failures that a summary shows.
MOST_FAILURES = 20


class SearchQuery(InputSchema):
    """What to look for."""

    q = fields.String(
        "A part of a name, a tag, a phrase or a URL before its query, whatever the case; of events and"
        " messages the beginning of the id",
        required=True,
        validate=[validate.Length(1, MAX_WORDS), check_visible],
    )
    limit = fields.Integer("How many of each kind at most", load_default=10, validate=validate.Range(1, 50))
    tag = fields.String(
        "Only this tag, the schedules with it, and their events", validate=validate.Length(1, MAX_TAG)
    )


class TagOutput(OutputSchema):
    """A tag."""

    tag = fields.String("The tag", required=True, example="customer:acme")
    schedules = fields.Integer(f"How many schedules have it, counted up to {MOST_COUNTED:,}", required=True)


class FoundScheduleOutput(OmitNone):
    """A schedule that was found."""

    id = fields.String("Its id", required=True)
    name = fields.String("Its name", required=True)
    state = fields.String("Its state", required=True)
    tags = fields.List(fields.String(), "Its tags", required=True)
    phrase = fields.String("Its trigger, where that was written in words")
    url = fields.String("Its callback URL, the values of its query masked; absent with a destination")
    found_in = fields.String(
        "Where the words stand",
        required=True,
        validate=validate.OneOf(("id", "name", "tag", "phrase", "url")),
    )


class FoundDestinationOutput(OutputSchema):
    """A destination that was found."""

    name = fields.String("Its name", required=True)
    url = fields.String("Its URL, the values of its query masked", required=True)


class FoundEventOutput(OmitNone):
    """An event that was found."""

    id = fields.String("Its id", required=True)
    state = fields.String("Its state", required=True)
    run_time = Instant("When it is or was due by its rule")
    schedule_id = fields.String("Its schedule")


class FoundMessageOutput(OmitNone):
    """A message that was found."""

    id = fields.String("Its id", required=True)
    state = fields.String("Its state", required=True)
    scheduled_at = Instant("When it is or was due")


class SearchOutput(OutputSchema):
    """What was found, each kind in a list."""

    tags = fields.List(TagOutput, "Tags, in their order", required=True)
    schedules = fields.List(
        FoundScheduleOutput,
        "Schedules: the one of this id and those with names that begin so, then the newest",
        required=True,
    )
    destinations = fields.List(FoundDestinationOutput, "Destinations, newest first", required=True)
    events = fields.List(FoundEventOutput, "Events of schedules", required=True)
    messages = fields.List(FoundMessageOutput, "Messages", required=True)
    incomplete = fields.Boolean(
        "Whether there may be more: more match than `limit`, or not all could be looked through in time",
        required=True,
    )


class TagsQuery(InputSchema):
    """Which tags."""

    prefix = fields.String(
        "How they begin, letter by letter", load_default="", validate=validate.Length(max=MAX_TAG)
    )
    after = fields.String(
        "The `next` of the answer before", load_default="", validate=validate.Length(max=MAX_TAG)
    )
    limit = fields.Integer("How many at most", load_default=20, validate=validate.Range(1, 100))


class TagsOutput(OutputSchema):
    """Some tags."""

    tags = fields.List(TagOutput, "In their order", required=True)
    next = fields.String("Give it as `after` to go on; null at the end", required=True, allow_none=True)


class TagSummaryQuery(InputSchema):
    """Which tag, and which days."""

    tag = fields.String(
        "The tag", required=True, validate=validate.Length(1, MAX_TAG), example="customer:acme"
    )
    start = Instant("Where it begins; default: the beginning of today in `timezone`", data_key="from")
    end = Instant("Where it ends; default: a week after `from`", data_key="to")
    timezone = fields.String("Whose days are meant", load_default="UTC", validate=validate.Length(max=200))

    @validates("timezone")
    def check_timezone(self, value: str, **_: object) -> None:
        check_zone(value)


class TagSummaryOutput(TagOutput):
    """What ran and is to come of the schedules with a tag, by day, and what of them fails."""

    days = fields.List(CalendarPartOutput, "The days in their order", required=True)
    failures = fields.List(
        CauseOutput, f"The failures that are not over and touch it, {MOST_FAILURES} at most", required=True
    )
    notes = fields.List(fields.String(), "What was estimated or left out", required=True)


def by_days(query: Loaded) -> Loaded:
    """The query of a calendar that has the days of a TagSummaryQuery."""
    return query | {"bucket": DAY_SECONDS}


def tag_shown(found: CountedTag) -> View:
    return {"tag": found.tag, "schedules": found.schedules}


def search_shown(found: SearchAnswer, words: str) -> View:
    """The fields of SearchOutput."""
    return {
        "tags": list(map(tag_shown, found.tags)),
        "schedules": [
            {
                "id": name_of(each.id),
                "name": each.name,
                "state": each.state,
                "tags": list(each.tags),
                "phrase": each.phrase or None,
                "url": masked_url(each.url) if each.url else None,
                "found_in": where_found(each, words),
            }
            for each in found.schedules
        ],
        "destinations": [
            {"name": name_of(each.id), "url": masked_url(each.url)} for each in found.destinations
        ],
        "events": [
            {
                "id": name_of(each.id),
                "state": each.state,
                "run_time": each.run_time,
                "schedule_id": name_of(each.schedule_id) or None,
            }
            for each in found.events
        ],
        "messages": list(map(_message_shown, found.messages)),
        "incomplete": found.incomplete,
    }


def _message_shown(found: FoundEvent) -> View:
    return {"id": message_id_of(found.id), "state": found.state, "scheduled_at": found.run_time}


def tag_summary_shown(tag: CountedTag, found: RunCalendar, failures: Sequence[View]) -> View:
    """The fields of TagSummaryOutput."""
    return tag_shown(tag) | {
        "days": list(map(part_shown, found.parts)),
        "failures": list(failures),
        "notes": list(found.notes),
    }

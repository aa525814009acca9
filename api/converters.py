"""Ids and names in paths. A word that a route has in an id's place is never an id."""

from flask import Flask
from werkzeug.routing import BaseConverter, Map

SCHEDULE_WORDS = ("bulk", "export", "import", "preview")
EVENT_WORDS = ("redrive",)
MESSAGE_WORDS = ("bulk",)
TASK_WORDS = ("scheduled", *SCHEDULE_WORDS)


class ScheduleIds(BaseConverter):
    """`<schedule:…>` in a route. Its calendar is another resource, and no id has a dot."""

    part_isolating = True
    regex = rf"(?!(?:{'|'.join(SCHEDULE_WORDS)})(?:/|$))(?![^/]*\.ics(?:/|$))[^/]+"


class EventIds(BaseConverter):
    """`<event:…>` in a route."""

    part_isolating = True
    regex = rf"(?!(?:{'|'.join(EVENT_WORDS)})(?:/|$))[^/]+"


class MessageIds(BaseConverter):
    """`<message:…>` in a route."""

    part_isolating = True
    regex = rf"(?!(?:{'|'.join(MESSAGE_WORDS)})(?:/|$))[^/]+"


class TaskIds(BaseConverter):
    """`<task:…>` in a route; a task is a schedule."""

    part_isolating = True
    regex = rf"(?!(?:{'|'.join(TASK_WORDS)})(?:/|$))[^/]+"


class Names(BaseConverter):
    """`<name:…>` in a route: a name that may have dots.

    Clients, browsers and proxies take the segments `.` and `..` for steps in the path, also as `%2E`: in
    these two names the percent sign is quoted once more.
    """

    part_isolating = True
    regex = "[^/]+"

    def to_python(self, value: str) -> str:
        return value.replace("%2E", ".")

    def to_url(self, value: str) -> str:
        return "%252E" * len(value) if value in (".", "..") else super().to_url(value)


def register(app: Flask) -> None:
    """Must be called before any route with such an id or name is added."""
    known: Map = app.url_map
    known.converters |= {
        "schedule": ScheduleIds,
        "event": EventIds,
        "message": MessageIds,
        "task": TaskIds,
        "name": Names,
    }

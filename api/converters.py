"""Ids in paths. Where a word of ours stands at an id's place, it is not an id."""

from flask import Flask
from werkzeug.routing import BaseConverter, Map

SCHEDULE_WORDS = ("bulk", "export", "preview")
EVENT_WORDS = ("redrive",)


class ScheduleIds(BaseConverter):
    part_isolating = True
    regex = rf"(?!(?:{'|'.join(SCHEDULE_WORDS)})(?:/|$))[^/]+"


class EventIds(BaseConverter):
    part_isolating = True
    regex = rf"(?!(?:{'|'.join(EVENT_WORDS)})(?:/|$))[^/]+"


def register(app: Flask) -> None:
    """Before any route that has such an id."""
    known: Map = app.url_map
    known.converters |= {"schedule": ScheduleIds, "event": EventIds}

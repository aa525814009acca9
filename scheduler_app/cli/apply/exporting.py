"""What is there as a file of `scheduler apply`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any

from scheduler_app.cli.apply.files import KINDS
from scheduler_app.cli.apply.yaml_text import write_yaml
from scheduler_app.client import Scheduler


def exported(
    scheduler: Scheduler, schedules: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[str, str | None]]:
    """Yields the file in pieces of text, each with the name of what could not be read in its place, or None.

    `schedules` are those of the file, as the API exports them. Raises SchedulerError.
    """
    found: dict[str, Iterable[Mapping[str, Any]]] = {
        "calendars": (scheduler.calendars.get(each["name"]) for each in scheduler.calendars.list()),
        "destinations": scheduler.destinations.list(),
        "blackouts": scheduler.blackouts(),
        "schedules": schedules,
    }
    fields = _fields()
    for kind in KINDS:
        begun = False
        for each in found[kind]:
            if "corrupt" in each:
                yield "", f"{kind.removesuffix('s')} {each['name']}: {each['corrupt']}"
                continue
            item = {name: value for name, value in each.items() if name in fields[kind] and value is not None}
            yield ("" if begun else f"{kind}:\n") + _text(item), None
            begun = True


def _fields() -> dict[str, frozenset[str]]:
    """The fields that an item of each kind may have in a file."""
    schema = json.loads(resources.files("scheduler_app.cli.apply").joinpath("schema.json").read_text())
    named = {kind: schema["properties"][kind]["items"]["$ref"].rpartition("/")[2] for kind in KINDS}
    return {kind: frozenset(schema["$defs"][name]["properties"]) for kind, name in named.items()}


def _text(item: Mapping[str, Any]) -> str:
    return write_yaml([json.loads(json.dumps(item, default=dict))])

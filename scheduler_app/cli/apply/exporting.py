"""What is there as a file of `scheduler apply`."""

import json
from collections.abc import Iterable, Iterator, Mapping
from importlib import resources
from typing import Any, Final

import yaml

from scheduler_app.cli.apply.files import KINDS
from scheduler_app.client import Scheduler

#: No line is folded: a change of a field is a change of one line.
_WIDTH: Final = 1_000_000


class _Dumper(yaml.SafeDumper):
    """Writes no anchors, which `apply` does not read, and the lines of a rule below each other."""

    def ignore_aliases(self, data: object) -> bool:
        return True

    def represent_str(self, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else None
        return self.represent_scalar("tag:yaml.org,2002:str", data, style=style)


_Dumper.add_representer(str, _Dumper.represent_str)


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
    plain = json.loads(json.dumps(item, default=dict))
    written: str = yaml.dump([plain], Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=_WIDTH)
    return written

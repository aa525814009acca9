"""The audit: one line for each act that changes something or opens a secret, and the chain of the lines."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from scheduler_app.domain.act import Act
from scheduler_app.domain.ids import WholeId, name_of
from scheduler_app.domain.schedule import EditedTimes

#: What the fields of a line may take together, and what stands for one that takes more than its share.
MAX_FIELDS_BYTES: Final = 32 * 1024
MAX_VALUE_BYTES: Final = 2 * 1024
#: How many changed fields a line names.
MAX_FIELDS: Final = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """What an act changed: fields with their values before and after, those that changed and no others; a
    mask or a digest stands in a secret's place."""

    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    secrets: tuple[str, str] | None = None
    """Digests of what masks stand for, before and after, where that changed."""
    times: EditedTimes | None = None
    """The occurrences of a schedule that it moved."""
    is_cut: bool = False
    """Whether values were left out, because they were too long."""

    def bounded(self) -> "Difference":
        """This difference, in which a note stands for values that are too long."""
        if _size(self.before) + _size(self.after) <= MAX_FIELDS_BYTES:
            return self
        return replace(self, before=_shortened(self.before), after=_shortened(self.after), is_cut=True)


@dataclass(frozen=True, slots=True)
class Change:
    """What is about to be changed, in which way."""

    what: str
    """`created`, `edited`, `paused`, `deleted`, …"""
    kind: str
    """The kind of the resource: `schedule`, `destination`, `key`, …"""
    resource: WholeId
    difference: Difference = Difference()
    version: int = 0
    """The resource's, after it; 0 where it has none."""
    of_installation: bool = False
    """Whether it is no single tenant's matter: the tenant is not told."""


@dataclass(frozen=True, slots=True)
class AuditLine:
    """What was done, by whom, why, and when."""

    id: str
    at: datetime
    change: Change
    act: Act
    number: int | None = None
    """Its place in the chain of its tenant; None for the seconds until a beat has given it one."""
    hash: str | None = None
    corrupt: str | None = None
    """Why the stored document cannot be read; nothing else is known then."""

    @property
    def resource_name(self) -> str:
        return name_of(self.change.resource)

    @property
    def what(self) -> str:
        return self.change.what

    @property
    def version(self) -> int:
        return self.change.version

    @property
    def by(self) -> str:
        """The name of who acted."""
        return self.act.by.name

    @property
    def before(self) -> Mapping[str, Any]:
        return self.change.difference.before

    @property
    def after(self) -> Mapping[str, Any]:
        return self.change.difference.after

    @property
    def times(self) -> EditedTimes | None:
        return self.change.difference.times

    @property
    def secrets_changed(self) -> bool:
        return self.change.difference.secrets is not None


def difference_of(before: Mapping[str, Any], after: Mapping[str, Any]) -> Difference:
    """The fields in which two states of a resource differ."""
    differ = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return Difference(
        {name: before[name] for name in differ if name in before},
        {name: after[name] for name in differ if name in after},
    )


_as_json: Final = json.JSONEncoder(default=str).encode


def _size(values: Mapping[str, Any]) -> int:
    return len(_as_json(values)) if values else 0


def _shortened(values: Mapping[str, Any]) -> dict[str, Any]:
    kept = list(values.items())[:MAX_FIELDS]
    most = min(MAX_VALUE_BYTES, MAX_FIELDS_BYTES // 2 // max(1, len(kept)))
    return {name: value if _size({name: value}) <= most else _note(value) for name, value in kept}


def _note(value: Any) -> str:
    return f"({_size({'': value})} bytes: too long to be kept here)"

"""The client's keyword arguments, TypedDicts, and the attributes of what it returns, Records.

Both are made from the tables in `domain/resources`. The client imports nothing of the rest of the package, so
it gets copies.
"""

import json
import re
from collections.abc import Iterable
from textwrap import wrap

from scheduler_app.domain import resource_fields as types
from scheduler_app.domain.resource_fields import FieldType, Null, ResourceField
from scheduler_app.domain.resources.destination import DESTINATION
from scheduler_app.domain.resources.message import OWN, SHARED
from scheduler_app.domain.resources.schedule import SCHEDULE
from scheduler_app.domain.triggers import BY_NAME

#: The client's methods have parameters of these names.
SCHEDULE_PARAMETERS = ("callback_url", "name")
MESSAGE_PARAMETERS = ("callback_url", "destination", "body", "body_base64")
#: ruff's line length, and the length of the pieces of a longer text.
LINE_LENGTH = 110
WIDTH = 99
#: What a generated module may import, and from where.
IMPORTS = {
    "collections.abc": ("Mapping", "Sequence"),
    "datetime": ("datetime",),
    "typing": ("Annotated", "Any", "Literal", "TypedDict"),
}


def schedule_fields() -> str:
    """The text of `scheduler_app/client/schedule_fields.py`."""
    rows = [row for row in SCHEDULE if row.given]
    trigger = [row for row in rows if row.previewed]
    others = [row for row in rows if row not in trigger and row.name not in SCHEDULE_PARAMETERS]
    named = [row for row in rows if row.name in SCHEDULE_PARAMETERS]
    triggers = f"TRIGGERS = ({', '.join(map(_quoted, BY_NAME))})"
    beside = "What a new schedule may have beside its name and the URL to call."
    return _module(
        "a schedule",
        f"#: The fields of which a new schedule has exactly one.\n{triggers}",
        _typed_dict("TriggerFields", "TypedDict", "When a schedule fires.", trigger),
        _typed_dict("NewScheduleFields", "TriggerFields", beside, others),
        _typed_dict("ScheduleFields", "NewScheduleFields", "Every field.", named),
        _record("ScheduleValues", "What an answer says about a schedule", SCHEDULE),
    )


def destination_fields() -> str:
    """The text of `scheduler_app/client/destination_fields.py`."""
    given = [row for row in DESTINATION if row.given]
    about = "The fields of a destination; None takes one away."
    return _module(
        "a destination",
        _typed_dict("DestinationFields", "TypedDict", about, given),
        _record("DestinationValues", "What an answer says about a destination", DESTINATION),
    )


def message_fields() -> str:
    """The text of `scheduler_app/client/message_fields.py`."""
    given = [row for row in (*OWN, *SHARED) if row.name not in MESSAGE_PARAMETERS]
    about = "What a message delivers, and how; None is as if a field were not given."
    return _module(
        "a message",
        _typed_dict("MessageFields", "TypedDict", about, given, all_nullable=True),
        _record("MessageValues", "What an answer says about what a message delivers", (*OWN, *SHARED)),
    )


def _module(of: str, *parts: str) -> str:
    body = "\n\n\n".join(parts)
    lines = [
        f'"""The fields of {of} as the API takes them, and as answers show them, each with its meaning.\n',
        'Generated from the table of its fields by `make docs`: do not edit it.\n"""\n',
    ]
    for module, names in IMPORTS.items():
        if used := [name for name in names if re.search(rf"\b{name}\b", body)]:
            lines.append(f"from {module} import {', '.join(used)}")
    lines.append("\nfrom scheduler_app.client.record import Record\n")
    return "\n".join([*lines, f"\n{body}" if body.startswith("class") else body, ""])


def _record(name: str, about: str, rows: Iterable[ResourceField]) -> str:
    lines = [f"class {name}(Record):", f'    """{about}; None is what does not apply to it."""\n']
    for row in sorted((row for row in rows if row.shown), key=lambda row: not row.always_shown):
        lines += [f"    #: {line}" for line in wrap(row.meaning, WIDTH)]
        lines.append(f"    {row.name}: {_shown_type(row.type)}{'' if row.always_shown else ' | None = None'}")
    return "\n".join(lines)


def _typed_dict(
    name: str, base: str, about: str, rows: Iterable[ResourceField], *, all_nullable: bool = False
) -> str:
    lines = [f"class {name}({base}, total=False):", f'    """{about}"""\n']
    for row in rows:
        is_nullable = all_nullable or row.null is not Null.NEVER
        lines += _annotated(row.name, _given_type(row.type) + (" | None" if is_nullable else ""), row.meaning)
    return "\n".join(lines)


def _annotated(name: str, python: str, meaning: str) -> list[str]:
    """The lines of an attribute, as the formatter writes them."""
    inside = f"{python}, {_quoted(meaning)}"
    if len(f"    {name}: Annotated[{inside}]") <= LINE_LENGTH:
        return [f"    {name}: Annotated[{inside}]"]
    if len(f"        {inside}") <= LINE_LENGTH:
        return [f"    {name}: Annotated[", f"        {inside}", "    ]"]
    parts = _lines(meaning)
    texts = [f"        {_quoted(part)}{'' if part is not parts[-1] else ','}" for part in parts]
    return [f"    {name}: Annotated[", f"        {python},", *texts, "    ]"]


def _lines(text: str) -> list[str]:
    """The text in pieces, broken only where the formatter would not join them again."""
    fits = len(f"        {_quoted(text)},") <= LINE_LENGTH
    return [text] if fits else wrap(text, WIDTH, drop_whitespace=False)


def _quoted(text: str) -> str:
    """A literal as the formatter writes it: single quotes where that saves escapes."""
    return f"'{text}'" if '"' in text and "'" not in text else json.dumps(text, ensure_ascii=False)


def _given_type(kind: FieldType) -> str:
    """Python's type for what a request gives."""
    match kind:
        case types.Pairs():
            return "Mapping[str, str]"
        case types.Statuses():
            return "Sequence[int | str]"
        case types.ListOf():
            return "Sequence[str]"
        case types.Moment():
            return "datetime | str"
        case types.Word():
            return f"Literal[{', '.join(json.dumps(word) for word in kind.words)}]"
        case types.Flag(only_true=True):
            return "Literal[True]"
        case types.Object():
            return f"Mapping[str, {kind.values}]"
        case _:
            return _plain_type(kind)


def _shown_type(kind: FieldType) -> str:
    """Python's type for what an answer shows."""
    match kind:
        case types.Pairs():
            return "Mapping[str, str]"
        case types.Statuses():
            return "tuple[int | str, ...]"
        case types.ListOf():
            return "tuple[str, ...]"
        case types.Moment():
            return "datetime"
        case types.Object():
            return f"Mapping[str, {kind.values if kind.values != 'object' else 'Any'}]"
        case _:
            return _plain_type(kind)


def _plain_type(kind: FieldType) -> str:
    match kind:
        case types.Whole():
            return "int"
        case types.Number():
            return "float"
        case types.Flag():
            return "bool"
        case types.Json():
            return "object"
        case _:
            return "str"

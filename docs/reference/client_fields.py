"""The client's keyword arguments, as TypedDicts, and the attributes of its schedules, as a Record.

They are made from the API's table of a schedule's fields.

The client imports nothing of the rest of the package, so it gets a copy.
"""

import json
from collections.abc import Iterable
from textwrap import wrap

from marshmallow import fields
from marshmallow.validate import OneOf

from scheduler_app.api.wire.field_types import Headers, Instant, StatusCodes
from scheduler_app.api.wire.schedule_fields import SCHEDULE_FIELDS, AnyField, ScheduleField
from scheduler_app.domain.triggers import BY_NAME, FIELDS, FieldType

#: Python's type for each of the wire's, the special ones before those that they are made of.
TYPES: tuple[tuple[type[AnyField], str], ...] = (
    (Headers, "Mapping[str, str]"),
    (StatusCodes, "Sequence[int | str]"),
    (Instant, "datetime | str"),
    (fields.Nested, "Mapping[str, object]"),
    (fields.List, "Sequence[str]"),
    (fields.String, "str"),
    (fields.Integer, "int"),
    (fields.Float, "float"),
    (fields.Boolean, "bool"),
    (fields.Raw, "object"),
)
#: The client's methods have parameters of these names.
PARAMETERS = ("callback_url", "name")
#: ruff's line length, and the length of the pieces of a longer text.
LINE_LENGTH = 110
WIDTH = 99

#: A type for each of the wire's in answers, the special ones before those that they are made of.
ATTRIBUTE_TYPES: tuple[tuple[type[AnyField], str], ...] = (
    (StatusCodes, "tuple[int | str, ...]"),
    (Instant, "datetime"),
    (fields.List, "tuple[str, ...]"),
    (fields.Dict, "Mapping[str, str]"),
    (fields.Nested, "Mapping[str, Any]"),
    *((kind, python) for kind, python in TYPES if kind not in (Headers, StatusCodes, Instant, fields.List)),
)

HEAD = '''"""The fields of a schedule, each with its meaning: as the API takes them, and as it shows them.

Generated from the API's table of fields by `make docs`: do not edit it.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Literal, TypedDict

from scheduler_app.client.record import Record

'''


def client_fields() -> str:
    """The text of `scheduler_app/client/schedule_fields.py`."""
    rows = [row for row in SCHEDULE_FIELDS if row.input is not None]
    trigger = [row for row in rows if row.preview is not None]
    others = [row for row in rows if row not in trigger and row.name not in PARAMETERS]
    named = [row for row in rows if row.name in PARAMETERS]
    return "\n".join(
        [
            f"{HEAD}#: The fields of which a new schedule has exactly one.",
            f"TRIGGERS = ({', '.join(map(_quoted, BY_NAME))})\n\n",
            _typed_dict("TriggerFields", "TypedDict, total=False", "When a schedule fires.", trigger),
            _typed_dict(
                "NewScheduleFields",
                "TriggerFields, total=False",
                "What a new schedule may have beside its name and the URL to call.",
                others,
            ),
            _typed_dict("ScheduleFields", "NewScheduleFields, total=False", "Every field.", named),
            *_values(),
            "",
        ]
    )


def _values() -> list[str]:
    rows = [row for row in SCHEDULE_FIELDS if row.output is not None]
    about = "What an answer says about a schedule; None is what does not apply to it."
    lines = ["class ScheduleValues(Record):", f'    """{about}"""\n']
    for row in sorted(rows, key=lambda row: not _is_required(row)):
        python = next(python for kind, python in ATTRIBUTE_TYPES if isinstance(row.output, kind))
        lines += [f"    #: {line}" for line in wrap(row.meaning, WIDTH)]
        lines.append(f"    {row.name}: {python}{'' if _is_required(row) else ' | None = None'}")
    return lines


def _is_required(row: ScheduleField) -> bool:
    return row.output is not None and row.output.required


def _typed_dict(name: str, bases: str, about: str, rows: Iterable[ScheduleField]) -> str:
    lines = [f"class {name}({bases}):", f'    """{about}"""\n']
    for row in rows:
        lines += _typed_field(row.name, _type(row), row.meaning)
    return "\n".join(lines) + "\n\n"


def _typed_field(name: str, python: str, meaning: str) -> list[str]:
    """A field as the formatter writes it: in one line, in three, or with a line for each of its parts."""
    within = f"{python}, {_quoted(meaning)}"
    if len(line := f"    {name}: Annotated[{within}]") <= LINE_LENGTH:
        return [line]
    if len(line := f"        {within}") <= LINE_LENGTH:
        return [f"    {name}: Annotated[", line, "    ]"]
    *parts, last = map(_quoted, _lines(meaning))
    lines = [f"{python},", *parts, f"{last},"]
    return [f"    {name}: Annotated[", *(f"        {line}" for line in lines), "    ]"]


def _lines(text: str) -> list[str]:
    """The text in pieces, broken only where the formatter would not join them again."""
    fits = len(f"        {_quoted(text)},") <= LINE_LENGTH
    return [text] if fits else wrap(text, WIDTH, drop_whitespace=False)


def _quoted(text: str) -> str:
    """A literal as the formatter writes it: single quotes where that saves escapes."""
    return f"'{text}'" if '"' in text and "'" not in text else json.dumps(text, ensure_ascii=False)


def _type(row: ScheduleField) -> str:
    field = row.input
    words = next((check.choices for check in field.validators if isinstance(check, OneOf)), None)
    if row.name in FIELDS and FIELDS[row.name].type is FieldType.TRUE:
        python = "Literal[True]"
    elif words:
        python = f"Literal[{', '.join(json.dumps(word) for word in words)}]"
    else:
        python = next(python for kind, python in TYPES if isinstance(field, kind))
    return f"{python} | None" if field.allow_none else python

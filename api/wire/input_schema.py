"""What all requests have in common: unknown fields are refused, in words that name the remedy."""

import re
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple

from marshmallow import RAISE, Schema, ValidationError, missing
from marshmallow.fields import Field

from scheduler_app import json_fields as fields
from scheduler_app.api.problems import MAX_ERRORS, Omitted
from scheduler_app.domain.resources.schedule import SCHEDULE

#: marshmallow's messages, and ours.
_PLAIN = {
    "Field may not be null.": "must not be null; leave it out, or give a value",
    "Not a valid string.": "must be text, in quotes",
    "Not a valid integer.": "must be a whole number, without quotes",
    "Not a valid number.": "must be a number",
    "Not a valid boolean.": "must be true or false",
    "Missing data for required field.": "is missing; give it",
}


def speak_plainly(field: Field[Any]) -> None:
    """Replaces the messages of a field, and of the items of a list or an object."""
    for key, said in field.error_messages.items():
        if isinstance(said, str):
            field.error_messages[key] = _PLAIN.get(said, said)
    for name in ("inner", "value_field"):
        held = getattr(field, name, None)
        if held is not None:
            speak_plainly(held)


_RULE = "rrule, such as FREQ=DAILY;BYHOUR=9;BYMINUTE=0;BYSECOND=0"
_INSTANT = "run_at, an instant with an offset such as 2030-01-05T12:00:00Z"
#: Names that people try, and the advice for them: the first whose field exists.
_ADVICE: dict[str, tuple[str, ...]] = {
    "payload data message content params request_body": ("json for a JSON value, or body for text",),
    "delay delay_seconds delay_ms in after countdown": (
        "delay_seconds",
        "run_at, the instant after that delay, such as 2030-01-05T12:00:00Z",
    ),
    "at when time date datetime start start_at starts_at scheduled_at run_time execute_at eta": (_INSTANT,),
    "cron cron_expression crontab": ("cron", _RULE),
    "phrase schedule rule frequency": ("phrase", _RULE),
    "interval every every_seconds interval_seconds": (
        "every_seconds",
        "rrule, such as FREQ=SECONDLY;INTERVAL=5",
    ),
}
_SUGGESTIONS = {row.aliases: (row.name,) for row in SCHEDULE if row.given and row.aliases} | _ADVICE
#: The pieces of advice for each name that people try.
_ADVICE_FOR = {name: advice for names, advice in _SUGGESTIONS.items() for name in names.split()}
#: What answers show and no request may give: for a person who sends back everything that was read.
_SHOWN_ONLY = {row.name for row in SCHEDULE if not row.given} | {"message", "result"}
#: Where a capital begins the next word of a name, as in callbackUrl.
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Longer names are not looked up: comparing them costs time, and no field has one.
_LONGEST = 40


class FieldSuggestion(NamedTuple):
    """What a person may have meant by an unknown field."""

    advice: str
    field: str | None = None
    """The field to use, where there is one."""


def suggest_field(name: str, known: Collection[str]) -> FieldSuggestion | None:
    """The advice for a field `name`, which is not among the `known` ones; None if nothing comes near."""
    if len(name) > _LONGEST:
        return None
    plain = _HUMP.sub("_", name).replace("-", "_").lower()
    if plain in known:
        return _suggestion(plain)
    # Only a schedule has this field.
    of_schedule = "callback_url" in known
    if of_schedule and plain == "dry_run":
        return FieldSuggestion("give it as a parameter of the query, ?dry_run=true")
    for said in _ADVICE_FOR.get(plain, ()):
        if _first_name(said) in known:
            return _suggestion(said)
    if of_schedule and plain in _SHOWN_ONLY:
        return FieldSuggestion("leave it out, the API works it out by itself")
    close = get_close_matches(plain, known, n=1, cutoff=0.8)
    return _suggestion(close[0]) if close else None


def _suggestion(said: str) -> FieldSuggestion:
    return FieldSuggestion(f"use {said}", _first_name(said))


def _first_name(said: str) -> str:
    """The field that a piece of advice begins with."""
    return said.split(",")[0].split()[0]


class InputSchema(Schema):
    """A body or a query. Unknown fields are refused by name."""

    #: Whether a request without any body means an empty object.
    body_optional = False
    #: Bound of the values in a body, at all depths: each takes far more memory than its bytes.
    max_values = 256 * 1024

    error_messages = {"type": "must be a JSON object, in braces"}  # noqa: RUF012 (marshmallow's own name)

    class Meta:
        unknown = RAISE

    def _init_fields(self) -> None:
        super()._init_fields()
        #: For each field its name, its wire name, and whether it must be read where it is not given.
        self._reads = [
            (
                field.attribute or name,
                field.data_key or name,
                field,
                field.required or field.load_default is not missing,
            )
            for name, field in self.load_fields.items()
        ]
        self._known = {key for _, key, _, _ in self._reads}
        for field in self.load_fields.values():
            speak_plainly(field)

    def _deserialize(self, data: Any, *, error_store: Any, **options: Any) -> Any:
        """As marshmallow's own, but optional fields that were not given are skipped: most of a schedule's are
        not given, and reading them took most of the time."""
        if not isinstance(data, Mapping) or options.get("many") or options.get("partial"):
            return super()._deserialize(data, error_store=error_store, **options)
        read: dict[str, Any] = {}
        unknown = (key for key in data if key not in self._known)
        better = {key: suggest_field(str(key), self._known) for key in islice(unknown, MAX_ERRORS)}
        elsewhere = {each.field for each in better.values() if each}
        for name, key, field, always in self._reads:
            value = data.get(key, missing)
            # A field that was given under another name is not reported as missing.
            if value is missing and (not always or key in elsewhere):
                continue
            try:
                value = field.deserialize(value, key, data)
            except ValidationError as error:
                error_store.store_error(error.messages, key)
                value = error.valid_data or missing
            if value is not missing:
                read[name] = value
        # The list of names is long, so only the first field without advice gets it.
        names = f": this takes {', '.join(sorted(self._known))}"
        for key, found in better.items():
            if found:
                error_store.store_error([f"Unknown field: {found.advice}"], key)
            else:
                error_store.store_error([f"Unknown field{names}"], key)
                names = ""
        if omitted := sum(1 for _ in unknown):
            error_store.store_error([Omitted(omitted)])
        return read


class WriteQuery(InputSchema):
    """The query parameters of every route that writes."""

    dry_run = fields.Boolean(
        "Change nothing, and answer what would be done, with `dry_run: true`. Ids that"
        " would be generated are examples, and secrets are masks",
        truthy={"true"},
        falsy={"false"},
        load_default=False,
    )

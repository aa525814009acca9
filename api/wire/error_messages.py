"""The errors of marshmallow's own field types, in words that say what to give instead."""

from typing import Any

from marshmallow import fields

#: marshmallow's messages, and ours.
_PLAIN = {
    "Field may not be null.": "must not be null; leave it out, or give a value",
    "Not a valid string.": "must be text, in quotes",
    "Not a valid integer.": "must be a whole number, without quotes",
    "Not a valid number.": "must be a number",
    "Not a valid boolean.": "must be true or false",
    "Missing data for required field.": "is missing; give it",
}


def speak_plainly(field: fields.Field[Any]) -> None:
    """Replaces the messages of a field, and of the items of a list or an object."""
    for key, said in field.error_messages.items():
        if isinstance(said, str):
            field.error_messages[key] = _PLAIN.get(said, said)
    for name in ("inner", "value_field"):
        held = getattr(field, name, None)
        if held is not None:
            speak_plainly(held)

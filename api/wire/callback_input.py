"""What every request that describes a callback has in common, whether it makes a schedule or a message."""

from collections.abc import Callable
from typing import ClassVar

from marshmallow import ValidationError, validates_schema

from scheduler_app.actions.http import check_header
from scheduler_app.api.json_types import Loaded
from scheduler_app.api.services import services
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.domain.errors import InvalidField

MAX_HEADER_BYTES = 16 * 1024


class CallbackInput(InputSchema):
    """Checks a callback's fields where they depend on each other, or on this deployment."""

    #: One field for each way to give a body; at most one of them may be given.
    BODIES: ClassVar[tuple[str, ...]]
    #: Fields of names and values that become headers, and what is put before their names.
    HEADERS: ClassVar[dict[str, str]] = {"headers": ""}

    @validates_schema
    def check_callback(self, data: Loaded, **_: object) -> None:
        problems: dict[str, list[str]] = {}
        if "callback_url" in data:
            _note(problems, "callback_url", services().guard.check_url, data["callback_url"])
        self.check_headers_and_body(data, problems)
        self.check_receiver(data, problems)
        if problems:
            raise ValidationError(problems)

    def check_headers_and_body(self, data: Loaded, problems: dict[str, list[str]]) -> None:
        """Notes what is wrong with them in `problems`."""
        for field, prefix in self.HEADERS.items():
            if field not in data:
                continue
            for name, value in data[field]:
                _note(problems, field, check_header, prefix + name, value)
            if sum(len(name) + len(value) for name, value in data[field]) > MAX_HEADER_BYTES:
                problems.setdefault(field, []).append(
                    f"must not exceed {MAX_HEADER_BYTES} characters together"
                )
        given = [field for field in self.BODIES if field in data]
        if len(given) > 1:
            problems[given[1]] = [f"give one of {', '.join(self.BODIES)}, not {len(given)}"]

    def check_receiver(self, data: Loaded, problems: dict[str, list[str]]) -> None:
        """Notes a problem where it is not said whom to call; an edit need not say it."""


def _note(problems: dict[str, list[str]], field: str, checker: Callable[..., None], *args: object) -> None:
    try:
        checker(*args)
    except InvalidField as error:
        problems.setdefault(field, []).append(error.message)


def note_missing_receiver(data: Loaded, problems: dict[str, list[str]]) -> None:
    """Notes a problem where neither a URL nor a destination is given."""
    if "callback_url" not in data and data.get("destination") is None:
        problems["callback_url"] = ["is missing: give it, or the name of a destination"]

"""What all requests have in common: unknown fields are refused, in words that name the remedy."""

from collections.abc import Mapping
from itertools import islice
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, missing

from scheduler_app.api.problems import MAX_ERRORS, Omitted
from scheduler_app.api.wire.error_messages import speak_plainly
from scheduler_app.api.wire.field_suggestions import meant


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
        better = {key: meant(str(key), self._known) for key in islice(unknown, MAX_ERRORS)}
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
        truthy={"true"},
        falsy={"false"},
        load_default=False,
        metadata={
            "description": "Change nothing, and answer what would be done, with `dry_run: true`. Ids that"
            " would be generated are examples, and secrets are masks"
        },
    )

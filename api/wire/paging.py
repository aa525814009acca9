"""Pages of lists, and what bulk edits and redrives share: a filter or all, one page in each call."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from marshmallow import ValidationError, validate, validates_schema

from scheduler_app import json_fields as fields
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.wire.field_types import Cursor
from scheduler_app.api.wire.input_schema import InputSchema
from scheduler_app.api.wire.output_schema import OutputSchema
from scheduler_app.domain.ids import name_of
from scheduler_app.store.paging import Page, PageRequest

MAX_LIMIT = 500
MAX_PAGE = 10_000
#: A page is found by walking over all rows before it; a cursor walks over nothing.
MAX_WALKED = 100_000


class Paging(InputSchema):
    """Which page of a list."""

    limit = fields.Integer("How many at most", load_default=10, validate=validate.Range(1, MAX_LIMIT))
    page = fields.Integer(
        "The number of the page, from 1. Rows that come and go shift the pages: to read a"
        " whole list use `cursor`",
        load_default=1,
        validate=validate.Range(1, MAX_PAGE),
    )
    cursor = Cursor("The `next_cursor` of the previous answer: the list continues right after it")

    @validates_schema
    def check_paging(self, data: Loaded, **_: object) -> None:
        if "cursor" in data and data["page"] > 1:
            raise ValidationError("give cursor or page, not both", "page")
        if data["page"] * data["limit"] > MAX_WALKED:
            raise ValidationError(f"page × limit must not exceed {MAX_WALKED}; go on by cursor", "page")


def window(query: Loaded) -> PageRequest:
    """The part of a list that a query asks for; takes those parameters out of `query`."""
    limit, page = query.pop("limit"), query.pop("page", 1)
    return PageRequest(
        limit=limit,
        skip=(page - 1) * limit,
        after=query.pop("cursor", None),
        since=query.pop("since", None),
        until=query.pop("until", None),
    )


def listed(name: str, rows: Iterable[View], asked: PageRequest, found: Page[Any]) -> View:
    """The fields of `Listed`, with the rows under `name`."""
    page = asked.skip // asked.limit + 1
    return {name: list(rows), "page": page, "limit": asked.limit, "next_cursor": found.next}


class Listed(OutputSchema):
    """A page of a list."""

    page = fields.Integer("As in the request", required=True)
    limit = fields.Integer("As in the request", required=True)
    next_cursor = Cursor(
        "Give it as `cursor` for the next page; null at the end. Before the end a page may"
        " be shorter than `limit`, or empty: one call reads at most 100,000 rows to find matching ones",
        required=True,
        allow_none=True,
    )


def call_limit(default: int, most: int) -> fields.Integer:
    """The limit of a call that does something to many, page by page."""
    meaning = "How many at most in this call"
    return fields.Integer(meaning, strict=True, load_default=default, validate=validate.Range(1, most))


class PageSelection(InputSchema):
    """Everything that matches a filter, or `all` without one."""

    body_optional = True

    #: The names of the filters in Python and on the wire.
    FILTERS: ClassVar[dict[str, str]]
    #: What is selected, in the singular, for error messages.
    THINGS: ClassVar[str]

    all = fields.JsonBoolean("Everything there is, instead of a filter", load_default=False)
    cursor = Cursor("The `next_cursor` of the call before")
    dry_run = fields.JsonBoolean("Count what would be done, and do nothing", load_default=False)

    @validates_schema
    def check_filter(self, data: Loaded, **_: object) -> None:
        filtered = any(name in data for name in self.FILTERS)
        if not filtered and not data["all"]:
            *others, last = self.FILTERS.values()
            names = f"{', '.join(others)} or {last}"
            raise ValidationError(f"give {names}, or all: true for every {self.THINGS} there is", "all")
        if filtered and data["all"]:
            raise ValidationError("give all, or a filter, not both", "all")


#: In an answer; others are counted.
MAX_SKIPPED = 100


class Skipped(OutputSchema):
    """A schedule or an event that was not changed."""

    id = fields.String("Its id", required=True)
    reason = fields.String("Why it was not changed", required=True)


def skipped_shown(skipped: Sequence[tuple[str, str]]) -> View:
    """The fields `skipped` and `skipped_omitted`, of ids with their reasons."""
    rows = [{"id": name_of(each), "reason": reason} for each, reason in skipped[:MAX_SKIPPED]]
    omitted = len(skipped) - MAX_SKIPPED
    return {"skipped": rows} | ({"skipped_omitted": omitted} if omitted > 0 else {})

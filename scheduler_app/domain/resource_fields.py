"""A row of a resource's table, the types that a field may have, and the value of one that is not given.

All are plain data. `api/wire/resource_fields.py` makes schemas of them, `store/resource_fields.py` makes
documents, and `docs/reference/client_fields.py` the client's types.
"""

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from enum import Enum, StrEnum
from functools import reduce
from typing import Any, Final, Literal, TypeVar


@dataclass(frozen=True, slots=True)
class Text:
    """Text of `least` to `most` characters; None: no bound."""

    least: int | None = None
    most: int | None = None
    visible: bool = False
    """Nothing in it may control a terminal or reorder letters."""
    invalid: str | None = None
    """What is said of a value of another type, where that is more than usual."""


@dataclass(frozen=True, slots=True)
class Word:
    """One of several words."""

    words: tuple[str, ...]
    kind: type[StrEnum] | None = None
    """What a resource holds in the word's place."""
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Name:
    """The name or the id of something else."""

    of: Literal["schedule", "message", "destination", "calendar", "queue"]


@dataclass(frozen=True, slots=True)
class Url:
    """An http or https URL."""


@dataclass(frozen=True, slots=True)
class UrlPath:
    """A path and query below a destination's URL."""


@dataclass(frozen=True, slots=True)
class Number:
    """Both bounds are allowed."""

    least: float
    most: float
    least_stored: float | None = None
    """Documents of older releases may hold less than requests may give."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number; both bounds are allowed, and None is none."""

    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    only_true: bool = False
    """False means nothing: it is refused by whoever reads it."""


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant."""

    local: bool = False
    """Without an offset it is a time in a zone that is given beside it."""


@dataclass(frozen=True, slots=True)
class Statuses:
    """HTTP statuses: numbers, "5xx", "500-504"."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Names and values, up to `most`."""

    most: int


@dataclass(frozen=True, slots=True)
class ListOf:
    """`least` to `most` values; in a resource, a tuple in which each stands once."""

    item: "FieldType"
    least: int | None = None
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Json:
    """Any value of JSON."""


@dataclass(frozen=True, slots=True)
class Object:
    """An object of that name, whose own fields a schema of the API has."""

    name: str
    values: Literal["object", "str", "float"] = "object"


FieldType = (
    Text
    | Word
    | Name
    | Url
    | UrlPath
    | Number
    | Whole
    | Flag
    | Moment
    | Statuses
    | Pairs
    | ListOf
    | Json
    | Object
)


class Null(Enum):
    """Whether a request may give null, which takes a field away."""

    NEVER = "never"
    IN_EDITS = "in edits"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True)
class ResourceField:
    """One field of a resource."""

    name: str
    """Its name in JSON."""
    type: FieldType
    meaning: str
    """A sentence without its full stop, for the specification, the client, `--help` and the manual."""
    _: KW_ONLY
    default: str | None = None
    """What a new resource has when the field is not given, as the manual shows it; None: nothing."""
    example: Any = None
    aliases: str = ""
    """Other names that people try for it, separated by spaces."""
    draft: str = ""
    """Its name in drafts; empty: the same."""
    at: str = ""
    """Where a resource and its document have it: names, separated by dots. Empty: as drafts name it."""
    given: bool = True
    """A request may give it."""
    previewed: bool = False
    """A preview takes it: it has an influence on when a schedule fires."""
    shown: bool = True
    """Answers show it."""
    computed: bool = False
    """What shows it works it out: the resource does not hold it."""
    null: Null = Null.NEVER
    required: bool = False
    """Nothing new is made without it."""
    always_shown: bool = False
    new_type: FieldType | None = None
    """How something new takes it, where that differs from an edit."""
    shown_words: tuple[str, ...] = ()
    """The words that the specification says answers may show."""
    shown_meaning: str | None = None
    """The meaning in answers, where it is another one; so do the next two for edits and previews."""
    edit_meaning: str | None = None
    preview_meaning: str | None = None
    sparse: bool = False
    """Documents leave it out where it has its default."""
    quiet: bool = False
    """Exports leave it out where it has its default, so that their files stay readable."""

    @property
    def draft_name(self) -> str:
        return self.draft or self.name

    @property
    def key(self) -> str:
        """Its name in what holds it, and in the document of that."""
        return self.path.rpartition(".")[2]

    @property
    def path(self) -> str:
        return self.at or self.draft_name


def computed(name: str, type_: FieldType, meaning: str) -> ResourceField:
    """A row that only answers have, and that what shows it works out."""
    return ResourceField(name, type_, meaning, given=False, computed=True)


def by_name(rows: Iterable[ResourceField]) -> Mapping[str, ResourceField]:
    """The rows of a table by their names in JSON."""
    return {row.name: row for row in rows}


def default_at(kind: Any, path: str) -> Any:
    """What a new resource, of this dataclass, has at a path unless something is given."""
    name, *others = path.split(".")
    default: Any = next(each.default for each in fields(kind) if each.name == name)
    return reduce(getattr, others, default)


class NotGiven(Enum):
    """The type of a field that was left out; None is a value that was given."""

    NOT_GIVEN = "NOT_GIVEN"

    def __repr__(self) -> str:
        return self.name


NOT_GIVEN: Final = NotGiven.NOT_GIVEN


_T = TypeVar("_T")


def given(value: _T | NotGiven, otherwise: _T) -> _T:
    """The value, or `otherwise` where the field was left out."""
    return otherwise if isinstance(value, NotGiven) else value


def given_fields(draft: object, names: Iterable[str]) -> dict[str, Any]:
    """Those of the fields of these names that were given, with their values."""
    return {name: value for name in names if (value := getattr(draft, name)) is not NOT_GIVEN}

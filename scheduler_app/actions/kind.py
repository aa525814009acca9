"""What a kind of action has to bring along: how it is stored, how it is checked, who executes it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from scheduler_app.actions.executor import Executor
from scheduler_app.config import Settings
from scheduler_app.domain.action import Action
from scheduler_app.domain.queues import COMMANDS

if TYPE_CHECKING:
    from scheduler_app.actions.fields import ActionFields

A = TypeVar("A", bound=Action)

Document = dict[str, Any]


class ActionKind(ABC, Generic[A]):
    """A row of the registry. `A` is the kind's value: a frozen dataclass, and a `domain.action.Action`.

    A module that defines a row is imported by every process: what is expensive to import is imported by the
    methods that only some of them call, drivers by `executor`, marshmallow by `fields`.
    """

    #: `action.type` in MongoDB, `kind` of the value.
    name: str
    #: The aggregation expression of a stored action without its secrets. `from_document` reads its result.
    without_secrets: Document
    #: Fields of a stored action that beats do not fetch, because they are secret or large, and what a beat
    #: reads in place of those that `from_document` needs.
    not_for_beats: tuple[str, ...] = ()
    in_their_place: ClassVar[Document] = {}

    @abstractmethod
    def fields(self) -> "ActionFields[A] | None":
        """The fields of such actions in JSON; None for `http`, whose fields are a schedule's own."""

    @abstractmethod
    def to_document(self, action: A) -> Document:
        """Returns what is stored of an action, `type` included."""

    @abstractmethod
    def from_document(self, document: Mapping[str, Any]) -> A:
        """Returns the action that is stored so. Raises Corrupt, which names the field."""

    @abstractmethod
    def split(self, document: Document) -> tuple[Document, Document]:
        """Returns a stored action without its secret parts, and these by name; both can be encoded as BSON.
        `signing` is no name of theirs."""

    @abstractmethod
    def join(self, document: Document, secrets: Mapping[str, Any]) -> Document:
        """Undoes `split`; `secrets` may hold other names, too. Raises Corrupt where the two do not match."""

    @abstractmethod
    def checker(self, settings: Settings) -> Callable[[A], None]:
        """Returns what judges a new action by the settings of this deployment: it raises InvalidField."""

    def is_served(self, settings: Settings, queues: Collection[str]) -> bool:
        """Whether a worker with these settings that serves these queues executes such actions. The others
        leave them to those that do."""
        return COMMANDS not in queues

    @abstractmethod
    def executor(self, settings: Settings, ready: Callable[[], None]) -> Executor:
        """Makes a worker's executor. Raises InvalidSetting for settings it cannot work with.

        `ready` is for an executor with threads of its own: they call it when there is a verdict to collect,
        because the courier may be waiting in another executor's `wait`.
        """

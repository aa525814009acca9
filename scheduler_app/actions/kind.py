"""The seam between the scheduler and the kinds of actions.

`ActionKind` is what a kind has to bring along: how it is stored, how it is checked, who executes it. An
`Executor` is where a worker starts attempts and later gets verdicts; `Executors` are those of one worker, one
for each kind that it serves.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from scheduler_app.config import Settings
from scheduler_app.domain.action import COMMANDS, Action
from scheduler_app.domain.event import Event
from scheduler_app.domain.schedule import Deliverable
from scheduler_app.domain.stored_fields import Corrupt, items

if TYPE_CHECKING:
    from scheduler_app.actions.fields import ActionFields


class Outcome(Enum):
    """What an attempt means for its event."""

    SUCCESS = auto()
    RETRY = auto()
    """Another attempt may succeed: it follows if the schedule's retries are not spent."""
    PERMANENT = auto()
    """No attempt can succeed until the schedule is changed."""


class Verdict(NamedTuple):
    """How an attempt ended. Secrets of its action are in none of the fields: the executor removes them.

    `error`, `snippet`, `status_code` and `duration_ms` (milliseconds) are kept in the event's history.
    `status_code` is the number by which the receiver told how it went: an HTTP status, a process's exit
    status. `error` says in one sentence why there is none, or what was wrong. `snippet` is the beginning of
    what came back, on one line. `reason` is what people are told of an attempt that failed; it is not used
    after a success. `retry_after` is for how many seconds the receiver asked not to be called again.
    `output` is what a program has printed, its beginning and its end.
    """

    event_id: str
    outcome: Outcome
    status_code: int | None
    error: str | None
    snippet: str
    duration_ms: float
    reason: str = ""
    retry_after: float | None = None
    output: str | None = None

    @classmethod
    def of_error(
        cls,
        event_id: str,
        error: Exception | str,
        *,
        outcome: Outcome = Outcome.PERMANENT,
        duration_ms: float = 0.0,
    ) -> "Verdict":
        """An attempt without an answer. An exception is one of our own code."""
        reason = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        return cls(event_id, outcome, None, reason, "", duration_ms, reason)


class Executor(Protocol):
    """Runs attempts of one kind of action beside each other, any number of them at once.

    All methods but `wake` are called by one thread, the courier's, which serves every receiver: none of them
    may block, but for `wait`, which may for its timeout. Whatever has to block belongs into threads or
    processes of the executor's own.

    `concurrency` is how many attempts with one isolation key a worker may have in flight.
    """

    @property
    def concurrency(self) -> int: ...

    def start(self, event: Event, deliverable: Deliverable, now: datetime) -> None:
        """Begins the attempt that follows `event.attempt`; `now` (UTC) is when it starts.

        It ends after the `timeout_seconds` of `deliverable` at the latest, and yields exactly one verdict.
        What is wrong with the action is a verdict, too. An exception is an error in our own code: the caller
        ends the event with it, and no verdict may follow. The event has no other attempt in flight.
        """
        ...

    def wait(self, timeout: float) -> Sequence[Verdict]:
        """Returns the verdicts that there are; waits up to `timeout` seconds while there is none, and less
        after `wake`."""
        ...

    def wake(self) -> None:
        """Ends the present `wait`, or the next one, at once. Any thread may call it."""
        ...

    def interrupt(self) -> None:
        """Ends every attempt in flight; none of them yields a verdict. The executor can be used again."""
        ...

    def close(self) -> None:
        """Interrupts, and frees what the executor holds: connections, threads, processes."""
        ...


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
    without_secrets: ClassVar[Document]
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
        None of them is called `signing`."""

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


def joined_values(document: Document, field: str, secrets: Mapping[str, Any]) -> list[list[Any]]:
    """Returns the pairs in `field` of a stored action, with the values that `split` has taken from them and
    left null. Raises Corrupt."""
    name = f"action.{field}"
    values = iter(items(secrets.get(field, []), f"sealed: {field}"))
    joined = [
        [pair[0], next(values, None)] if len(pair) == 2 and pair[1] is None else pair
        for pair in [items(pair, f"an item of {name}") for pair in items(document.get(field), name)]
    ]
    if any(True for _ in values):
        raise Corrupt(f"{name} and what is sealed of it do not fit together")
    return joined


class Executors:
    """Waits for all of them at once: in the `wait` of the first one, which the others wake."""

    def __init__(self, executors: Mapping[str, Executor]) -> None:
        """`executors` by the name of the kind; at least one. All but the first call the `wake` of this object
        when they have a verdict."""
        self._executors = dict(executors)
        self._first = next(iter(self._executors.values()))
        self._others: list[Executor] = []
        """Those that have ever been used: most workers serve one kind, and ask the others for no verdicts."""

    @property
    def concurrency(self) -> Mapping[str, int]:
        """How many attempts with one isolation key may be in flight, by kind."""
        return {name: executor.concurrency for name, executor in self._executors.items()}

    def of(self, kind: str) -> Executor:
        """Raises KeyError for a kind that this worker does not serve."""
        executor = self._executors[kind]
        if executor is not self._first and executor not in self._others:
            self._others.append(executor)
        return executor

    def serves(self, kind: str) -> bool:
        return kind in self._executors

    def wait(self, timeout: float) -> Sequence[Verdict]:
        """The verdicts of all; see `Executor.wait`."""
        verdicts = self._first.wait(timeout)
        if not self._others:
            return verdicts
        gathered = list(verdicts)
        for executor in self._others:
            gathered += executor.wait(0.0)
        return gathered

    def wake(self) -> None:
        self._first.wake()

    def interrupt(self) -> None:
        for executor in self._executors.values():
            executor.interrupt()

    def close(self) -> None:
        for executor in self._executors.values():
            executor.close()


def make_executors(settings: Settings, kinds: Iterable[ActionKind[Any]]) -> Executors:
    """Makes the executors of these kinds, in their order. Raises InvalidSetting."""
    executors: list[Executors] = []

    def ready() -> None:
        if executors:  # an executor may report before the others are made; the first `wait` finds its verdict
            executors[0].wake()

    executors.append(Executors({kind.name: kind.executor(settings, ready) for kind in kinds}))
    return executors[0]

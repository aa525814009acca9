"""The action of the kind `celery_task`, a task of a user's own Celery application: which brokers have names
(`billing=redis://…,reports=amqp://…`), and by the patterns of CELERY_TASKS which tasks may be sent to
which queues.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from scheduler_app.domain.action import Action
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.masking import MASK

URL_NAME = re.compile(r"[a-zA-Z0-9-]{1,64}\Z")
MAX_URLS = 20
BROKERS = ("redis", "rediss", "sentinel", "amqp", "amqps")
#: Those whose results can be asked for many tasks at once.
RESULT_BACKENDS = ("redis", "rediss")

NamedUrls = tuple[tuple[str, str], ...]


def parse_brokers(value: str) -> NamedUrls:
    """Reads CELERY_BROKERS. Raises ValueError, whose text shows no URL: they have passwords."""
    return _parse_named_urls(value, BROKERS)


def parse_result_backends(value: str) -> NamedUrls:
    """Reads CELERY_RESULT_BACKENDS. Raises ValueError as `parse_brokers`."""
    return _parse_named_urls(value, RESULT_BACKENDS)


def _parse_named_urls(value: str, schemes: tuple[str, ...]) -> NamedUrls:
    named: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in value.split(","))):
        name, equals, url = (part.strip() for part in item.partition("="))
        if not equals or not URL_NAME.match(name):
            raise ValueError(
                "must be names and URLs, such as billing=redis://host:6379/0, separated by commas; a name has"
                " 1 to 64 letters, digits and hyphens, and a comma in a password is written %2C"
            )
        if name in named:
            raise ValueError(f"must not have the name {name} twice")
        try:
            parts = urlsplit(url.split(";")[0])
            usable = parts.scheme in schemes and bool(parts.hostname) and (parts.port or True)
        except ValueError:
            usable = False
        if not usable:
            raise ValueError(
                f"must have a URL for {name} that begins with {', '.join(f'{each}://' for each in schemes)}"
                " and has a host"
            )
        named[name] = url
    if len(named) > MAX_URLS:
        raise ValueError(f"must not have more than {MAX_URLS} URLs")
    return tuple(named.items())


CELERY_TASK: Final = "celery_task"
MAX_NAME = 200
MAX_ARGUMENTS_BYTES = 128 * 1024
MAX_HEADERS = 50
MAX_HEADERS_BYTES = 16 * 1024
MAX_PRIORITY = 255
#: In seconds.
MAX_EXPIRES = 31 * 86_400
_PREFIX = "celery:"


@dataclass(frozen=True, slots=True)
class CeleryTaskAction:
    """A task, by its registered name. Its repr leaves out arguments and headers, which may be secret."""

    task: str
    broker: str
    """A name of CELERY_BROKERS."""
    args: str = field(default="[]", repr=False)
    """The positional arguments: a JSON list."""
    kwargs: str = field(default="{}", repr=False)
    """The keyword arguments: a JSON object."""
    event_kwarg: str | None = None
    """The keyword argument by which the task gets the event: its id, schedule, run time and attempt."""
    queue: str | None = None
    """The queue of the task's application; None for its default."""
    priority: int | None = None
    expires: int | None = None
    """Seconds after which a worker of the application drops the task."""
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    wait: bool = False
    """Whether the attempt ends with the task, and not when the broker has it."""

    @property
    def kind(self) -> str:
        return CELERY_TASK

    @property
    def isolation_key(self) -> str:
        """The broker: while it is away, tasks for other brokers go on."""
        return _PREFIX + self.broker

    @property
    def destination(self) -> None:
        return None

    @property
    def completion_problem(self) -> str | None:
        if self.wait:
            return "and the action's wait both say how a task has ended: leave one of them out"
        return None

    def unmasked(self, old: Action | None) -> "CeleryTaskAction":
        """Returns the action with the old arguments and headers where this one has masks for them.

        Another task, or another broker, could give away what a mask stands for, so both have to be the old
        ones. Raises InvalidField.
        """
        masked = [name for name, value in self.headers if value == MASK]
        if self.args != MASK and self.kwargs != MASK and not masked:
            return self
        if not isinstance(old, CeleryTaskAction) or (old.task, old.broker) != (self.task, self.broker):
            raise InvalidField(
                "action", f"{MASK} stands for arguments and headers only while task and broker stay the same"
            )
        known = dict(old.headers)
        missing = [name for name in masked if name not in known]
        if missing:
            raise InvalidField(
                "action", f"headers: {missing[0]} has no value yet that {MASK} could stand for"
            )
        return replace(
            self,
            args=old.args if self.args == MASK else self.args,
            kwargs=old.kwargs if self.kwargs == MASK else self.kwargs,
            headers=tuple((name, known[name] if value == MASK else value) for name, value in self.headers),
        )


ANYTHING = "*"
MAX_PATTERNS = 200
MAX_LENGTH = 500
#: Celery's own tasks: some of them start others, whatever a pattern for an application's tasks says.
_CELERYS_OWN = "celery."
_QUEUE = re.compile(r"[A-Za-z0-9._:*-]+\Z")
#: What a `*` stands for: anything in the name of a task; in that of a queue no colon, which the queues of
#: every scheduler have.
_IN_TASK, _IN_QUEUE = r"[^\s]*", r"[A-Za-z0-9._-]*"


@dataclass(frozen=True, slots=True)
class TaskPattern:
    """`broker:task`, or `broker:task@queue`. Without a queue it allows tasks that name none; `@*` allows any
    queue, and none."""

    text: str
    broker: str
    task: str
    queue: str | None

    @classmethod
    def parse(cls, text: str) -> "TaskPattern":
        """Raises ValueError."""
        broker, colon, rest = text.partition(":")
        task, at, queue = rest.rpartition("@") if "@" in rest else (rest, "", "")
        usable = bool(colon and URL_NAME.match(broker) and task) and not re.search(r"\s", task)
        if not usable or len(text) > MAX_LENGTH or (at and not _QUEUE.match(queue)):
            raise ValueError(
                f"must be patterns such as shop:shop.tasks.* or shop:shop.tasks.bill@high, separated by"
                f" commas; {text[:100]!r} is none"
            )
        return cls(text, broker, task, queue if at else None)

    def allows(self, action: CeleryTaskAction) -> bool:
        if action.broker != self.broker or not _is_like(self.task, action.task, _IN_TASK):
            return False
        if action.task.startswith(_CELERYS_OWN) and not self.task.startswith(_CELERYS_OWN):
            return False
        if action.queue is None:
            return self.queue in (None, ANYTHING)
        return self.queue is not None and _is_like(self.queue, action.queue, _IN_QUEUE)


def _is_like(pattern: str, name: str, part: str) -> bool:
    # Several stars in a row say what one says, and would be tried in every way of dividing the name.
    pieces = re.sub(r"\*+", ANYTHING, pattern).split(ANYTHING)
    first, *rest = pieces
    if not rest:
        return name == pattern
    at = len(first)
    if not name.startswith(first):
        return False
    *middle, last = rest
    for piece in middle:
        found = name.find(piece, at)
        if found < 0 or not re.fullmatch(part, name[at:found]):
            return False
        at = found + len(piece)
    end = len(name) - len(last)
    return end >= at and name.endswith(last) and re.fullmatch(part, name[at:end]) is not None


@dataclass(frozen=True, slots=True)
class AllowedTasks:
    """All patterns of a process; without any, it allows nothing."""

    patterns: tuple[TaskPattern, ...]
    own_prefix: str
    """What the queues of this deployment begin with in every broker."""

    @classmethod
    def parse(cls, texts: Sequence[str], database: str) -> "AllowedTasks":
        """`database` is MONGO_DATABASE. Raises ValueError."""
        return cls(tuple(map(TaskPattern.parse, texts)), f"{database}:")

    def refusal(self, action: CeleryTaskAction) -> str | None:
        """Why the task may not be sent, and what the operator can do; None if it may."""
        if action.queue is not None and action.queue.startswith(self.own_prefix):
            return f"queue: {action.queue} is a queue of this scheduler itself; name one of the application"
        if any(pattern.allows(action) for pattern in self.patterns):
            return None
        queue = "" if action.queue is None else f"@{action.queue}"
        return (
            "task: CELERY_TASKS do not allow the task with this broker and queue; ask the operator for the"
            f" pattern {action.broker}:{action.task}{queue}"
        )


def parse_task_patterns(value: str) -> tuple[str, ...]:
    """Reads CELERY_TASKS. Raises ValueError, which completes a sentence that begins with the setting's
    name."""
    texts = tuple(text.strip() for text in value.split(",") if text.strip())
    if len(texts) > MAX_PATTERNS:
        raise ValueError(f"must not have more than {MAX_PATTERNS} patterns")
    for text in texts:
        TaskPattern.parse(text)
    return texts

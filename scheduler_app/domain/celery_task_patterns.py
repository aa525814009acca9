"""Which tasks of other Celery applications may be sent, and to which queues: the patterns of CELERY_TASKS."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.domain.named_urls import NAME

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
        usable = bool(colon and NAME.match(broker) and task) and not re.search(r"\s", task)
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

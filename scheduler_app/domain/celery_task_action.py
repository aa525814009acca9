"""The action of the kind `celery_task`: a task of a user's own Celery application."""

from dataclasses import dataclass, field, replace
from typing import Final

from scheduler_app.domain.action import Action
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.masking import MASK

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

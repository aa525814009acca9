"""What the domain knows of an action: its kind, and which actions share a receiver."""

from typing import Protocol, Self


class Action(Protocol):
    """What an occurrence does. Each kind has a frozen value of its own, whose repr shows no secret."""

    @property
    def kind(self) -> str:
        """The kind's name: `action.type` of a stored schedule, and a key of `actions.registry.KINDS`."""
        ...

    @property
    def isolation_key(self) -> str:
        """What an attempt may have to wait for, at most 300 characters: the origin of an HTTP receiver.

        Attempts with the same key share limits and take turns. Attempts with different keys never wait for
        each other. It is shown in metrics and logs, so it must not contain a secret.
        """
        ...

    def unmasked(self, old: "Action | None") -> Self:
        """Returns the action with the values of `old`, the schedule's, where this one has masks for them.
        Raises InvalidField where a mask stands for nothing."""
        ...

    @property
    def completion_problem(self) -> str | None:
        """Why a schedule with this action cannot have `completion` `callback`; None if it can."""
        ...

"""What can go wrong, one class for each thing that a caller can act on."""


class SchedulerError(Exception):
    """The base of every error of ours."""


class InvalidField(SchedulerError):
    """A value given by a person is not usable: `field` names it, the message says what would be right."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field
        self.message = message


class InvalidRecurrence(InvalidField):
    """A rule is not usable: `part` names the piece of it (`BYMONTH`, `DTSTART`, `RRULE` for the whole, …), or
    a choice beside it, which is a field of its own (`timezone`, `gap`, `overlap`, `calendar`, `limit`)."""

    def __init__(self, part: str, message: str) -> None:
        beside = part in ("timezone", "gap", "overlap", "calendar", "limit")
        whole = beside or part == "RRULE"
        super().__init__(part if beside else "rrule", message if whole else f"{part}: {message}")
        self.part = part

    def __str__(self) -> str:
        """With the field where the message alone would not name it: for logs and for reasons."""
        return self.message if self.field == "rrule" else f"{self.field}: {self.message}"


def masked_value(field: str, what: str = "") -> InvalidField:
    """The error for a mask in `field` that stands for nothing; `what` is masked where it is a part of it."""
    return InvalidField(field, f"{what} is masked, and there is no value to keep: give the real one".lstrip())


class NotFound(SchedulerError):
    """No such thing, or it was deleted."""


class Conflict(SchedulerError):
    """The thing is not in a state that allows this; the message says which state it is in."""


class NotAuthorized(SchedulerError):
    """The request does not show that its sender may do this."""


class QuotaExceeded(SchedulerError):
    """There are as many of something as an operator allows; the message says which setting says so."""

    def __init__(self, message: str, retry_after: int | None = None, limit: str | None = None) -> None:
        """`retry_after`: in how many seconds there may be more, where that is known; `limit`: which of the
        tenant's, if it is one."""
        super().__init__(message)
        self.retry_after = retry_after
        self.limit = limit


class LimitReached(QuotaExceeded):
    """As long as nothing of it is taken away, or the limit raised, trying again is in vain."""


class StaleVersion(SchedulerError):
    """The thing was changed in between (`If-Match` does not match its `version`)."""


def stale_version(thing: str, version: int, wanted: int | None) -> StaleVersion:
    """Why a thing is not edited that is at another version than the request wants."""
    return StaleVersion(
        f"the {thing} is at version {version}, not {wanted}: read it again, and send the ETag that you are"
        " given"
    )

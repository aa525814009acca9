"""What a key of the API may do."""

from enum import StrEnum


class KeyScope(StrEnum):
    """What one kind of request needs. None contains another: a key has each one that it shall have."""

    READ = "read"
    """To see everything but secrets, and to try what changes nothing."""
    TRIGGER = "trigger"
    """What whoever is on call does with things as they are: trigger, send again, cancel, pause."""
    WRITE = "write"
    """To make, change and delete what is kept: schedules, messages, destinations, calendars and the like."""
    ADMIN = "admin"
    """Keys, tenants, and what concerns the whole installation."""


ALL_SCOPES = frozenset(KeyScope)

"""iCalendar files (RFC 5545): what an import reads of them, and what an export writes.

`reading` makes recurrences of a file's events and to-dos; `writing` writes coming occurrences and past
events. Only `library` knows the icalendar package.
"""

from .calendar_file import TooLarge
from .closed_days import closed_days
from .reading import MAX_ITEMS, MAX_PARTS, Item, Series, read_items
from .writing import Entry, When, write_calendar

__all__ = [
    "MAX_ITEMS",
    "MAX_PARTS",
    "Entry",
    "Item",
    "Series",
    "TooLarge",
    "When",
    "closed_days",
    "read_items",
    "write_calendar",
]

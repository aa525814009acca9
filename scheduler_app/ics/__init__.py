"""iCalendar files (RFC 5545): what an import reads of them, and what an export writes.

`reading` makes recurrences of a file's events and to-dos. Only `library` knows the icalendar package.
"""

from .calendar_file import TooLarge
from .reading import MAX_ITEMS, Item, Series, read_items

__all__ = ["MAX_ITEMS", "Item", "Series", "TooLarge", "read_items"]

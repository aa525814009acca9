"""iCalendar files (RFC 5545): what an import reads of them, and what an export writes.

`reading` makes recurrences of a file's events and to-dos; `writing` writes coming occurrences and past
events. Only `calendar_file` knows the icalendar package.
"""

from scheduler_app.ics.reading import MAX_ITEMS, MAX_PARTS, CalendarItem, Series, closed_days, read_items
from scheduler_app.ics.writing import CalendarEntry, EntryTime, write_calendar

from .calendar_file import TooLarge

"""Calendars: which days are holidays or weekend days, by dates, by a country, by an exchange.

`Calendar` is the value that people give; `days_of` answers for its days. `public_holidays` alone knows the
`holidays` library, and loads it only when a calendar names a country or an exchange.
"""

from scheduler_app.domain.calendars.calendar import (
    MAX_CALENDAR_NAME,
    MAX_DATES,
    WEEKDAYS,
    Calendar,
    CalendarDay,
    CalendarUse,
    DayKind,
    NamedCalendar,
    NamedDate,
    RemakeCounts,
    days_of,
)
from scheduler_app.domain.calendars.public_holidays import (
    FIRST_YEAR,
    LAST_YEAR,
    holiday_data_key,
    holiday_data_version,
)

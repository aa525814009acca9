"""Recurrence rules of RFC 5545 with its errata, evaluated exactly, from any instant on, in bounded steps.

`Recurrence.parse` reads the text; `after`, `between` and `occurrences` answer. `Once` is the recurrence of a
single instant, `Never` the one without any. Nothing here reads a clock.

python-dateutil is used where it is right and bounded: its `isoparse` reads the date values and its `weekday`
is the value of BYDAY. Its `rrule` does not evaluate anything here: it walks from DTSTART (20 seconds for
MINUTELY since 2016), has no limit (DAILY;INTERVAL=0 never returns), repeats and loses instants at clock
changes, cuts the first period before BYSETPOS (its issue 1398) and misnumbers the week at the year's edge
(its pull request 1537). The tests hold the evaluator against it where it is right.
"""

from scheduler_app.domain.errors import InvalidRecurrence
from scheduler_app.domain.recurrence.occurrence import Never, Occurrence, Once
from scheduler_app.domain.recurrence.recurrence import Gap, Recurrence
from scheduler_app.domain.recurrence.rules.recurrence_set import ClosedDays, Observance, OnHoliday
from scheduler_app.domain.recurrence.why.reason import Reason, RecurrenceVerdict
from scheduler_app.domain.recurrence.zones import Overlap, zone_data_version

AnyRecurrence = Recurrence | Once | Never

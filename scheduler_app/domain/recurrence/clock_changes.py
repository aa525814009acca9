"""The two choices about local times that a clock change touches."""

from typing import Literal

#: What becomes of a local time that a clock change leaves out: later by the length of the gap, or dropped.
Gap = Literal["shift", "skip"]
#: Which one of a local time that a clock change repeats.
Overlap = Literal["first", "last"]

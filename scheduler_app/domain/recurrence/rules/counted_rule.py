"""COUNT, kept right without walking from DTSTART each time.

An instance is counted from DTSTART on, before EXDATE takes any away, and one that a gap shifted counts. So
where a rule ends can be known only from a place where the count is known: a *mark*, "so many instances lie
before this second". A checkpoint, which a schedule stores, is such a mark; another is kept from the last
look-up.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from scheduler_app.domain.recurrence.timeline import DAY

from .bound_rule import BoundRule
from .elapsed_rule import ElapsedRule
from .instance_count import Mark, count_ahead
from .step_budget import StepBudget

_FAR: Final = 10 * DAY  # a mark this near is as good as arithmetic
_A_STEP: Final = 16  # instances that are counted one by one for a step


@dataclass(frozen=True, eq=False)
class CountedRule:
    """A rule that ends after `count` instances. Its marks are what is known so far; they change no answer."""

    bound: BoundRule
    count: int
    _marks: dict[str, Mark] = field(default_factory=dict, init=False, repr=False)

    @property
    def last(self) -> int | None:
        """The UTC second of the last instance, where that is arithmetic."""
        endless = self.bound.endless
        if isinstance(endless, ElapsedRule) and endless.plain:
            return endless.start + (self.count - 1) * endless.step
        return None

    def use(self, mark: Mark) -> None:
        """Take a mark from outside, that of a checkpoint, for true."""
        self._marks["checkpoint"] = mark

    def instants(self, second: int, steps: StepBudget, shifted: set[int] | None = None) -> Iterator[int]:
        """The UTC seconds from `second` on, strictly increasing, up to the last that COUNT allows."""
        done = self.done_before(second, steps)
        if done >= self.count:
            return
        for instant in self.bound.instants(second, steps, shifted):
            yield instant
            done += 1
            if done >= self.count:
                return

    def done_before(self, second: int, steps: StepBudget) -> int:
        """How many instances lie before a UTC second; costs the distance from the nearest mark before it."""
        earlier = (mark for mark in tuple(self._marks.values()) if mark.second <= second)
        from_, done = max(earlier, default=Mark(self.bound.start, 0))
        endless = self.bound.endless
        told = "checkpoint" in self._marks  # what a checkpoint says goes before what is worked out
        plain = isinstance(endless, ElapsedRule) and endless.plain and not told
        if second - from_ > _FAR or plain:
            from_, done = count_ahead(endless, second, self.count, steps) or (from_, done)
        if from_ < second and done < self.count:
            for instant in self.bound.instants(from_, steps):
                if instant >= second:
                    break
                done += 1
                if done % _A_STEP == 0:
                    steps.spend()
                if done == self.count:
                    break
        done = min(done, self.count)
        if second > self.bound.start:
            self._marks["latest"] = Mark(second, done)
        return done


RuleOfSet = BoundRule | CountedRule

"""The budget of an evaluation, counted in steps of the evaluator, so that no rule can hang the scheduler.

A step is a year, a period or a candidate looked at; it costs about a microsecond. What an occurrence needs is
a few steps for ordinary rules and a few thousand for the rarest: the limit is out of reach of a rule that
means something, and reached at once by a set whose EXRULE takes away everything that its RRULE gives.
A parse has less: what it accepts can be evaluated later, from whatever instant.
"""

from typing import Final

from scheduler_app.domain.errors import InvalidRecurrence

LIMIT: Final = 50_000
PARSE_LIMIT: Final = 10_000
#: What all occurrences that are listed for a person may cost together: some seconds at the most.
LISTING_LIMIT: Final = 2_000_000


class StepBudget:
    """The steps that are left for finding the next occurrence, or, when `parsing`, for reading the text."""

    __slots__ = ("limit", "parsing", "steps_left")

    def __init__(self, *, parsing: bool = False) -> None:
        self.limit = PARSE_LIMIT if parsing else LIMIT
        self.steps_left = self.limit
        self.parsing = parsing

    def allow(self, rules: int) -> None:
        """Each rule of a set has the whole budget; all the rules of a text that is parsed share one."""
        if not self.parsing and rules > 1:
            self.limit = self.steps_left = LIMIT * rules

    def spend(self, count: int = 1) -> None:
        """Count steps; InvalidRecurrence when the budget is used up."""
        self.steps_left -= count
        if self.steps_left < 0:
            raise OutOfSteps(self.limit)

    def found(self) -> None:
        """An instance was found, so there was progress: the next one has the whole budget again."""
        if self.parsing:
            self.spend()
        else:
            self.steps_left = self.limit


class ListingBudget(StepBudget):
    """The steps for a list of occurrences: each has its own budget, and all together have `LISTING_LIMIT`."""

    __slots__ = ("together",)

    def __init__(self) -> None:
        super().__init__()
        self.together = LISTING_LIMIT

    def found(self) -> None:
        self.together -= self.limit - self.steps_left
        if self.together < 0:
            raise InvalidRecurrence(
                "limit",
                f"they take more than {LISTING_LIMIT} steps of the evaluator together; ask for fewer, or for"
                " an earlier end",
            )
        super().found()


class OutOfSteps(InvalidRecurrence):
    """The budget is used up."""

    def __init__(self, limit: int) -> None:
        super().__init__(
            "RRULE",
            f"no occurrence was found within {limit} steps of the evaluator; make the parts contradict less, "
            "or give fewer and simpler rules",
        )

"""The answer to a request of many items, each of which is taken or refused by itself."""

from collections.abc import Sequence

from scheduler_app.api.json_types import View
from scheduler_app.api.problems import Problem

CREATED = 201
#: An answer names this many wrong fields of all its items together, and counts the others.
MAX_ERRORS_TOGETHER = 1_000


def bulk_results(outcomes: Sequence[View | Problem]) -> View:
    """The answer's fields: how many were created and refused, and the result of each item in their order."""
    refused = [outcome for outcome in outcomes if isinstance(outcome, Problem)]
    bound_errors(refused)
    results = [
        {"status": each.status, "problem": each.body()} if isinstance(each, Problem) else each
        for each in outcomes
    ]
    created = sum(1 for each in results if each["status"] == CREATED)
    return {"created": created, "refused": len(refused), "results": results}


def bound_errors(refused: list[Problem]) -> None:
    """Leaves out the errors beyond `MAX_ERRORS_TOGETHER` in all of them, and counts them."""
    room = MAX_ERRORS_TOGETHER
    for problem in refused:
        omitted = len(problem.errors) - room
        if omitted > 0:
            problem.errors = problem.errors[:room]
            problem.errors_omitted += omitted
        room -= len(problem.errors)

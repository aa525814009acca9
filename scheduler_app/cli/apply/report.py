"""What a plan or an application says."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence

from scheduler_app.cli.apply.planning import Step
from scheduler_app.cli.output import say
from scheduler_app.client import Json

#: Lines for each schedule and kind of difference; --json has all.
SHOWN = 10
_SHOWN_CHARACTERS = 100
_SIGNS = {"created": "+", "changed": "~", "deleted": "-"}
_RESULTS = ("created", "changed", "unchanged", "deleted", "refused")


def say_step(step: Step) -> None:
    """One item with its differences; prints nothing without any."""
    if step.result == "unchanged":
        return
    if step.result == "refused":
        where = f"{step.item.file}: " if step.item.file else ""
        say(f"! {where}{step.item}: {step.reason}", err=True)
        return
    said = f" ({step.reason})" if step.reason else ""
    say(f"{_SIGNS[step.result]} {step.item}{said}")
    for name, (before, after) in step.fields.items():
        say(f"    {name}: {_short(before)} → {_short(after)}")
    difference = step.occurrences
    _say_times("moved", [f"{before} → {after}" for before, after in difference.moved])
    _say_times("removed", difference.removed)
    _say_times("added", difference.added)
    if difference.cut_short:
        say("    it runs so often that only the first 1,000 occurrences were compared")


def summary(steps: Iterable[Step]) -> str:
    """The counts of all items."""
    counts = Counter(step.result for step in steps)
    return ", ".join(f"{name} {counts[name]:,}" for name in _RESULTS)


def as_json(step: Step) -> Json:
    """A step for programs."""
    difference = step.occurrences
    return {
        "kind": step.item.kind,
        "name": step.item.name,
        "result": step.result,
        "reason": step.reason,
        "fields": {name: {"before": old, "after": new} for name, (old, new) in step.fields.items()},
        "occurrences": {
            "added": list(difference.added),
            "removed": list(difference.removed),
            "moved": [{"from": old, "to": new} for old, new in difference.moved],
            "cut_short": difference.cut_short,
        },
    }


def _say_times(what: str, times: Sequence[str]) -> None:
    for time in times[:SHOWN]:
        say(f"    {what.ljust(7)}  {time}")
    if len(times) > SHOWN:
        say(f"    {what.ljust(7)}  … and {len(times) - SHOWN:,} more of the next 30 days")


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"

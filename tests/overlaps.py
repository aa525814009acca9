"""What the policies of overlapping runs promise, against events and what their receiver saw.

Written apart from the code under test: by when requests arrived and when events ended.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any

#: An event's end is written by another clock reading than a request's arrival, on the same machine.
SLACK_SECONDS = 0.1
#: An end is written a moment after it was: until then an event is not finished to anybody else.
WRITTEN_SECONDS = 1.0
NOBODY_KNOWS: Mapping[str, float] = MappingProxyType({})

Event = Mapping[str, Any]


def broken_promises(
    policy: str,
    events: Sequence[Event],
    arrivals: Mapping[str, Sequence[float]],
    *,
    queue_limit: int = 100,
    written_in_time: bool = True,
    written: Mapping[str, float] = NOBODY_KNOWS,
    slack_seconds: float = SLACK_SECONDS,
) -> list[str]:
    """What is wrong with the events of one schedule; `arrivals` are the requests of each event, by its id, in
    Unix seconds. Where MongoDB was away, ends were not `written_in_time`, and nobody can say later how many
    events were unfinished to a worker. `written`: by when MongoDB had ends, in Unix seconds; others may have
    been written `WRITTEN_SECONDS` later. `slack_seconds`: by how much the clocks may differ.
    """
    ordered = sorted(events, key=lambda event: (event["run_time"], event["_id"]))
    found: list[str] = []
    for place, event in enumerate(ordered):
        before, called = ordered[:place], arrivals.get(event["_id"], ())
        if policy in ("skip", "queue"):
            found += _beside_an_earlier_one(event, before, called, slack_seconds)
        if event["state"] == "skipped":
            least = 0 if not written_in_time else 1 if policy == "skip" else queue_limit + 1
            found += _skipped(policy, event, before, called, least, written)
        if policy == "cancel_earlier":
            found += _after_a_later_one(event, ordered[place + 1 :], arrivals, slack_seconds)
    return found


def _beside_an_earlier_one(
    event: Event, before: Sequence[Event], called: Sequence[float], slack: float
) -> list[str]:
    if not called:
        return []
    began = min(called)
    return [
        f"{event['_id']} was called at {began:.3f}, while {each['_id']} was not finished"
        for each in before
        if _ended_at(each) > began + slack and each["created_at"].timestamp() < began
    ]


def _skipped(
    policy: str,
    event: Event,
    before: Sequence[Event],
    called: Sequence[float],
    least: int,
    written: Mapping[str, float],
) -> list[str]:
    found = [f"{event['_id']} was called, though skipped"] if called else []
    if policy not in ("skip", "queue"):
        return [*found, f"{event['_id']} was skipped, and its policy is {policy}"]
    # It was judged after that; how long it took until its own end was written does not matter.
    judged_after = max(_claims(event), default=_ended_at(event))
    unfinished = [
        each
        for each in before
        if max(_ended_at(each) + WRITTEN_SECONDS, written.get(each["_id"], 0.0)) > judged_after
    ]
    if len(unfinished) < least:
        found.append(f"{event['_id']} was skipped with {len(unfinished)} unfinished before it, not {least}")
    last = event["status"][-1]["message"]
    if not any(each["_id"] in last for each in before) or f"run_overlap is {policy}" not in last:
        found.append(f"{event['_id']} names neither an earlier event nor its policy: {last}")
    return found


def _after_a_later_one(
    event: Event, after: Sequence[Event], arrivals: Mapping[str, Sequence[float]], slack: float
) -> list[str]:
    """No attempt is claimed once a later event's request has been made; one that was claimed goes on."""
    begun = min((min(arrivals[each["_id"]]) for each in after if arrivals.get(each["_id"])), default=None)
    if begun is None or event["created_at"].timestamp() > begun:
        return []
    found = []
    claims = _claims(event)
    for arrived in arrivals.get(event["_id"], ()):
        claimed = max((each for each in claims if each <= arrived), default=0.0)
        if claimed > begun + slack:
            found.append(f"{event['_id']} was called at {arrived:.3f}, after a later one at {begun:.3f}")
    return found


def _claims(event: Event) -> list[float]:
    return [line["time"].timestamp() for line in event["status"] if line["message"].startswith("Claimed")]


def _ended_at(event: Event) -> float:
    ended = event.get("archived_at")
    return ended.timestamp() if isinstance(ended, datetime) else float("inf")

"""What was owed against events, attempts, and what the receiver saw."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.acceptance.chaos.findings import Findings
from tests.acceptance.chaos.histories import wrong_history
from tests.acceptance.chaos.owed import Owed
from tests.acceptance.chaos.silences import Silence, is_skipped, withheld_calls
from tests.overlaps import broken_promises

LIVING = ("ready_queue", "worker_queue", "running", "retrying")
#: The kind of events that people ask for, and what no request is made for, or no longer.
BACKFILL = "backfill"
UNSENT = ("cancelled", "expired", "skipped")
FINAL = ("completed", "error", "cancelled", "expired", "skipped")
#: How a line begins that tells of a claim whose worker did not say what became of the request.
UNREPORTED = ("Recovered", "Given back", "Set aside", "Withdrawn")
NORMAL_LAG_SECONDS = 1.0
#: Clocks of one machine agree; a request is early when it arrives before its millisecond.
EARLY_SECONDS = 0.002
#: By how much a worker's clock may be off while it is put back or ahead, where histories and arrivals are
#: compared.
SLACK_SECONDS = 0.8

Seen = tuple[float, str, str, str]


def audit(
    owed: Sequence[Owed],
    until: datetime,
    events: Sequence[Mapping[str, Any]],
    seen: Sequence[Seen],
    harmed: set[str],
    silences: Sequence[Silence] = (),
) -> Findings:
    """`events` are the documents of these schedules; `harmed` the workers whose requests may be repeated."""
    found = Findings(requests=len(seen))
    by_schedule: dict[str, dict[datetime, list[Mapping[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    planned = [event for event in events if event.get("kind") != BACKFILL]
    for event in planned:
        by_schedule[event["schedule_id"]][event["run_time"]].append(event)
    calls: dict[str, list[float]] = defaultdict(list)
    for arrived, key, _, _ in seen:
        calls[key].append(arrived)
    audit_backfilled(events, calls, harmed, found)
    for each in owed:
        mine = [silence for silence in silences if silence.is_of(each)]
        _audit_schedule(each, until, by_schedule[each.schedule_id], calls, harmed, mine, found)
    known = {event["_id"] for event in events}
    found.not_owed += [f"{key}: called, and no such event is there" for key in calls if key not in known]
    # A policy may make an occurrence wait.
    on_time = {each.schedule_id for each in owed if each.run_overlap == "allow"}
    found.last_late_at = max(
        _late([event for event in planned if event["schedule_id"] in on_time], calls), default=0.0
    )
    return found


def _audit_schedule(
    owed: Owed,
    until: datetime,
    events: Mapping[datetime, Sequence[Mapping[str, Any]]],
    calls: Mapping[str, Sequence[float]],
    harmed: set[str],
    silences: Sequence[Silence],
    found: Findings,
) -> None:
    sent = [
        (event["revision"], moment)
        for moment, several in events.items()
        for event in several
        if event["_id"] in calls
    ]
    if owed.run_overlap != "allow":
        every = [event for several in events.values() for event in several]
        found.overlaps += broken_promises(
            owed.run_overlap, every, calls, written_in_time=False, slack_seconds=SLACK_SECONDS
        )
    moments = owed.run_times(sent, until)
    found.occurrences += len(moments)
    events, recorded = _without_records(owed, moments, events, found)
    for moment in moments:
        there = [event for event in events.get(moment, ()) if not _is_withdrawn(event, owed)]
        withdrawn = [event for event in events.get(moment, ()) if _is_withdrawn(event, owed)]
        if len(there) > 1:
            found.repeated += [f"{event['_id']}: one of several events of an occurrence" for event in there]
        elif not there and moment in recorded:
            continue
        elif not there and not _withdrawal_is_right(owed, moment, withdrawn):
            found.lost.append(f"{owed.schedule_id} at {moment}: {_states(withdrawn) or 'no event'}; {owed}")
        for event in there:
            if is_skipped(event, silences):
                continue
            if event["state"] == "expired":
                _audit_expired(event, owed, moments, calls.get(event["_id"], ()), harmed, found)
            else:
                _audit_event(event, owed, calls.get(event["_id"], ()), harmed, found)
    for moment, several in events.items():
        for event in several:
            found.histories += wrong_history(event)
            called_at = min(calls.get(event["_id"], ()), default=None)
            if called_at is not None and called_at < moment.timestamp() - EARLY_SECONDS:
                found.early.append(f"{event['_id']}: called before its time")
            found.withheld += withheld_calls(event, calls.get(event["_id"], ()), silences)
            _audit_what_was_not_owed(event, owed, moment in moments, called_at, harmed, found)


def _audit_what_was_not_owed(
    event: Mapping[str, Any],
    owed: Owed,
    is_owed: bool,
    called_at: float | None,
    harmed: set[str],
    found: Findings,
) -> None:
    if _is_withdrawn(event, owed):
        # A call without a record, then a withdrawal: only a worker that was harmed leaves that behind.
        if called_at is not None and not _excused(event, harmed):
            found.not_owed.append(f"{event['_id']}: called, though cancelled")
    elif is_owed or (event["state"] == "expired" and called_at is None):
        return
    elif called_at is None and event["state"] in LIVING:
        # What an edit withdraws while MongoDB fails may stand until it is due, and is cancelled then.
        found.stuck.append(f"{event['_id']}: {event['state']}, though nothing was due then; {owed}")
    elif called_at is None or not (
        # What a killed worker may have sent stays owed, under its own key, whatever the edit says.
        owed.was_on_its_way(event["run_time"], called_at) or _excused(event, harmed)
    ):
        found.not_owed.append(
            f"{event['_id']}: {event['state']}, though nothing was due then, {called_at}; {owed}"
        )


def _audit_event(
    event: Mapping[str, Any], owed: Owed, calls: Sequence[float], harmed: set[str], found: Findings
) -> None:
    name, script = event["_id"], owed.script
    if event["state"] in LIVING:
        found.stuck.append(f"{name}: {event['state']}, {event['status'][-1]['message']}")
        return
    if _ended_by_policy(event, owed):
        return
    if event["state"] != script.state:
        found.lost.append(f"{name}: {event['state']}, {event['status'][-1]['message']}")
    if len(calls) < script.requests:
        found.lost.append(f"{name}: {len(calls)} requests of {script.requests} seen, {event['state']}")
    if len(calls) > script.requests:
        permitted = _excused(event, harmed) or _without_an_answer(event)
        (found.permitted if permitted else found.repeated).append(
            f"{name}: {len(calls)} requests instead of {script.requests}"
        )


def _audit_expired(
    event: Mapping[str, Any],
    owed: Owed,
    moments: set[datetime],
    calls: Sequence[float],
    harmed: set[str],
    found: Findings,
) -> None:
    """An event that was given up: only by the schedule's policy, and only after what it was tried for."""
    at = event["archived_at"]
    newest = not any(event["run_time"] < moment <= at for moment in moments)
    # A retry that would come too late is not waited for.
    in_vain = owed.lateness.expire_after is not None and event["attempt"] > 0
    if not in_vain and not owed.lateness.lets_expire(event["run_time"], at, newest=newest):
        found.lost.append(
            f"{event['_id']}: expired against {owed.lateness}: {event['status'][-1]['message']}"
        )
    reported_late = any(attempt.get("late") for attempt in event.get("attempts", ()))
    if calls and not (in_vain or reported_late or _excused(event, harmed)):
        found.not_owed.append(f"{event['_id']}: called, though expired")


def _without_records(
    owed: Owed,
    moments: set[datetime],
    events: Mapping[datetime, Sequence[Mapping[str, Any]]],
    found: Findings,
) -> tuple[Mapping[datetime, Sequence[Mapping[str, Any]]], set[datetime]]:
    """The events without the records of missed occurrences, and the occurrences that those tell of."""
    records = [event for several in events.values() for event in several if "missed" in event]
    if not records:
        return events, set()
    single = {
        moment: alone
        for moment, several in events.items()
        if (alone := [event for event in several if "missed" not in event])
    }
    recorded: set[datetime] = set()
    for record in records:
        told = record["missed"]
        covered = {moment for moment in moments if told["first"] <= moment <= told["last"]} - single.keys()
        if recorded & covered:
            found.repeated.append(f"{record['_id']}: tells of occurrences that another record tells of")
        if len(covered) != told["count"]:
            found.lost.append(f"{record['_id']}: tells of {told['count']}, and {len(covered)} have no event")
        at = record["created_at"]
        newest = max(moments, default=None)
        if not all(owed.lateness.lets_expire(each, at, newest=each == newest) for each in covered):
            found.lost.append(f"{record['_id']}: missed against {owed.lateness}")
        recorded |= covered
    return single, recorded


def audit_backfilled(
    events: Sequence[Mapping[str, Any]],
    calls: Mapping[str, Sequence[float]],
    harmed: set[str],
    found: Findings,
) -> None:
    """Backfilled events are nobody's occurrence to come: each is called once, or was withdrawn and is not;
    and no occurrence has two events that were sent."""
    sent = Counter(
        (event["schedule_id"], event["run_time"]) for event in events if event["state"] not in UNSENT
    )
    for event in events:
        if event.get("kind") != BACKFILL:
            continue
        found.histories += wrong_history(event)
        name, requests = event["_id"], len(calls.get(event["_id"], ()))
        if event["state"] in LIVING:
            found.stuck.append(f"{name}: {event['state']}, {event['status'][-1]['message']}")
        elif event["state"] in UNSENT:
            if requests and not _excused(event, harmed):
                found.not_owed.append(f"{name}: called, though {event['state']}")
        elif not requests:
            found.lost.append(f"{name}: {event['state']}, and no request was seen")
        elif requests > max(1, event["attempt"]) and not _excused(event, harmed):
            found.repeated.append(f"{name}: {requests} requests in {event['attempt']} attempts")
        if event["state"] not in UNSENT and sent[event["schedule_id"], event["run_time"]] > 1:
            found.repeated.append(f"{name}: one of several events of an occurrence")


def _ended_by_policy(event: Mapping[str, Any], owed: Owed) -> bool:
    """Whether the schedule's policy of overlapping runs has ended it; `broken_promises` says whether rightly
    so."""
    states = {"skip": "skipped", "queue": "skipped", "cancel_earlier": "cancelled"}
    said = event["status"][-1]["message"]
    return event["state"] == states.get(owed.run_overlap) and f"run_overlap is {owed.run_overlap}" in said


def _is_withdrawn(event: Mapping[str, Any], owed: Owed) -> bool:
    """Whether an edit or a deletion has cancelled it."""
    return event["state"] == "cancelled" and not _ended_by_policy(event, owed)


def _without_an_answer(event: Mapping[str, Any]) -> bool:
    """Whether a request ended without an answer in time."""
    return any(attempt.get("status_code") is None for attempt in event.get("attempts", ()))


def _excused(event: Mapping[str, Any], harmed: set[str]) -> bool:
    """Whether the history tells of a claim of a harmed worker that ended without its report. `harmed` names
    workers without their hosts, or with them where all have one name."""
    claimed_by = ""
    for line in event["status"]:
        message = line["message"]
        if message.startswith("Claimed by "):
            claimed_by = message.removeprefix("Claimed by ")
        elif harmed & {claimed_by, claimed_by.partition("@")[0]} and message.startswith(UNREPORTED):
            return True
    return False


def _withdrawal_is_right(owed: Owed, moment: datetime, withdrawn: Sequence[Mapping[str, Any]]) -> bool:
    """By the deletion, or before it by the cuts of older revisions, which say nothing of the last one."""
    if owed.deleted_at is None:
        return False
    # An expansion that was held up writes the time at which it began: the words tell who withdrew it.
    if any("deleted" in event["status"][-1]["message"] for event in withdrawn):
        return True
    last = owed.eras[-2].revision
    return owed.may_be_missing(moment) and all(event["revision"] < last for event in withdrawn)


def _states(events: Sequence[Mapping[str, Any]]) -> str:
    return ", ".join(f"{event['_id']} {event['status'][-1]['message']}" for event in events)


def _late(events: Sequence[Mapping[str, Any]], calls: Mapping[str, Sequence[float]]) -> Iterator[float]:
    """When first requests arrived that were later than normal."""
    for event in events:
        arrivals = calls.get(event["_id"])
        if arrivals and min(arrivals) > event["run_time"].timestamp() + NORMAL_LAG_SECONDS:
            yield min(arrivals)

"""What became of a run, in words: a sentence for whoever is asked about it, and a text for the customer."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from scheduler_app.api.json_types import View
from scheduler_app.api.pages.formatting import answer_said, duration, state_words, status_words
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.recurrence.zones import local_in
from scheduler_app.domain.states import Kind, State
from scheduler_app.store.events.events import EventRecord

#: A run that begins later than this after its time is late, for a customer.
ON_TIME_MS = 1_000.0
#: Later attempts whose times a text lists one by one.
MOST_TIMES = 5
#: Why nothing was sent, by the state in which a run without an attempt is.
_UNSENT = {
    State.CANCELLED: "It was cancelled before it began, so we sent nothing.",
    State.EXPIRED: "It was too late when it could begin, so we sent nothing.",
    State.SKIPPED: "It was left out by the rules of its schedule, so we sent nothing.",
    State.ERROR: "It could not be sent.",
}
_NOT_YET = "Nothing has been sent yet."


def verdict_of(found: EventRecord) -> str:
    """What became of the run, in words for whoever is asked about it."""
    last = found.attempts[-1] if found.attempts else {}
    times = f" at attempt {len(found.attempts)}" if len(found.attempts) > 1 else ""
    if found.state is State.COMPLETED:
        return f"Done{times}"
    said = answered(last)
    if found.state is State.ERROR:
        return f"Failed: {said}" if said else "Failed"
    if found.state is State.RETRYING:
        return f"Will be tried again: {said}" if said else "Will be tried again"
    return state_words(found.state.value)


def answered(attempt: Mapping[str, Any]) -> str:
    """`answered 503 Service Unavailable`, `timed out: no answer within 10 s`."""
    status = status_words(attempt.get("status_code"))
    return f"answered {status}" if status else str(attempt.get("error") or "")


def text_for_customer(found: EventRecord, request: View, name: str, zone: str, now: datetime) -> list[str]:
    """Paragraphs that a person may send to the customer of a run: what was called and when, what came back,
    and the reference by which both sides find it. `request` is what the API shows of it; of the web address
    only the part before the query is told, and no destination's name, which is a word of ours."""
    starts = [each["started_at"] for each in found.attempts if each.get("started_at")]
    due, sent = local_in(found.run_time, zone), [local_in(each, zone) for each in starts]
    when = f"On {_day(due, now)} at {due:%H:%M} ({zone})"
    url = urlsplit(str(request.get("callback_url") or ""))
    receiver = f"{url.scheme}://{url.netloc}{url.path}" if url.netloc else "your server"
    what = f" for “{name}”" if name else ""
    reference = f"Reference: {name_of(found.id)}"
    if not found.attempts:
        kind = "a message" if found.kind is Kind.MESSAGE else "a call"
        return [f"{when} {kind}{what} was due. {_UNSENT.get(found.state, _NOT_YET)}", reference]
    lag = found.attempts[0].get("lag_ms")
    late = ""
    if isinstance(lag, int | float):
        late = ", on time" if lag < ON_TIME_MS else f", {duration(lag)} late"
    told = [f"{when} we called {receiver}{what}{late}.", " ".join(_results(found, sent, due))]
    if found.state is State.RETRYING and found.due_at:
        told.append(f"We will try again at {_time(local_in(found.due_at, zone), due)}.")
    return [*filter(None, told), reference]


def _results(found: EventRecord, sent: Sequence[datetime], due: datetime) -> list[str]:
    attempts = found.attempts
    if len(attempts) == 1:
        return [f"Your server {_result(attempts[0])}."]
    again = [_time(each, due) for each in sent[1:]]
    times = f"{len(attempts) - 1} times"
    if again:
        is_short = len(again) <= MOST_TIMES
        times = f"at {_listed(again)}" if is_short else f"{times}, the last time at {again[-1]}"
    outcome = "; the last time it " + _result(attempts[-1])
    if len({answer_said(each) for each in attempts}) == 1:
        outcome = ", with the same result"
    return [f"Your server {_result(attempts[0])}.", f"We tried again {times}{outcome}."]


def _result(attempt: Mapping[str, Any]) -> str:
    """Of one attempt: `answered 200 OK after 4.9 s`."""
    took, error = attempt.get("duration_ms"), attempt.get("error")
    if status := status_words(attempt.get("status_code")):
        return f"answered {status}" + (f" after {duration(took)}" if isinstance(took, int | float) else "")
    return f"gave no answer ({error})" if error else "has not answered yet"


def _day(moment: datetime, now: datetime) -> str:
    year = f" {moment.year}" if moment.year != now.year else ""
    return f"{moment:%A} {moment.day} {moment:%B}{year}"


def _time(moment: datetime, due: datetime) -> str:
    """With its day where that is not the day on which the run was due."""
    if moment.date() == due.date():
        return f"{moment:%H:%M:%S}"
    return f"{moment:%H:%M:%S} on {moment:%A} {moment.day} {moment:%B}"


def _listed(times: Sequence[str]) -> str:
    return times[0] if len(times) == 1 else f"{', '.join(times[:-1])} and {times[-1]}"

"""The fields of a schedule in words for people: their labels, the words of their values, and what is folded
away in one line.

The form and the page of a schedule say the same. A field without words here is shown by its name.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from scheduler_app.domain.lateness import MAX_SECONDS
from scheduler_app.domain.retry import MAX_RETRIES, RetryPolicy

Texts = Mapping[str, str]

LABELS = {
    "purpose": "What it is for",
    "catch_up": "Times that were missed, say in an outage",
    "catch_up_window_seconds": "The newest of them still runs when late by, in seconds, at most",
    "late_after_seconds": "A time is missed when late by more than, in seconds",
    "expire_after_seconds": "Give a run up after, in seconds",
    "run_overlap": "If the run before still lasts",
    "overlap_scope": "The run before lasts",
    "queue_limit": "Runs that may wait, at most",
    "max_retries": "Tries after the first one",
    "retry_backoff_seconds": "Wait before the second try, in seconds",
    "retry_backoff_max_seconds": "Longest wait between two tries, in seconds",
    "retry_codes": "Answers after which it tries again",
    "success_codes": "Answers that mean done",
    "pause_after_failures": "Pause the schedule after failed runs in a row",
    "on_success": "After a run that is done, tell",
    "on_failure": "After the last try, tell",
    "timeout_seconds": "Longest wait for the answer, in seconds",
    "completion": "A run is done",
    "completion_timeout_seconds": "Longest wait for that report, in seconds",
    "jitter_seconds": "Spread the start over, in seconds",
    "queue": "Workers that send it",
    "expect_max_runtime_seconds": "A run lasts at most, in seconds",
    "expect_completes_within_seconds": "A run is done after its time within, in seconds",
    "expect_success_within_seconds": "A run is done at least once in, in seconds",
    "gap": "A time that a clock change leaves out",
    "overlap": "A time that a clock change repeats",
    "on_holiday": "On a closed day",
}

#: What a form or a change names besides.
_OTHER_LABELS = {
    "when": "When",
    "phrase": "When",
    "rrule": "Rule",
    "url": "Web address",
    "callback_url": "Web address",
    "timezone": "Zone",
    "calendar": "Closed days",
    "body": "Body",
    "json": "Body",
    "body_base64": "Body",
    "rate_per_second": "Calls that begin in a second, at most",
    "burst": "Calls that begin at once after a quiet time, at most",
    "concurrency": "Calls that are open at once, at most",
    "allowed_methods": "Methods that schedules may choose",
    "signing": "Sign each call",
    "new_destination_name": "Name of the new destination",
    "new_destination_url": "Web address of the new destination",
}

_YES_NO = {"true": "yes", "false": "no"}

CHOICES = {
    "catch_up": {
        "all": "all run, however late",
        "latest": "the newest one alone runs",
        "none": "are left out",
    },
    "run_overlap": {
        "allow": "run beside it",
        "skip": "leave the new one out",
        "queue": "wait for it",
        "cancel_earlier": "run, and give up trying the one before",
    },
    "overlap_scope": {
        "event": "until its last try has ended",
        "attempt": "only while a request is open",
    },
    "completion": {
        "response": "when the receiver has answered",
        "callback": "when the receiver reports it, later",
    },
    "gap": {"shift": "runs later by as much", "skip": "does not run"},
    "overlap": {"first": "runs the first time", "last": "runs the second time"},
    "on_holiday": {
        "skip": "it does not run",
        "next": "it runs on the next open day",
        "previous": "it runs on the open day before",
        "uncounted": "the day is not counted",
    },
}


@dataclass(frozen=True, slots=True)
class Fold:
    """A part of the form that is folded away: its title, its fields, and one line that says what is set."""

    key: str
    title: str
    fields: tuple[str, ...]
    summary: Callable[[Texts], str]


def label_of(name: str) -> str:
    """What a form calls a field."""
    return LABELS.get(name) or _OTHER_LABELS.get(name) or name.replace("_", " ").capitalize()


def choice_words(name: str, value: str) -> str:
    """What a form calls one of the values of a field."""
    return CHOICES.get(name, {}).get(value) or _YES_NO.get(value) or value.replace("_", " ")


def lasting(seconds: float) -> str:
    """`10 s`, `2½ hours`, `3 days`: to halves of the largest unit that fits, as people say it."""
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            halves = round(seconds / size * 2)
            number = f"{halves // 2}{'½' if halves % 2 else ''}"
            return f"{number} {unit}{'' if halves == 2 else 's'}"
    return f"{seconds:g} s"


def late_words(texts: Texts) -> str:
    """What becomes of a time that was missed."""
    said = {
        "all": "runs every missed time",
        "latest": "runs the newest missed time",
        "none": "leaves missed times out",
    }.get(texts.get("catch_up", ""), "")
    if texts.get("catch_up") == "latest":
        said += f", at most {_seconds(texts, 'catch_up_window_seconds')} late"
    if texts.get("expire_after_seconds"):
        said += f"; gives a run up after {_seconds(texts, 'expire_after_seconds')}"
    return said


def overlap_words(texts: Texts) -> str:
    """What a run does while the one before still lasts."""
    return {
        "allow": "runs beside the one before",
        "skip": "skips when the one before still runs",
        "queue": f"waits for the one before, {texts.get('queue_limit', '')} at most",
        "cancel_earlier": "runs, and gives up trying the one before",
    }.get(texts.get("run_overlap", ""), "")


def retry_words(texts: Texts) -> str:
    """How often it tries, and how long that takes at most."""
    retries = min(int(_number(texts, "max_retries")), MAX_RETRIES)
    if not retries:
        said = "one try"
    else:
        policy = RetryPolicy(
            retries, _number(texts, "retry_backoff_seconds"), _number(texts, "retry_backoff_max_seconds")
        )
        longest = sum(policy.ceiling(attempt) for attempt in range(1, retries + 1))
        times = "once" if retries == 1 else f"{retries} times"
        said = f"tries again {times} over {lasting(longest)}"
    if texts.get("pause_after_failures"):
        said += f"; pauses itself after {texts['pause_after_failures']} failed runs"
    return said


def told_words(texts: Texts) -> str:
    """Who is told of the end of a run, besides the page of failures."""
    told = [
        f"{texts[name]} {when}"
        for name, when in (("on_failure", "when it fails"), ("on_success", "when it is done"))
        if texts.get(name)
    ]
    return "tells " + ", ".join(told) if told else "nobody by itself; failures are listed in any case"


def expected_words(texts: Texts) -> str:
    """What its runs are like while all is well; somebody is told where they are not."""
    said = [
        f"{words} {_seconds(texts, name)}"
        for name, words in (
            ("expect_max_runtime_seconds", "lasts at most"),
            ("expect_completes_within_seconds", "is done within"),
            ("expect_success_within_seconds", "succeeds once in"),
        )
        if texts.get(name)
    ]
    return ", ".join(said) or "nothing in particular"


def answer_words(texts: Texts) -> str:
    """How long an answer may take, and what of it means done."""
    said = f"answers within {_seconds(texts, 'timeout_seconds')}"
    if texts.get("completion") == "callback":
        said += f", reports within {_seconds(texts, 'completion_timeout_seconds')}"
    return said


def start_words(texts: Texts) -> str:
    """When exactly it starts, and who sends it."""
    spread = _number(texts, "jitter_seconds")
    said = f"starts up to {lasting(spread)} later" if spread else "starts at the exact time"
    queue = texts.get("queue", "")
    return said if queue in ("", "callbacks", "commands") else f"{said}, by the workers “{queue}”"


def clock_words(texts: Texts) -> str:
    """What a clock change or a closed day does to a time."""
    said = [
        f"a {kind} time {choice_words(name, texts[name])}"
        for name, kind in (("gap", "left-out"), ("overlap", "repeated"))
        if texts.get(name)
    ]
    return ", ".join(said)


def request_words(texts: Texts) -> str:
    """What is sent: `POST, a body of 41 characters, 2 headers`."""
    body, headers = texts.get("body", ""), [line for line in texts.get("headers", "").splitlines() if line]
    said = [texts.get("method") or ("POST" if body else "GET")]
    if body:
        said.append(f"a body of {len(body):,} characters")
    if headers:
        said.append(f"{len(headers)} header{'s' if len(headers) > 1 else ''}")
    return ", ".join(said)


FOLDS = (
    Fold(
        "late",
        "Late and overlapping",
        (
            *("catch_up", "catch_up_window_seconds", "late_after_seconds", "expire_after_seconds"),
            *("run_overlap", "overlap_scope", "queue_limit"),
        ),
        lambda texts: f"{late_words(texts)}; {overlap_words(texts)}",
    ),
    Fold(
        "failing",
        "Failing",
        (
            *("max_retries", "retry_backoff_seconds", "retry_backoff_max_seconds"),
            *("retry_codes", "success_codes", "pause_after_failures"),
        ),
        retry_words,
    ),
    Fold(
        "expected",
        "What is expected",
        (
            *("expect_max_runtime_seconds", "expect_completes_within_seconds"),
            "expect_success_within_seconds",
        ),
        expected_words,
    ),
    Fold("told", "Who is told", ("on_failure", "on_success"), told_words),
    Fold(
        "answer",
        "The answer",
        ("timeout_seconds", "completion", "completion_timeout_seconds"),
        answer_words,
    ),
    Fold("clock", "Clock changes and closed days", ("gap", "overlap", "on_holiday"), clock_words),
    Fold("start", "Start", ("jitter_seconds", "queue"), start_words),
)


def _seconds(texts: Texts, name: str) -> str:
    return lasting(_number(texts, name))


def _number(texts: Texts, name: str) -> float:
    """A text that is no number of this field is refused by the form, and says nothing here."""
    try:
        found = float(texts.get(name) or 0)
    except ValueError:
        return 0.0
    return found if 0 <= found <= MAX_SECONDS else 0.0

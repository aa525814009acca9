"""What a notification says to people, by mail and by services: what failed, who is affected, since when, and
what to do about it.

Names and errors come from others: each is one line here, and of a bounded length.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from scheduler_app.domain.cause import FACTS, Cause, CauseKind, Touched
from scheduler_app.domain.http_action import destination_of_key
from scheduler_app.domain.ids import name_of
from scheduler_app.domain.masking import one_line
from scheduler_app.domain.notification_rule import END, MOST_NAMED, failure_page, sentence

MAX_LINE = 300


class NoticeText(NamedTuple):
    subject: str
    text: str


def notice_text(
    rule_name: str, change: str, causes: Sequence[Cause], more: int, public_url: str
) -> NoticeText:
    """Of a change of the first cause; the others share the message, and `more` is how many there are beside
    the first, named or not. `public_url` begins the links; without it there are commands alone."""
    first, *others = causes
    said = _line(sentence(change, first))
    headline = said[:1].upper() + said[1:] + (f", and {more} more" if more else "")
    lines = [headline, "", *_facts(first)]
    if others:
        lines += [
            "",
            "The same notification is about:",
            *(f"- {_line(sentence(change, each))}" for each in others),
        ]
        if more > len(others):
            lines.append(f"- and {more - len(others)} more")
    lines += ["", *_deeds(first, change, public_url)]
    return NoticeText(headline, "\n".join([*lines, "", *_footer(rule_name)]))


def trial_text(rule_name: str, public_url: str) -> NoticeText:
    """What a person asks for, to see that it arrives."""
    headline = f"A test of the notification {rule_name}"
    lines = [headline, "", "It arrives: failures that this notification is about will be told here."]
    if public_url:
        lines += ["", f"What fails now: {public_url}/"]
    return NoticeText(headline, "\n".join([*lines, "", *_footer(rule_name)]))


def _facts(cause: Cause) -> list[str]:
    facts = {
        "Since": _time(cause.since),
        "Last failure": _time(cause.last),
        "Over": _time(cause.over_at) if cause.over_at else "",
        "Schedules": _named(cause.schedules),
        "Tags": ", ".join(map(_line, cause.tags.names[:MOST_NAMED])),
        "Events": _events(cause),
        "Sent again": f"{cause.resent} dead letters" if cause.resent else "",
        "Last error": _line(cause.error),
    }
    return [f"{name}: {value}" for name, value in facts.items() if value]


def _events(cause: Cause) -> str:
    if cause.key.kind is not CauseKind.FAILING or not cause.failed:
        return ""
    return f"{cause.failed} failed, {cause.gave_up or 'none'} of them for good"


def _deeds(cause: Cause, change: str, public_url: str) -> list[str]:
    own_id = name_of(cause.id)
    kind, page = cause.key.kind, failure_page(cause, public_url)
    if kind in FACTS:
        return [f"See it: {page}"] if public_url else []
    deeds = [(f"See what failed, and since when: {page}", f"scheduler failures show {own_id}")]
    if kind in (CauseKind.MACHINERY, CauseKind.UNSERVED):
        deeds.append((f"See which processes are there: {public_url}/processes", "scheduler doctor"))
    if cause.gave_up:
        again = f"scheduler failures resend {own_id} --rate 5"
        deeds.append((f"Send again what gave up, all at a rate: {page}#again", again))
    if change != END:
        if kind is CauseKind.FAILING:
            deeds.append((f"Stop what calls it: {public_url}/stops", "scheduler kill-switch on --help"))
        if chosen := _chosen(cause):
            silence = f"scheduler silence set {own_id} --for 2h --reason known {chosen}"
            deeds.append((f"Tell nobody of it for two hours: {page}", silence))
    pages = ["What you can do:", *(f"- {page}" for page, _ in deeds), ""] if public_url else []
    return [*pages, "In a terminal:", *(f"  {command}" for _, command in deeds)]


def _chosen(cause: Cause) -> str:
    """The option by which a silence is about the cause; none where only a silence of everything would be."""
    destination = destination_of_key(cause.key.subject)
    if destination is not None:
        return f"--destination {name_of(destination)}"
    return next((f"--schedule {name_of(each)}" for each in cause.schedules.names), "")


def _footer(rule_name: str) -> list[str]:
    return [
        "-- ",
        f"Sent by the notification {rule_name} of RRule Scheduler, once for a failure and once for its end.",
    ]


def _named(touched: Touched) -> str:
    names = [_line(name_of(each)) for each in touched.names[:MOST_NAMED]]
    more = touched.count - len(names)
    return ", ".join(names) + (f", and {more} more" if more > 0 else "")


def _line(text: str) -> str:
    return one_line(text)[:MAX_LINE]


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%a %d %b %Y %H:%M:%S UTC")

"""Whether what our grammar makes of a phrase is what a table expects."""

import itertools
from datetime import UTC, datetime, timedelta

from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.triggers import NotUnderstood, Translation, TriggerContext
from scheduler_app.domain.triggers.phrase.translation import translate
from tests.unit.triggers.phrase.expected import SAID_AT, SHOWN, Row, occurrences

SAID = SAID_AT.replace(tzinfo=UTC)
END = datetime(9000, 1, 1, tzinfo=UTC)
RIGHT, WRONG, REFUSED = "right", "wrong", "refused"


def times_of(meaning: Translation) -> list[datetime]:
    """The first occurrences after the phrase was said, as local times."""
    if meaning.instant is not None:
        return [meaning.instant.replace(tzinfo=None)]
    assert meaning.recurrence is not None
    recurrence = Recurrence.parse(meaning.recurrence, created_at=SAID, timezone="UTC")
    found = recurrence.between(SAID + timedelta(microseconds=1), END, limit=SHOWN)
    return [instant.replace(tzinfo=None) for instant in found]


def judge(row: Row) -> tuple[str, str]:
    """ "right", "wrong" or "refused", and what the grammar said."""
    try:
        meaning = translate(row.phrase, TriggerContext(SAID))
    except NotUnderstood as refusal:
        return _judge_refusal(row, refusal)
    shown = meaning.recurrence or str(meaning.instant)
    if row.kind in ("no", "unclear"):
        return WRONG, shown
    found = times_of(meaning)
    if row.kind == "every":
        step = timedelta(seconds=int(row.answers[0].split()[1]))
        steady = len(found) == SHOWN and all(b - a == step for a, b in itertools.pairwise(found))
        return (RIGHT if steady and found[0] - SAID_AT <= step else WRONG), shown
    for answer in row.answers:
        wanted = occurrences(answer)
        if len(wanted) == len(found) and all(
            abs(a - b) <= row.within for a, b in zip(wanted, found, strict=True)
        ):
            return RIGHT, shown
    return WRONG, f"{shown}\n  found {found[:4]}\n  wanted {occurrences(row.answers[0])[:4]}"


def _judge_refusal(row: Row, refusal: NotUnderstood) -> tuple[str, str]:
    readings = [times_of(reading) for reading in refusal.readings]
    shown = f"{refusal.message} {refusal.not_understood} {refusal.readings}"
    if row.kind == "no":
        return (RIGHT if set(row.answers) <= set(refusal.not_understood) else WRONG), shown
    if row.kind == "unclear":
        wanted = [occurrences(answer) for answer in row.answers]
        return (RIGHT if all(one in readings for one in wanted) else WRONG), shown
    return (RIGHT if row.may_refuse else REFUSED), shown

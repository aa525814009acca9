"""What every trigger kind must do. The kinds are those of the registry."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any

import bson
import pytest
from bson.codec_options import CodecOptions

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.recurrence import zone_data_version
from scheduler_app.domain.resource_fields import Moment, Whole
from scheduler_app.domain.triggers import (
    FIELDS,
    KINDS,
    Trigger,
    TriggerKind,
    Value,
    check_value,
    edited_trigger,
    new_trigger,
)
from scheduler_app.store.schedules.trigger_documents import read_trigger, trigger_document
from tests.conformance.trigger.samples import AT, SAMPLES, Refusal, context

ZURICH = "Europe/Zurich"
DAY = timedelta(days=1)
#: Spans that hold the start, the clock changes of 2026 and of 2031, and the far end of the calendar.
SPANS = (
    (AT, AT + DAY / 2),
    (AT + 3 * DAY, AT + 20 * DAY),
    (datetime(2026, 3, 28, 20, tzinfo=UTC), datetime(2026, 3, 29, 6, tzinfo=UTC)),
    (datetime(2031, 3, 30, tzinfo=UTC), datetime(2031, 3, 30, 6, tzinfo=UTC)),
    (datetime(2031, 4, 1, tzinfo=UTC), datetime(2031, 6, 1, tzinfo=UTC)),
    (datetime(9000, 1, 1, tzinfo=UTC), datetime(9000, 1, 3, tzinfo=UTC)),
)
LIMIT = 50
KIND_NAMES = [kind.name for kind in KINDS]

Given = dict[str, Value]


def samples(kind: TriggerKind) -> list[Given]:
    if kind.name not in SAMPLES:
        pytest.fail(f"{kind.name} has no row in tests/conformance/trigger/samples.py")
    return [dict(given) for given in SAMPLES[kind.name].written]


def made(given: Given, timezone: str = ZURICH, at: datetime = AT, *, active: bool = True) -> Trigger:
    return new_trigger(given, context(timezone, at, active=active))


def stored(trigger: Trigger) -> Trigger:
    """The trigger that another process reads, after MongoDB's own encoding."""
    document = {key: value for key, value in trigger_document(trigger).items() if value is not None}
    options: CodecOptions[Mapping[str, Any]] = CodecOptions(tz_aware=True, tzinfo=UTC)
    return read_trigger(bson.decode(bson.encode(document), options))


def fires(trigger: Trigger, created_at: datetime = AT, after: datetime = AT) -> list[list[datetime]]:
    """Its occurrences in each span, from `after` on."""
    recurrence = trigger.recurrence(created_at)
    return [recurrence.between(max(start, after), end, limit=LIMIT) for start, end in SPANS if end > after]


def every(kinds: tuple[TriggerKind, ...] = KINDS) -> list[Any]:
    """Every sample of every kind; a kind without one fails by its own test."""
    return [
        pytest.param(kind, dict(given), id=f"{kind.name}-{number}")
        for kind in kinds
        for number, given in enumerate(SAMPLES[kind.name].written if kind.name in SAMPLES else ())
    ]


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_every_kind_has_samples_and_refusals(kind: TriggerKind) -> None:
    assert samples(kind)
    assert SAMPLES[kind.name].refused


def test_there_are_no_samples_of_a_kind_that_is_gone() -> None:
    assert sorted(SAMPLES) == sorted(KIND_NAMES)


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_the_fields_are_described_and_their_examples_are_valid(kind: TriggerKind) -> None:
    for field in kind.fields:
        assert FIELDS[field.name] is field, "a field that kinds share is one object"
        assert field.meaning[0].isupper()
        assert not field.meaning.endswith(".")
        example = field.example
        if isinstance(field.type, Moment):
            assert isinstance(example, str)
            example = datetime.fromisoformat(example)
        check_value(field, example)


@pytest.mark.parametrize(("kind", "given"), every())
def test_a_sample_is_read_as_its_own_kind(kind: TriggerKind, given: Given) -> None:
    trigger = made(given)
    assert trigger.kind is kind
    assert trigger.written == given
    assert (trigger.timezone, trigger.gap, trigger.overlap) == (ZURICH, "shift", "first")
    assert trigger.pinned is None or trigger.instant is None


@pytest.mark.parametrize(("kind", "given"), every())
def test_storing_keeps_all_of_it(kind: TriggerKind, given: Given) -> None:
    trigger = made(given)
    again = stored(trigger)
    assert again == trigger
    assert again.warnings == trigger.warnings
    assert stored(again) == again
    assert fires(again) == fires(trigger)


@pytest.mark.parametrize(("kind", "given"), every())
def test_a_process_of_the_release_before_delivers_it_too(kind: TriggerKind, given: Given) -> None:
    """That release reads `run_at` or `pinned`, and calls a document with neither corrupt."""
    document = trigger_document(made(given))
    assert (document["run_at"] is None) != (document["pinned"] is None)


@pytest.mark.parametrize(("kind", "given"), every())
def test_what_is_pinned_gives_the_same_occurrences_for_ever(kind: TriggerKind, given: Given) -> None:
    trigger = made(given)
    for read_at in (AT - timedelta(microseconds=1), AT + DAY, AT + 400 * DAY):
        assert fires(trigger, read_at) == fires(trigger)


@pytest.mark.parametrize(("kind", "given"), every())
def test_given_again_it_changes_nothing(kind: TriggerKind, given: Given) -> None:
    trigger = stored(made(given))
    later = context(ZURICH, AT + DAY)
    assert edited_trigger({}, trigger, later, AT) is trigger
    assert edited_trigger(given, trigger, later, AT) is trigger
    assert edited_trigger(trigger.portable(AT), trigger, later, AT) is trigger


@pytest.mark.parametrize(("kind", "given"), every())
def test_another_timezone_is_a_change_only_where_it_matters(kind: TriggerKind, given: Given) -> None:
    trigger = made(given)
    moved = edited_trigger({}, trigger, context("Asia/Kolkata", AT + DAY / 4), AT)
    assert moved.timezone == "Asia/Kolkata"
    if not kind.uses_timezone(given):
        assert fires(moved) == fires(trigger)


@pytest.mark.parametrize(("kind", "given"), every())
def test_what_is_exported_fires_at_the_same_instants_wherever_it_is_taken(
    kind: TriggerKind, given: Given
) -> None:
    trigger = stored(made(given))
    later = AT + 3 * DAY + timedelta(seconds=1_234, milliseconds=421)
    taken = made(dict(trigger.portable(AT)), at=later, active=False)
    assert fires(taken, later, later) == fires(trigger, after=later)


def refusals() -> list[Any]:
    return [
        pytest.param(each, id=f"{name}-{number}")
        for name, of in SAMPLES.items()
        for number, each in enumerate(of.refused)
    ]


@pytest.mark.parametrize("refusal", refusals())
def test_a_refusal_names_the_field_and_the_remedy(refusal: Refusal) -> None:
    with pytest.raises(InvalidField) as refused:
        new_trigger(refusal.given, context(ZURICH))
    assert refused.value.field == refusal.field
    assert refusal.remedy in refused.value.message


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_a_value_of_another_type_is_refused(kind: TriggerKind) -> None:
    for field in kind.fields:
        wrong: Value = 1.5 if not isinstance(field.type, Whole) else "1"  # type: ignore[assignment]
        with pytest.raises(InvalidField) as refused:
            new_trigger({**samples(kind)[0], field.name: wrong}, context())
        assert refused.value.field == field.name


@pytest.mark.parametrize(("kind", "given"), every())
def test_an_unknown_timezone_is_refused_under_its_own_name(kind: TriggerKind, given: Given) -> None:
    with pytest.raises(InvalidField) as refused:
        made(given, "Mars/Phobos")
    assert refused.value.field == "timezone"


@pytest.mark.parametrize(("kind", "given"), every())
def test_the_next_occurrence_is_found_in_bounded_steps_from_anywhere(kind: TriggerKind, given: Given) -> None:
    """The recurrence counts its steps, and raises beyond its budget."""
    recurrence = made(given).recurrence(AT)
    for years in (0, 1, 50, 400, 7_900):
        instant = AT + timedelta(days=365.25 * years)
        following = recurrence.after(instant)
        assert following is None or following > instant


@pytest.mark.parametrize(("kind", "given"), every())
def test_a_preview_shows_what_expansion_makes(kind: TriggerKind, given: Given) -> None:
    recurrence = made(given).recurrence(AT)
    for start, end in SPANS:
        between = recurrence.between(start, end, limit=LIMIT)
        assert [each.instant for each in recurrence.occurrences(start, end, limit=LIMIT)] == between
        filled, following = recurrence.between_and_next(start, end, LIMIT)
        assert filled == between
        assert following == recurrence.after(between[-1] if between else start - timedelta(milliseconds=1))


@pytest.mark.parametrize(("kind", "given"), every())
def test_it_is_described(kind: TriggerKind, given: Given) -> None:
    assert made(given).recurrence(AT).description


@pytest.mark.parametrize(("kind", "given"), every())
def test_the_version_of_the_zone_data_is_noted_where_a_zone_has_a_say(
    kind: TriggerKind, given: Given
) -> None:
    trigger = made(given)
    if trigger.pinned is not None and "TZID" in trigger.pinned:
        assert trigger.zone_data() == zone_data_version()
    elif not kind.uses_timezone(given):
        assert trigger.zone_data() is None


@pytest.mark.parametrize(("old", "new"), list(permutations(KINDS, 2)), ids=lambda kind: kind.name)
def test_a_kind_displaces_another(old: TriggerKind, new: TriggerKind) -> None:
    before, given = made(samples(old)[0]), samples(new)[-1]
    for also in ({}, {old.name: None}):
        after = edited_trigger({**given, **also}, before, context(ZURICH), AT)
        assert (after.kind, after.written) == (new, given)
    with pytest.raises(InvalidField, match="exactly one of") as refused:
        edited_trigger({**samples(old)[0], **given}, before, context(ZURICH), AT)
    assert all(name in refused.value.message for name in KIND_NAMES)


@pytest.mark.parametrize("kind", KINDS, ids=KIND_NAMES)
def test_a_trigger_cannot_be_taken_away_without_another(kind: TriggerKind) -> None:
    with pytest.raises(InvalidField, match="exactly one of"):
        edited_trigger({kind.name: None}, made(samples(kind)[0]), context(ZURICH), AT)
    with pytest.raises(InvalidField, match="exactly one of"):
        new_trigger({kind.name: None}, context())

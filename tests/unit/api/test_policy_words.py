"""What is set of a schedule, in one line for each part of its form."""

import pytest

from scheduler_app.api.pages import forms
from scheduler_app.api.pages.policy_words import CHOICES, FOLDS, LABELS, Fold, lasting
from scheduler_app.api.pages.schedule_form import POLICIES

FOLD = {each.key: each for each in FOLDS}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (10, "10 s"),
        (0.5, "0.5 s"),
        (60, "1 minute"),
        (90, "1½ minutes"),
        (8_710, "2½ hours"),
        (3_600, "1 hour"),
        (172_800, "2 days"),
    ],
)
def test_a_length_of_time_is_said_to_halves_of_its_unit(seconds: float, words: str) -> None:
    assert lasting(seconds) == words


@pytest.mark.parametrize(
    ("fold", "texts", "words"),
    [
        (
            "failing",
            {"max_retries": "10", "retry_backoff_seconds": "10", "retry_backoff_max_seconds": "3600"},
            "tries again 10 times over 2½ hours",
        ),
        ("failing", {"max_retries": "0"}, "one try"),
        (
            "failing",
            {"max_retries": "0", "pause_after_failures": "3"},
            "one try; pauses itself after 3 failed runs",
        ),
        (
            "late",
            {"catch_up": "latest", "catch_up_window_seconds": "7200", "run_overlap": "skip"},
            "runs the newest missed time, at most 2 hours late; skips when the one before still runs",
        ),
        ("told", {}, "nobody by itself; failures are listed in any case"),
        ("told", {"on_failure": "ops-chat"}, "tells ops-chat when it fails"),
        ("answer", {"timeout_seconds": "30"}, "answers within 30 s"),
        ("start", {"jitter_seconds": "0", "queue": "callbacks"}, "starts at the exact time"),
        (
            "start",
            {"jitter_seconds": "120", "queue": "eu"},
            "starts up to 2 minutes later, by the workers “eu”",
        ),
    ],
)
def test_what_is_folded_away_is_said_in_one_line(fold: str, texts: dict[str, str], words: str) -> None:
    assert FOLD[fold].summary(texts) == words


@pytest.mark.parametrize("wrong", ["many", "1e400", "nan", "-5", "999999999999"])
@pytest.mark.parametrize("fold", FOLDS, ids=lambda each: each.key)
def test_a_line_can_be_made_of_whatever_was_typed(fold: Fold, wrong: str) -> None:
    assert isinstance(fold.summary(dict.fromkeys(POLICIES, wrong)), str)


def test_each_field_of_a_form_has_words_and_one_place_and_each_of_its_values_too() -> None:
    placed = [name for fold in FOLDS for name in fold.fields]
    assert sorted([*placed, "purpose"]) == sorted(POLICIES)
    assert POLICIES.keys() == LABELS.keys()
    told = {name: set(forms.choices(field)) for name, field in POLICIES.items() if forms.choices(field)}
    assert told == {name: set(words) for name, words in CHOICES.items()}

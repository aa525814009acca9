"""Durations, and words of the API, as the pages show them."""

import pytest

from scheduler_app.api.pages.formatting import duration, form_words


def test_a_duration_has_the_unit_that_suits_it() -> None:
    assert (duration(12.4), duration(1_540)) == ("12 ms", "1.5 s")
    assert (duration(600_000), duration(9_000_000)) == ("10 min", "2.5 h")


@pytest.mark.parametrize(
    ("api", "form"),
    [
        ("With `catch_up` `latest`: how late", "With catch up “latest”: how late"),
        ("where `run_overlap` is `queue`", "where run overlap is “queue”"),
        ("`callbacks`; of a command `commands`", "“callbacks”; of a command “commands”"),
        ("`latest`", "latest"),
        ("is given up; null for never", "is given up; empty for never"),
        ("of the answer. A null takes it away", "of the answer. Empty: nobody is told"),
        ('numbers, `"5xx"`, `"500-504"`', "numbers, “5xx”, “500-504”"),
        ('[408, 425, "5xx"]', "408, 425, 5xx"),
        ('`[408, 425, "5xx"]`', "408, 425, 5xx"),
    ],
)
def test_a_form_names_fields_by_their_labels_and_says_no_json(api: str, form: str) -> None:
    assert form_words(api) == form

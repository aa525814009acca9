"""Numbers with a unit in the README and the manual are those of the code: numbers.toml has their sentences,
with the names of the constants. A number that is in none fails. What was measured is in figures.md."""

import re
import tomllib
from datetime import timedelta
from importlib import import_module
from inspect import signature
from itertools import count
from math import ceil
from pathlib import Path
from typing import Any

import pytest

from scheduler_app.actions.celery_task.broker_thread import POLL_SECONDS
from scheduler_app.api.pages.failures import SILENCE
from scheduler_app.api.pages.forecast import HOURS
from scheduler_app.api.pages.overview import COMING
from scheduler_app.api.pages.tag import DAYS_BEFORE
from scheduler_app.api.request_shares import ALLOWANCE_SECONDS, SHARE_OF_CPU
from scheduler_app.cli.field_options import _TASK_DEFAULTS
from scheduler_app.client import Scheduler, celery, tries
from scheduler_app.config import Settings
from scheduler_app.domain.api_key import new_key
from scheduler_app.domain.command_line import typed_code_of
from scheduler_app.domain.ids import WholeId
from scheduler_app.domain.missed import MAX_SINGLES
from scheduler_app.receiver.keys import DEFAULT_TTL_SECONDS
from scheduler_app.usecases.duties.cause_inspection import EXPIRES_SOON
from scheduler_app.usecases.duties.dispatch_selection import LANE_MESSAGES
from scheduler_app.usecases.questions.timed_figures import DAY
from scheduler_app.webserver.limits import max_body_bytes
from scheduler_app.worker.lease import MARGIN_SECONDS, TIMEOUT_CLASSES
from tests.unit.docs.manual import ROOT, pages, prose, tables
from tests.unit.docs.test_tables import ENTRIES, where

_FILE = tomllib.loads(Path(__file__).with_name("numbers.toml").read_text())
SENTENCES: dict[str, list[str]] = _FILE["sentences"]
EXAMPLES: dict[str, list[str]] = _FILE["examples"]
#: Pages of measurements, which have their dates; and of the projects before this one.
WITHOUT = {"figures", "containers", "peers", "seeds"}
NUMBER_WORDS = {
    **dict(
        enumerate(("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"))
    ),
    12: "twelve",
    20: "twenty",
}
#: How a number is written: what it is divided by, and its unit.
FORMS = {
    None: (1, ""),
    "KiB": (1024, " KiB"),
    "MiB": (1024**2, " MiB"),
    "days": (86_400, ""),
    "hours": (3_600, ""),
    "ms": (0.001, " ms"),
}
SHARES: dict[float, str] = {10: "tenth"}
TIMES: dict[float, str] = {
    0.5: "half a second",
    60: "a minute",
    3_600: "an hour",
    86_400: "a day",
    604_800: "a week",
}
UNITS = (
    "s|ms|µs|min|minutes?|hours?|days?|seconds?|weeks?|years?|KiB|MiB|GiB|KB|MB|GB|bytes|characters|words|events"
    "|schedules|messages|requests|occurrences|items|keys|fields|lines|threads|processes|tasks|levels|retries"
    "|switches|windows|outcomes|instants|files|entries|attempts|callbacks|documents|connections|rows|workers|tags|ids"
    "|names|%"
)
NUMBER = re.compile(rf"(?<![\w.,:/-])\d[\d,.]* (?:{UNITS})(?!\w)")


def of_client(name: str) -> float:
    found: float = signature(Scheduler).parameters[name].default
    return found


def longest_telling() -> float:
    """Seconds in which a task tells a scheduler that does not answer: its tries, and the pauses between."""
    delays = sum(tries._FIRST_DELAY_SECONDS * 2.0**each for each in range(celery.RETRIES))
    return (celery.RETRIES + 1) * celery.TIMEOUT_SECONDS + delays


PAGE_SCRIPT = (ROOT / "api" / "pages" / "static" / "page.js").read_text()
ASK_SECONDS = int(re.findall(r"ASK_MS = (\d+);", PAGE_SCRIPT)[0]) / 1000
PYTEST = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
DERIVED: dict[str, Any] = {
    "BYTES_OF_A_SIGN_IN": max_body_bytes("/sign-in"),
    "CLASSES_OF_TIMEOUTS": ", ".join(f"{each:g}" for each in TIMEOUT_CLASSES),
    "COMPUTED_AT_ONCE": ALLOWANCE_SECONDS / SHARE_OF_CPU,
    "DAYS_BEFORE_A_KEY_EXPIRES": EXPIRES_SOON / timedelta(days=1),
    # Those before, and today.
    "DAYS_OF_A_TAG": DAYS_BEFORE + 1,
    "DAYS_OF_KEYS": DEFAULT_TTL_SECONDS / 86_400,
    "DOCUMENTS_OF_AN_OUTAGE": MAX_SINGLES + 1,
    "HORIZON": max(5.0, Settings().prequeuer_ticker_interval_seconds + 4),
    "LEASE": TIMEOUT_CLASSES[0] + MARGIN_SECONDS,
    "LETTERS_OF_A_KEY": len(new_key(WholeId(""))) - len("rrs__"),
    "LETTERS_OF_A_TYPED_CODE": len(typed_code_of("").replace("-", "")),
    "MESSAGES_OF_LANES": ", ".join(map(str, LANE_MESSAGES.values())),
    "RESULTS_A_SECOND": 1 / POLL_SECONDS,
    "RETRIES_OF_THE_CLIENT": of_client("retries"),
    "SECONDS_OF_AN_OPEN_PAGE": ASK_SECONDS,
    # A question, and the time that it waits for its answer.
    "SECONDS_UNTIL_IT_SAYS_SO": 2 * ASK_SECONDS,
    "HOURS_OF_A_SILENCE": SILENCE / timedelta(hours=1),
    "HOURS_OF_A_DAY": DAY / timedelta(hours=1),
    "HOURS_OF_THE_FORECAST": min(map(int, HOURS)),
    "HOURS_OF_THE_STRIP": COMING / timedelta(hours=1),
    "SECONDS_OF_A_STORED_TASK": _TASK_DEFAULTS["timeout_seconds"],
    "SECONDS_OF_A_TASK": ceil(longest_telling()),
    "SECONDS_OF_A_TEST": PYTEST["timeout"],
    "SECONDS_OF_THE_CLIENT": of_client("timeout"),
    "TRIES_OF_A_TASK": celery.RETRIES + 1,
    "WEEKS_OF_SUCH_A_KEY": 2 * EXPIRES_SOON / timedelta(weeks=1),
    "YEARS_OF_CLOSED_DAYS": import_module("scheduler_app.ics.reading").YEARS_AHEAD,
}


def value_of(name: str) -> Any:
    """A constant by its module and name."""
    if name in DERIVED:
        return DERIVED[name]
    # Not as `api`, which is another name of the same files: their routes would be registered twice.
    if not name.startswith("tests."):
        name = f"scheduler_app.{name}"
    parts = name.split(".")
    for length in count(len(parts) - 1, -1):
        try:
            found: Any = import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def written(match: re.Match[str]) -> str:
    """What stands in the manual for a constant."""
    value, form = value_of(match[1]), match[2]
    if isinstance(value, str):
        return value
    number = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if form in ("word", "Word"):
        word = NUMBER_WORDS[int(number)]
        return word.title() if form == "Word" else word
    if form == "time":
        return TIMES[number]
    if form == "share":
        return SHARES[number]
    if form == "year":
        return f"{number:.0f}"
    share, unit = FORMS[form]
    return f"{number / share:,.10g}{unit}"


def sentence(template: str) -> str:
    return re.sub(r"\{([\w.]+)(?:\|(\w+))?\}", written, template)


def without_compared_tables(page: str) -> str:
    """A page without the tables whose numbers a test of their own compares with the code."""
    text = pages()[page]
    for one in tables():
        if one.page == page and ENTRIES[where(one)].get("numbers"):
            text = text.replace(one.text, "")
    return text


@pytest.mark.parametrize("page", SENTENCES)
def test_the_manual_has_the_numbers_of_the_code(page: str) -> None:
    text = prose(pages()[page])
    missing = [each for each in map(sentence, SENTENCES[page]) if each not in text]
    assert missing == [], "the manual does not say so"


@pytest.mark.parametrize("page", sorted(set(pages()) - WITHOUT))
def test_a_number_with_a_unit_is_compared_or_part_of_an_example(page: str) -> None:
    text = prose(without_compared_tables(page))
    for known in (*map(sentence, SENTENCES.get(page, ())), *EXAMPLES.get(page, ())):
        assert known in text, "there is no such number any more"
        text = text.replace(known, "…")
    text = re.sub(r'`[^`]*`|"[^"]*"', "…", text)
    found = [text[max(0, at.start() - 40) : at.end() + 15] for at in NUMBER.finditer(text)]
    assert found == [], "numbers.toml does not compare these; what was measured belongs into figures.md"

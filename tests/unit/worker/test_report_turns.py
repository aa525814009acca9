"""The thread of reports: a step that fails holds up no other, and what waits is written before it ends."""

from collections.abc import Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, NoReturn, cast

import pytest
from pymongo.errors import AutoReconnect
from structlog.testing import capture_logs

from scheduler_app.domain.states import State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from scheduler_app.worker import reports
from scheduler_app.worker.reports import Reports
from tests.unit.worker.test_reports import record

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


class Written:
    """What the store was given; it does not answer while `is_away`."""

    def __init__(self) -> None:
        self.runs: list[str] = []
        self.judged: list[tuple[str, datetime]] = []
        self.is_away = False

    def write(self, runs: Sequence[Any]) -> None:
        if self.is_away:
            raise AutoReconnect("of the test")
        self.runs += [run.schedule_id for run in runs]

    def judge(self, schedule_id: str, now: datetime) -> bool:
        self.judged.append((schedule_id, now))
        return False


@pytest.fixture
def written() -> Written:
    return Written()


@pytest.fixture
def made(written: Written) -> Reports:
    causes = SimpleNamespace(touch=lambda _: None, answered=lambda _: None, unanswered=list)
    figures = SimpleNamespace(add=list)
    store = cast(Store, SimpleNamespace(last_runs=written, causes=causes, figure_counters=figures))
    return Reports(store, now=lambda: NOON, judge_failures=written.judge)


def fails(*_: Any) -> NoReturn:
    raise ValueError("of the test")


def dead_letter(schedule_id: str = "s1") -> OutcomeRecord:
    return record(schedule_id, State.ERROR)._replace(pauses_on_failure=True)


def test_what_a_receiver_still_works_on_is_not_reported(made: Reports) -> None:
    made.note([record(state=State.RUNNING)])
    assert not made._has_work()
    assert list(made.origins._attempts) == []


@pytest.mark.parametrize("step", ["origins", "last_runs", "figures", "failures", "schedule_failures"])
def test_a_step_that_fails_is_told_of_once_and_the_others_are_made(
    made: Reports, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(getattr(made, step), "note", fails)
    with capture_logs() as lines:
        made.note([dead_letter()])
        made.note([dead_letter("s2")])
    assert [line["event"] for line in lines].count("reports.failed") == 1
    noted = {
        "origins": bool(made.origins._attempts),
        "last_runs": bool(len(made.last_runs)),
        "figures": bool(len(made.figures)),
        "failures": any(line["event"] == "attempt.dead_letter" for line in lines),
        "schedule_failures": bool(len(made.schedule_failures)),
    }
    assert noted == {each: each != step for each in noted}


def test_a_log_that_fails_holds_up_nothing_that_is_written(
    made: Reports, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.note([dead_letter()])
    monkeypatch.setattr(made.failures, "close_window", fails)
    with capture_logs() as lines:
        assert made._turn()
    assert [line["event"] for line in lines] == ["reports.failed"]
    assert written.runs == ["s1"]
    assert written.judged == [("s1", NOON)]


def test_a_turn_in_which_the_store_does_not_answer_is_made_again(made: Reports, written: Written) -> None:
    made.note([dead_letter()])
    written.is_away = True
    assert not made._turn()
    assert made._has_work()
    written.is_away = False
    assert made._turn()
    assert (written.runs, written.judged) == (["s1"], [("s1", NOON)])


def test_what_waits_at_the_end_is_written_and_the_last_lines_are_logged(
    made: Reports, written: Written, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "TURN_SECONDS", 60.0)
    monkeypatch.setattr(reports, "LINES", 1)
    with capture_logs() as lines:
        made.note([dead_letter(f"s{number}") for number in range(3)])
        made.stop()
        made.run()
    assert sorted(written.runs) == ["s0", "s1", "s2"]
    assert len(written.judged) == 3
    assert [line["event"] for line in lines] == ["attempt.dead_letter", "attempts.omitted"]


def test_at_the_end_a_store_that_does_not_answer_is_not_waited_for(made: Reports, written: Written) -> None:
    made.note([dead_letter()])
    written.is_away = True
    made.stop()
    made.run()
    assert written.runs == []


def test_a_turn_is_made_every_second_until_the_end(made: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    turns, pauses = list[bool](), list[float]()

    def wait(seconds: float) -> bool:
        pauses.append(seconds)
        return len(pauses) == 3

    def turn(*, is_last: bool = False) -> bool:
        turns.append(is_last)
        return False

    monkeypatch.setattr(made, "_turn", turn)
    monkeypatch.setattr(made, "_ended", SimpleNamespace(wait=wait))
    made.note([dead_letter()])
    made.run()
    assert pauses == [reports.TURN_SECONDS] * 3
    assert turns == [False, False, True], "the last one is not tried again without an answer"


def test_each_turn_writes_the_causes_before_the_last_runs_and_the_last_one_all_figures(
    made: Reports, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Any] = []
    monkeypatch.setattr(made.causes, "write", lambda: written.append("causes"))
    monkeypatch.setattr(made.last_runs, "write", lambda: written.append("last runs"))
    monkeypatch.setattr(made.figures, "write", lambda *, at_once: written.append(at_once))
    for is_last in (False, True):
        assert made._turn(is_last=is_last)
    assert written == ["causes", "last runs", False, "causes", "last runs", True]


def test_what_the_causes_take_is_what_has_ended(made: Reports, monkeypatch: pytest.MonkeyPatch) -> None:
    noted: list[Any] = []
    monkeypatch.setattr(made.causes, "note", noted.extend)
    made.note([dead_letter(), record(state=State.RUNNING)])
    assert [each.state for each in noted] == [State.ERROR]

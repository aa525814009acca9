import subprocess
import sys
import threading

import pytest

from scheduler_app.parallel import Parallel
from tests.processes import PATIENCE_SECONDS

IDS = [f"s{number}" for number in range(11)]


@pytest.fixture
def parts() -> Parallel:
    return Parallel(2, worth=11, name="test")


def test_a_page_falls_into_parts_that_keep_its_order(parts: Parallel) -> None:
    assert parts.of(IDS) == [IDS[:6], IDS[6:]]
    assert parts.each(list, parts.of(IDS)) == [IDS[:6], IDS[6:]]


def test_parts_are_worked_on_at_once(parts: Parallel) -> None:
    meeting = threading.Barrier(2)
    parts.each(lambda part: meeting.wait(PATIENCE_SECONDS), parts.of(IDS))


def test_a_small_page_is_one_part_and_an_empty_one_is_none(parts: Parallel) -> None:
    here = threading.current_thread()
    assert parts.each(lambda part: threading.current_thread(), parts.of(IDS[:10])) == [here]
    assert parts.of([]) == []


ENDED_IN_A_PART = """
import signal, sys, threading
from scheduler_app.parallel import Parallel
signal.signal(signal.SIGALRM, lambda *_: sys.exit(7))
signal.setitimer(signal.ITIMER_REAL, 0.2)
Parallel(2, worth=2, name="test").each(lambda part: threading.Event().wait(), [["s1"], ["s2"]])
"""


def test_a_process_that_is_told_to_end_waits_for_no_part() -> None:
    assert subprocess.run([sys.executable, "-c", ENDED_IN_A_PART], check=False).returncode == 7


def test_a_part_that_fails_does_not_cut_the_others_short(parts: Parallel) -> None:
    done = []

    def work(part: object) -> None:
        if part == IDS[:6]:
            raise ConnectionError("away")
        done.append(part)

    with pytest.raises(ConnectionError, match="away"):
        parts.each(work, parts.of(IDS))
    assert done == [IDS[6:]]

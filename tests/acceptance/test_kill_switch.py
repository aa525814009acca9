"""The kill switch over real processes, at the size that it is for."""

import time
from datetime import timedelta

import pytest
import requests

from scheduler_app.clock import clock
from tests.bench.ground import ground, wait_for
from tests.bench.planted import events_at, insert, make_schedules
from tests.processes import wait_until

SCHEDULES = 100_000
RATE = 2_000
SECONDS, STOPPED_AFTER = 24, 8


@pytest.mark.long
def test_nothing_is_sent_later_than_a_second_after_its_answer() -> None:
    """100,000 schedules and 2,000 callbacks a second: stopped in their midst, and let go on again."""
    with ground(workers=2, beats=1, apis=1) as made:
        schedules = make_schedules(made, count=SCHEDULES, tags=("billing",))
        first = (clock.now() + timedelta(seconds=25)).replace(microsecond=0)
        events = events_at(
            schedules, RATE * SECONDS, lambda number: first + timedelta(milliseconds=number * 1000 // RATE)
        )
        insert(made, events)
        wait_until(lambda: clock.now() > first + timedelta(seconds=STOPPED_AFTER), "some of the load")
        # It is under load when it is stopped.
        wait_until(lambda: len(made.arrivals()) > RATE * STOPPED_AFTER / 2, "its callbacks", pause=1)
        began = time.time()
        answer = requests.put(f"{made.stack.url}/api/kill-switch", json={"all": True})
        answered = time.time()
        assert answer.status_code == 200, answer.text
        assert answer.json()["stopped"] == {"schedules": 10_000, "at_least": True}
        wait_until(lambda: clock.now() > first + timedelta(seconds=SECONDS + 2), "the end of the load")
        before = made.arrivals()
        last = max(each.at for each in before)
        print(
            f"sent before: {len(before)}; answered in {answered - began:.3f} s; the last arrived"
            f" {last - answered:.3f} s after the answer"
        )
        assert last <= answered + 1
        off = requests.delete(f"{made.stack.url}/api/kill-switch?all=true")
        assert off.status_code == 200, off.text
        let_go = time.time()
        wait_for(made.idle, 180, "what was held to be sent")
        after = made.arrivals()
        print(f"sent after: {len(after)}; the first {min(each.at for each in after) - let_go:.3f} s later,")
        print(f"the last {max(each.at for each in after) - let_go:.3f} s later")
        keys = [each.key for each in (*before, *after)]
        assert sorted(keys) == sorted(each.id for each in events)

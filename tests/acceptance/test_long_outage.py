"""A rule that fires each second and that sends everything, after three days of outage, over real processes.

Each callback comes once, and the work for each is the same from the first to the last of them.
"""

from collections import Counter
from datetime import timedelta

import pytest

from scheduler_app.clock import clock
from tests.bench.ground import ground, wait_for
from tests.builders import schedule

SECOND = timedelta(seconds=1)
#: Three days.
OWED = 259_200
BEATS, WORKERS = 3, 2
PATIENCE_SECONDS = 1_500


@pytest.mark.long
@pytest.mark.timeout(1_800)
def test_all_that_is_owed_is_sent_once_and_costs_one_document_each() -> None:
    with ground() as made:
        back = clock.now().replace(microsecond=0)
        began = back - OWED * SECOND
        rule = f"DTSTART:{began + SECOND:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;UNTIL={back:%Y%m%dT%H%M%SZ}"
        made.store.schedules.insert(schedule(began, "each-second", rrule=rule, url=made.url, method="POST"))
        for kind, count in (("worker", WORKERS), ("beat", BEATS)):
            for _ in range(count):
                made.add(kind)
        made.costs.start()
        wait_for(lambda: made.expanded(back) and made.idle(), PATIENCE_SECONDS, "all to be sent")
        costs = made.costs.since_start(OWED)
        seen = made.arrivals()
        owed = {(began + number * SECOND).timestamp() for number in range(1, OWED + 1)}
        assert Counter(each.run_time for each in seen) == dict.fromkeys(owed, 1)
        assert len({each.key for each in seen}) == OWED
        events = made.store.mongo.collection("events")
        assert events.count_documents({"state": "completed"}) == OWED == events.count_documents({})
        first, last = min(each.at for each in seen), max(each.at for each in seen)
        half = sum(each.at < (first + last) / 2 for each in seen)
        print(f"{OWED} callbacks in {last - first:.1f} s, {half} of them in the first half of it; {costs}")

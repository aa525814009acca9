"""The witness beside ten minutes of faults: it finds what is wrong, and nothing else."""

import random
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import requests
from rich.console import Console

from scheduler_app.config import Settings
from scheduler_app.domain.cause import CauseKind
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.ledger import HOUR, JUDGED_AFTER, LedgerLine, hour_of, verify
from scheduler_app.store import Store
from scheduler_app.witness.process import Witness
from tests.acceptance.chaos import suite
from tests.acceptance.chaos.cluster import DATABASE, Cluster
from tests.acceptance.chaos.faults import Fault
from tests.acceptance.chaos.load import Load
from tests.acceptance.chaos.mixed import mixed
from tests.acceptance.chaos.patched import DOUBLED, FORGOTTEN
from tests.acceptance.chaos.report import show_breaks, table
from tests.processes import wait_until

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1800)]

MINUTES = 10
#: Schedules that fire every second, beside the load: events enough for a hundred thousand.
MORE = 60
TENTH = MINUTES
"""The patched build errs once a minute; as many documents are deleted."""


def test_of_a_hundred_thousand_events_the_ten_forgotten_doubled_and_deleted_are_found_and_no_others() -> None:
    with tempfile.TemporaryDirectory(prefix="witness-") as folder, ExitStack() as stack:
        cluster = Cluster(Path(folder), launcher=("tests.acceptance.chaos.patched",))
        cluster.start_servers(stack)
        cluster.start_processes()
        row, load = struck(cluster)
        console = Console(width=180)
        console.print(table([row]))
        show_breaks(console, row)
        assert not row.findings.broken, cluster.stack.logs()

        events = cluster.database["events"]
        ours = {"schedule_id": {"$regex": "^more-"}, "state": "completed"}
        wait_until(lambda: events.count_documents(ours) == MORE * MINUTES * 60, "the last callbacks", pause=1)
        assert events.count_documents({}) > MINUTES * 10_000
        ids = [each["_id"] for each in events.find(ours, {"_id": 1})]
        deleted = random.Random(1).sample(ids, TENTH)
        assert events.delete_many({"_id": {"$in": deleted}}).deleted_count == TENTH

        with witness(cluster) as (store, its):
            lines = written(store, its, load)
            missing = {each for line in lines for each in line.account.missing}
            unexplained = {each for line in lines for each in line.account.unexplained}
            print(*(line.account.counts for line in lines), sep="\n")
            assert {each for each in missing if not each.startswith(FORGOTTEN)} == set(deleted)
            assert len(missing) == 2 * TENTH
            assert all(each.startswith(f"{DOUBLED}-2-") for each in unexplained)
            assert len(unexplained) == TENTH
            assert sum(line.account.counts.unjudged for line in lines) == 0
            assert len(store.causes.living(kinds=[CauseKind.MISSED])) == 1
            assert verify(store.ledger.chain(TENANT, 0, limit=100)).wrong is None


def struck(cluster: Cluster) -> tuple[suite.Row, Load]:
    """Ten minutes of all faults in random order, over the load and over schedules beside it."""
    loads: list[Load] = []
    all_faults = mixed(MINUTES)

    def strike(there: Cluster, load: Load) -> None:
        loads.append(load)
        make_more(there, load)
        all_faults.strike(there, load)

    fault = Fault("witness", all_faults.about, strike, all_faults.window, None, None)
    return suite.run(cluster, fault, 1), loads[0]


def make_more(cluster: Cluster, load: Load) -> None:
    """Schedules that fire from the next whole minute on; nothing in them is edited."""
    begins = load.begins.replace(second=0) + timedelta(minutes=1)
    rule = f"DTSTART:{begins:%Y%m%dT%H%M%SZ}\nRRULE:FREQ=SECONDLY;COUNT={MINUTES * 60}"
    drafts = [
        {"id": name, "name": name, "callback_url": cluster.callback_url("/ok"), "rrule": rule}
        for name in (FORGOTTEN, DOUBLED, *(f"more-{number}" for number in range(MORE)))
    ]
    port = cluster.api_ports["api1"]
    answer = requests.post(f"http://127.0.0.1:{port}/api/schedules/bulk", json={"schedules": drafts})
    assert answer.json()["refused"] == 0, answer.text


@contextmanager
def witness(cluster: Cluster) -> Iterator[tuple[Store, Witness]]:
    store = Store(Settings(mongo_uri=cluster.mongo.uri, mongo_database=DATABASE))
    try:
        yield (
            store,
            Witness(store.history, store.ledger, store.causes, store.tenants, look_back=timedelta(days=7)),
        )
    finally:
        store.close()


def written(store: Store, its: Witness, load: Load) -> list[LedgerLine]:
    """The lines of the load's hours, which the witness writes when these are over."""
    hour, lines = hour_of(load.begins), list[LedgerLine]()
    while hour <= load.ends + timedelta(minutes=2):
        its.turn(hour + HOUR + JUDGED_AFTER)
        line = store.ledger.of_hour(TENANT, hour)
        assert line is not None
        lines.append(line)
        hour += HOUR
    return lines

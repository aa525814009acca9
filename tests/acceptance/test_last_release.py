"""Processes of the last release and of this one work side by side, as they do during an upgrade."""

import io
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from tests.acceptance.chaos.test_upgrade import end
from tests.acceptance.journal import Journal
from tests.acceptance.stack import CODE, Stack
from tests.processes import wait_until

#: The commit of the last release.
RELEASE = "d3cc1dc55246f48704a584c8455a8580076b88b3"
#: A receiver to which nothing is sent: no worker runs.
NOBODY = "https://example.com/"
#: Of each release's API, so many schedules that fire once a second.
SCHEDULES = 12


@pytest.fixture(scope="module")
def last_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The last release's code, taken from this repository's history."""
    found = subprocess.run(
        ["git", "archive", RELEASE, "scheduler_app", "api", "beat"], cwd=CODE, capture_output=True
    )
    if found.returncode != 0:
        pytest.fail(
            f"this test needs the last release, commit {RELEASE}, and this checkout does not have it"
            f" ({found.stderr.decode().strip()}); get the whole history: git fetch --unshallow",
            pytrace=False,
        )
    folder = tmp_path_factory.mktemp("last-release")
    with tarfile.open(fileobj=io.BytesIO(found.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture
def releases(
    make_stack: Callable[..., Stack], last_release: Path, tmp_path: Path
) -> Iterator[tuple[Stack, Stack]]:
    """A stack of the last release and one of this, over the same database and the same broker."""
    # A short timeframe, so that the beats expand all the time.
    new = make_stack(PREQUEUER_EVENT_TIMEFRAME_MINUTES="1")
    old = Stack(tmp_path, new.environment | {"PYTHONPATH": str(last_release)}, code=last_release)
    yield old, new
    old.close()


def test_each_stack_runs_its_own_code(releases: tuple[Stack, Stack], last_release: Path) -> None:
    names = ("scheduler_app", "beat")
    show = "import scheduler_app, beat; print(scheduler_app.__file__, beat.__file__)"
    for stack, code in zip(releases, (last_release, CODE), strict=True):
        command = [sys.executable, "-c", show]
        shown = subprocess.check_output(command, cwd=stack.code, env=stack.environment, text=True)
        assert shown.split() == [str(code / name / "__init__.py") for name in names]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("way", "occurrences", "ended"),
    [
        pytest.param("upgrade", 30, 0, id="upgrade"),
        pytest.param("way back", 30, 0, id="way-back"),
        pytest.param("upgrade", 240, 1_000_000, id="upgrade-with-a-million-ended-events"),
    ],
)
def test_old_and_new_processes_side_by_side_deliver_everything_exactly_once(
    releases: tuple[Stack, Stack], journal: Journal, way: str, occurrences: int, ended: int
) -> None:
    first, second = releases if way == "upgrade" else releases[::-1]
    first.api()
    first_processes = [first.beat("first-beat"), first.worker("first-worker")]
    fields: dict[str, Any] = {
        "rrule": f"FREQ=SECONDLY;COUNT={occurrences}",
        "method": "POST",
        "headers": {"Authorization": "Bearer of a receiver"},
        "json": {"hello": "world"},
        "tags": ["upgrade"],
    }
    made: dict[str, str] = {}

    def create(stack: Stack, which: str) -> None:
        paths = [f"/{which}/{number}" for number in range(SCHEDULES)]
        made.update({path: stack.create(journal.url(path), **fields) for path in paths})

    if ended:
        example = first.create(journal.url("/example"), rrule="FREQ=SECONDLY;COUNT=1")
        first.finished(example)
        plant_ended(first.environment, example, ended)
    create(first, "first")
    wait_until(lambda: len(journal.calls["/first/0"]) >= 2, "the first calls")
    second.worker("second-worker")
    second.beat("second-beat")
    second.api()
    create(second, "second")
    # The first release goes on beside the second for half of the load, and ends in the middle of it.
    half = occurrences // 2
    wait_until(lambda: len(journal.calls["/second/0"]) >= half, "half of the second's calls")
    for process in first_processes:
        end(process)
    assert len(journal.calls["/second/0"]) < occurrences, "the load has to outlast the first release"
    logs = f"{first.logs()}\n{second.logs()}"
    workers: dict[str, set[str]] = {"first": set(), "second": set()}
    for path, schedule_id in made.items():
        events = second.finished(schedule_id, occurrences)
        assert {event["state"] for event in events} == {"completed"}, f"{path}\n{logs}"
        calls = Counter(call.run_time for call in journal.calls[path])
        assert {call.seen.body for call in journal.calls[path]} == {b'{"hello":"world"}'}
        assert len(calls) == occurrences, f"{path} lost {occurrences - len(calls)}"
        assert max(calls.values()) == 1, f"{path} was sent {calls.most_common(1)}"
        # A message that one release could not read would have been recovered, 10 s later.
        told = " ".join(line["message"] for event in events for line in event["status"])
        assert "lost" not in told, f"{path}\n{logs}"
        workers[path.split("/")[1]] |= {event["attempts"][0]["worker"].split("@")[0] for event in events}
    both = {"first-worker", "second-worker"}
    assert workers == {"first": both, "second": both}
    with MongoClient[dict[str, Any]](second.environment["MONGO_URI"]) as client:
        events_there = client[second.environment["MONGO_DATABASE"]]["events"]
        assert events_there.count_documents({"state": "completed"}) == (
            len(made) * occurrences + ended + bool(ended)
        )


def plant_ended(environment: dict[str, str], schedule_id: str, number: int) -> None:
    """Leaves so many more ended events in the database as a release has just left one, in turn of a thousand
    schedules."""
    with MongoClient[dict[str, Any]](environment["MONGO_URI"]) as client:
        events = client[environment["MONGO_DATABASE"]]["events"]
        example = events.find_one({"schedule_id": schedule_id})
        assert example is not None
        for begin in range(0, number, 10_000):
            rows = []
            for index in range(begin, min(begin + 10_000, number)):
                of, time = f"ended-{index % 1000}", example["run_time"] - timedelta(seconds=index)
                own = {"_id": f"{of}-1-{time:%Y%m%dT%H%M%SZ}", "schedule_id": of, "run_time": time}
                rows.append(example | own)
            events.insert_many(rows, ordered=False)


def test_the_owner_of_one_environment_key_sees_no_difference_after_the_upgrade(
    make_stack: Callable[..., Stack], last_release: Path, tmp_path: Path
) -> None:
    """One key of API_KEYS, no tenant, and no setting for either: all that was there answers as before."""
    key = {"X-API-Key": "0123456789abcdef"}
    new = make_stack(API_KEYS=key["X-API-Key"])
    old = Stack(tmp_path, new.environment | {"PYTHONPATH": str(last_release)}, code=last_release)
    one = {"name": "Nightly", "rrule": "DTSTART:20400101T020000Z\nFREQ=DAILY", "callback_url": NOBODY}
    of_one = ("", "/events/pending", "/events/history", "/preview")
    asked = ["schedules", "schedules/weekly", "events?state=ready_queue"]
    asked += [f"schedules/nightly{rest}" for rest in of_one]
    try:
        old.api()
        for body in (one | {"id": "nightly", "tags": ["a"]}, one | {"id": "weekly", "signing": True}):
            answer = requests.post(f"{old.url}/api/schedules", json=body, headers=key)
            assert answer.status_code == 201, answer.text
        for path in ("nightly/trigger", "weekly/pause"):
            assert requests.post(f"{old.url}/api/schedules/{path}", headers=key).ok
        before = {path: requests.get(f"{old.url}/api/{path}", headers=key).json() for path in asked}
    finally:
        old.close()
    new.api()
    after = {path: requests.get(f"{new.url}/api/{path}", headers=key).json() for path in asked}
    assert [each for path in asked for each in _differences(before[path], after[path], path)] == []
    assert requests.get(f"{new.url}/api/schedules").status_code == 401
    page = requests.post(f"{new.url}/sign-in", data={"key": key["X-API-Key"]})
    assert page.status_code == 403  # a form of nobody's page
    with requests.Session() as browser:
        found = browser.get(f"{new.url}/sign-in").text
        token = found.split('name="form_token" value="')[1].split('"')[0]
        signed_in = {"key": key["X-API-Key"], "form_token": token}
        answer = browser.post(f"{new.url}/sign-in", data=signed_in, allow_redirects=False)
        assert answer.status_code == 303
        assert "Nightly" in browser.get(f"{new.url}/schedules").text


def _differences(before: Any, after: Any, where: str) -> list[str]:
    """What an answer had and has no more, or has otherwise; it may have more. Descriptions
    are for people, and say more with each release."""
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = [
            (before[name], after.get(name), f"{where}/{name}") for name in before if name != "description"
        ]
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        pairs = [(old, new, f"{where}/{n}") for n, (old, new) in enumerate(zip(before, after, strict=True))]
    else:
        return [] if before == after else [f"{where}: {before!r} became {after!r}"]
    return [each for pair in pairs for each in _differences(*pair)]

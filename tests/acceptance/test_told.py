"""People are told of a receiver that fails by each channel, once, and once that it is over."""

import json
import random
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
import requests
from pymongo import MongoClient

from tests.acceptance.journal import Journal
from tests.acceptance.stack import ONCE, Process, Stack
from tests.authority import Authority
from tests.fail_points import MongodWithFailPoints
from tests.integration.actions.receiver import Receiver, says
from tests.mail_server import MailReceiver
from tests.processes import wait_until

SCHEDULES = 100
PUBLIC = "http://scheduler.example.com"
RECEIVERS = 3


@pytest.mark.timeout(900)
def test_a_failure_of_many_schedules_is_one_webhook_one_mail_and_one_call_of_a_service(
    make_stack: Callable[..., Stack], journal: Journal, tmp_path: Path
) -> None:
    authority = Authority(tmp_path, "trusted")
    with ExitStack() as opened:
        mails = opened.enter_context(closing(MailReceiver()))
        service = opened.enter_context(closing(Receiver(says(), tls=authority.server("localhost"))))
        stack = make_stack(
            SMTP_URL=f"smtp://127.0.0.1:{mails.port}?from=scheduler@example.com",
            CALLBACK_CA_BUNDLE=str(authority.bundle),
            PUBLIC_URL=PUBLIC,
        )
        stack.all()
        rule = {
            # Runs may be late, too, on a busy machine, or a process not report.
            "on": ["failing", "recovered"],
            # By then all of them have failed.
            "after_seconds": 10,
            "to": [
                {"type": "webhook", "url": journal.url("/alerts")},
                {"type": "email", "address": "ops@example.com"},
                {"type": "apprise", "url": f"jsons://localhost:{service.port}/s3cret/"},
            ],
        }
        made = requests.put(f"{stack.url}/api/notifications/ops", json=rule)
        assert made.status_code == 201, made.text
        assert requests.post(f"{stack.url}/api/notifications/ops/test").status_code == 202

        def told() -> tuple[int, int, int]:
            """What came by each channel. A request whose answer came too late is made again."""
            return (
                len({call.key for call in journal.calls["/alerts"]}),
                len({each.message["Message-ID"] for each in mails.mails}),
                len({each.body for each in service.seen}),
            )

        wait_until(lambda: told() == (1, 1, 1), "the test of each channel", pause=0.2)
        url = journal.script("/hook", says("500 Oh No"))
        retries = {"max_retries": 50, "retry_backoff_seconds": 1, "retry_backoff_max_seconds": 2}
        # No answer in time would be another failure than an answer 500.
        stack.create_many(SCHEDULES, url, rrule=ONCE, tags=["team:a"], timeout_seconds=300, **retries)
        wait_until(lambda: told() == (2, 2, 2), "the failure to be told", pause=0.2)
        began = mails.mails[-1]
        assert f"{SCHEDULES} schedules" in began.message["Subject"]
        assert began.message["Subject"].startswith("Failing: http://127.0.0.1")
        for part in ("Tags: team:a", "Last error: ", f"{PUBLIC}/failures/", "scheduler failures show"):
            assert part in began.text

        def is_a_reason() -> bool:
            """A status that MongoDB does not give within 1.5 s names MongoDB alone."""
            reasons = requests.get(f"{stack.url}/api/status").json()["reasons"]
            return ("failing", SCHEDULES) in [(each["kind"], each["schedules"]) for each in reasons]

        wait_until(is_a_reason, "the status to name it", pause=0.2)
        told_of = json.loads(journal.calls["/alerts"][-1].seen.body)["data"]["failure"]
        page = told_of["page"].replace(PUBLIC, stack.url)
        assert requests.get(page).status_code == 200
        assert page.replace(stack.url, PUBLIC) in began.text
        journal.script("/hook", says())
        wait_until(lambda: told() == (3, 3, 3), "the end to be told", pause=0.2)
        types = [json.loads(call.seen.body)["type"] for call in journal.calls["/alerts"]]
        assert types == ["test", "failure.began", "failure.over"]
        assert mails.mails[-1].message["Subject"].startswith("Over: ")
        assert b"Over: " in service.seen[-1].body
        assert len({each.message["Message-ID"] for each in mails.mails}) == 3

        def messages() -> list[dict[str, str]]:
            found: list[dict[str, str]] = requests.get(f"{stack.url}/api/messages").json()["messages"]
            return found

        wait_until(lambda: {each["state"] for each in messages()} == {"completed"}, "all records", pause=0.2)
        assert len(messages()) == 9
        assert "s3cret" not in json.dumps(messages()) + stack.logs()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "kills", [pytest.param(6, marks=pytest.mark.long), pytest.param(100, marks=pytest.mark.chaos)]
)
def test_no_telling_is_lost_or_doubled_while_beats_and_workers_are_killed(
    make_stack: Callable[..., Stack], journal: Journal, tmp_path: Path, kills: int
) -> None:
    """Each receiver fails in the first third of the kills, works in the second one, and fails in the last.

    By chance hardly any kill falls between the messages that a beat makes and its note that they are made. So
    MongoDB refuses that note whenever the receivers begin to fail, until the beat is killed that wanted to
    write it: another one makes the same messages again.
    """
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    drawn = random.Random(seed)
    with ExitStack() as opened:
        mongod = opened.enter_context(MongodWithFailPoints(tmp_path / "mongod"))
        stack = make_stack(MONGO_URI=mongod.uri)
        opened.callback(stack.close)
        _, beat, worker = stack.all()
        client = opened.enter_context(MongoClient[dict[str, Any]](mongod.uri))
        db = client[stack.environment["MONGO_DATABASE"]]
        # Runs are late, too, while nobody makes them: how often depends on the machine.
        to = [{"type": "webhook", "url": journal.url("/alerts")}]
        rule = {"on": ["failing", "recovered"], "after_seconds": 1, "to": to}
        assert requests.put(f"{stack.url}/api/notifications/ops", json=rule).status_code == 201
        retries = {"max_retries": 50, "retry_backoff_seconds": 1, "retry_backoff_max_seconds": 2}

        def begin() -> None:
            for number in range(RECEIVERS):
                url = {"url": journal.script(f"/r{number}", says("500 Oh No"))}
                put = requests.put(f"{stack.url}/api/destinations/r{number}", json=url | retries)
                assert put.status_code == 201
                stack.post("/schedules", {"name": "s", "destination": f"r{number}", "every_seconds": 2})

        def failures() -> Counter[str]:
            found = requests.get(f"{stack.url}/api/failures?state=open,over&limit=100").json()["failures"]
            return Counter(each["state"] for each in found if each["kind"] == "failing")

        def answer_with(status: str) -> None:
            for number in range(RECEIVERS):
                journal.script(f"/r{number}", says(status))

        def told() -> Counter[tuple[str, str]]:
            bodies = {call.key: json.loads(call.seen.body) for call in journal.calls["/alerts"]}
            return Counter((each["type"], each["data"]["failure"]["id"]) for each in bodies.values())

        def wait_until_told(kind: str, count: int) -> None:
            wait_until(
                lambda: sum(1 for each, _ in told() if each == kind) == count, f"{count} {kind}", pause=0.2
            )

        def killed_before_its_note(change: Callable[[], None]) -> Process:
            """Kills the beat that tells of the change; returns the one that follows it."""
            made = db["events"].count_documents({"kind": "message"})
            with mongod.refusing("update", f"{db.name}.tellings"):
                change()
                wait_until(
                    lambda: db["events"].count_documents({"kind": "message"}) > made, "a notice", pause=0.02
                )
                stack.kill(beat)
            return stack.beat()

        beat = killed_before_its_note(begin)
        for kill in range(kills):
            if kill == kills // 3:
                wait_until_told("failure.began", RECEIVERS)
                answer_with("200 OK")
            elif kill == 2 * kills // 3:
                wait_until(
                    lambda: failures() == {"over": RECEIVERS}, "the first failures to be over", pause=0.2
                )
                wait_until_told("failure.over", RECEIVERS)
                beat = killed_before_its_note(lambda: answer_with("500 Oh No"))
            if drawn.random() < 0.5:
                stack.kill(worker)
                worker = stack.worker()
            else:
                stack.kill(beat)
                beat = stack.beat()
        wait_until_told("failure.began", 2 * RECEIVERS)
        answer_with("200 OK")
        wait_until_told("failure.over", 2 * RECEIVERS)
        wait_until(lambda: db["tellings"].count_documents({"owed": True}) == 0, "all notes", pause=0.2)
        waiting = {"kind": "message", "due_at": {"$exists": True}}
        wait_until(lambda: db["events"].count_documents(waiting) == 0, "all messages to be sent", pause=0.2)
        assert failures() == {"over": 2 * RECEIVERS}
        assert set(told().values()) == {1}
        assert len(told()) == 4 * RECEIVERS

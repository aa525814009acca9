"""A user's own tasks on our Celery application, and other applications on our Redis."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from celery import Celery

from scheduler_app.broker.redis.backend import key_prefix
from tests.acceptance.journal import Journal
from tests.acceptance.stack import CODE, Stack
from tests.processes import PATIENCE_SECONDS, wait_until

MODULE = """
from pathlib import Path

from scheduler_app import app

@app.task
def note(path, text):
    Path(path).write_text(text)
"""


@pytest.fixture(scope="module")
def stack(stack: Stack) -> Stack:
    """With a user's module beside it."""
    (stack.folder / "my_tasks.py").write_text(MODULE)
    return stack


def with_module(stack: Stack) -> dict[str, str]:
    """The environment variables with which Python finds the user's module."""
    return stack.environment | {"PYTHONPATH": f"{stack.folder}:{CODE}"}


def python(stack: Stack, program: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-c", program)
    return subprocess.run(command, env=with_module(stack), capture_output=True, text=True)


def test_tasks_of_a_user_s_own_run_in_workers_of_their_own(stack: Stack, journal: Journal) -> None:
    noted = [stack.folder / name for name in ("by-default", "by-name")]
    sent = f"from my_tasks import note; note.delay({str(noted[0])!r}, 'done')"
    assert python(stack, sent).returncode == 0
    sent = f"from my_tasks import note; note.apply_async(({str(noted[1])!r}, 'done'), queue='mine')"
    assert python(stack, sent).returncode == 0
    options = ("-I", "my_tasks", "-Q", "tasks,mine", "-n", "own@%h")
    path = with_module(stack)["PYTHONPATH"]
    stack.start("own", "celery", "-A", "scheduler_app", "worker", *options, PYTHONPATH=path)
    wait_until(
        lambda: all(path.exists() and path.read_text() == "done" for path in noted),
        f"the tasks\n{stack.logs()}",
    )
    # The worker for callbacks has seen nothing of that, and goes on.
    made = stack.create(journal.url("/"), run_at="2040-01-01T00:00:00Z")
    stack.post(f"/schedules/{made}/trigger", status=202)
    assert stack.finished(made)[0]["state"] == "completed"
    assert "message.dropped" not in stack.logs()
    # One that is in no module of its worker is dropped, with the reason.
    sent = "from my_tasks import app; app.send_task('my_tasks.gone', queue='mine')"
    assert python(stack, sent).returncode == 0
    wait_until(lambda: "no task has its name" in stack.logs(), f"the message to be dropped\n{stack.logs()}")


def test_what_would_hold_up_callbacks_or_do_nothing_is_refused_with_the_way_that_works(stack: Stack) -> None:
    done = python(stack, "from my_tasks import note; note.apply_async(('x', 'y'), queue='callbacks')")
    assert "the queue callbacks is for callbacks alone" in done.stderr
    assert "start a worker with -Q tasks" in done.stderr
    refused = (
        ("callbacks,tasks", ("-I", "my_tasks"), "callbacks need workers of their own"),
        ("tasks", (), "no schedule can name tasks; callbacks come by callbacks"),
        ("callbacks,commands", (), "commands need workers of their own"),
    )

    def start(queues: str, options: tuple[str, ...], _: str) -> subprocess.CompletedProcess[str]:
        command = (sys.executable, "-m", "celery", "-A", "scheduler_app", "worker", "-Q", queues, *options)
        return subprocess.run(command, env=with_module(stack), capture_output=True, text=True)

    with ThreadPoolExecutor(len(refused)) as side_by_side:
        for (queues, _, sentence), done in zip(
            refused, side_by_side.map(lambda each: start(*each), refused), strict=True
        ):
            assert done.returncode == 4, done.stderr
            refusal = json.loads(done.stderr.splitlines()[-1])["message"]
            assert refusal.startswith(f"-Q {queues}: {sentence}")


def test_broadcasts_of_other_applications_on_the_same_redis_do_not_arrive(
    stack: Stack, journal: Journal
) -> None:
    broker = stack.environment["BROKER_URL"]
    ours, foreign = Celery("ours", broker=broker), Celery("foreign", broker=broker)
    ours.conf.broker_transport_options = {"global_keyprefix": key_prefix(stack.environment["MONGO_DATABASE"])}
    # With our prefix a command arrives, so that the silence after it means something.
    assert ours.control.inspect(timeout=PATIENCE_SECONDS, limit=1).ping()
    assert foreign.control.inspect(timeout=1).ping() is None
    foreign.control.broadcast("cancel_consumer", arguments={"queue": "callbacks"})
    foreign.control.shutdown()
    foreign.control.purge()
    for app in (ours, foreign):
        app.close()
    made = stack.create(journal.url("/"), run_at="2040-01-01T00:00:00Z")
    stack.post(f"/schedules/{made}/trigger", status=202)
    assert stack.finished(made)[0]["state"] == "completed"
    assert all(process.poll() is None for process in stack.running)

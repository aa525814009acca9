"""Which queues a worker may consume together, and what it is then: one for callbacks, or for tasks."""

from collections.abc import Callable, Sequence

import pytest
from celery import Celery
from structlog.testing import capture_logs

from scheduler_app.broker import task
from scheduler_app.broker.task import delivers_callbacks
from scheduler_app.config.settings import InvalidSetting

Made = Callable[..., Celery]


def pay() -> None:
    """A task of a user's own."""


@pytest.fixture
def app() -> Made:
    """Makes an application that consumes these queues, with our task and perhaps a user's."""

    def make(queues: Sequence[str], *, own: bool = False) -> Celery:
        made = Celery("test", set_as_current=False)
        task.register(made)
        made.amqp.queues.select(list(queues))
        if own:
            made.task(name="shop.tasks.pay", shared=False)(pay)
        return made

    return make


@pytest.mark.parametrize("queues", [["callbacks"], ["commands"], ["slow", "fast"], ["callbacks", "slow"]])
def test_a_worker_without_tasks_of_a_user_delivers(app: Made, queues: list[str]) -> None:
    assert delivers_callbacks(app(queues))


def test_tasks_of_a_user_do_not_come_to_a_worker_for_callbacks(app: Made) -> None:
    with capture_logs() as lines:
        assert delivers_callbacks(app(["callbacks"], own=True))
    (line,) = lines
    assert (line["event"], line["tasks"]) == ("worker.own_tasks", ["shop.tasks.pay"])
    with capture_logs() as lines:
        assert delivers_callbacks(app(["callbacks"]))
    assert lines == []


def test_a_worker_with_tasks_of_a_user_and_a_queue_of_theirs_runs_these(app: Made) -> None:
    assert not delivers_callbacks(app(["pay"], own=True))


@pytest.mark.parametrize(
    ("queues", "own", "why"),
    [
        (["callbacks", "commands"], False, "commands need workers of their own"),
        (["commands", "slow"], False, "commands need workers of their own"),
        (["callbacks", "slow"], True, "callbacks need workers of their own"),
        (["commands"], True, "callbacks need workers of their own"),
        (["slow", "no name!"], False, "no schedule can name no name!"),
    ],
)
def test_queues_that_do_not_go_together_are_refused(
    app: Made, queues: list[str], why: str, *, own: bool
) -> None:
    with pytest.raises(InvalidSetting, match=why):
        delivers_callbacks(app(queues, own=own))


def test_our_task_delivers_what_this_process_set_and_is_an_error_where_none_did(
    app: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "_deliver", None)
    deliver = app(["callbacks"]).tasks["scheduler_app.tasks.deliver"]
    with pytest.raises(RuntimeError, match="no worker runs in this process"):
        deliver(v=1, ids=["a"])
    task.set_delivery(len)
    assert deliver(v=1, ids=["a", "b"]) == 2

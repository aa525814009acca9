"""Which tasks CELERY_TASKS allow: by broker, by name, and by queue."""

import pytest

from scheduler_app.config import InvalidSetting, load_settings
from scheduler_app.domain.celery_task_action import AllowedTasks, CeleryTaskAction, parse_task_patterns

DATABASE = "schedulerdb"
ALLOWED = AllowedTasks.parse(
    (
        "shop:shop.tasks.*",
        "shop:shop.tasks.bill@high",
        "shop:*.reports.*.daily@eu-*",
        "crm:*@*",
        "crm:celery.backend_cleanup",
    ),
    DATABASE,
)


def allowed(broker: str, task: str, queue: str | None = None) -> bool:
    return ALLOWED.refusal(CeleryTaskAction(task, broker, queue=queue)) is None


@pytest.mark.parametrize(
    ("broker", "task", "queue"),
    [
        ("shop", "shop.tasks.bill", None),
        ("shop", "shop.tasks.a.b", None),
        ("shop", "shop.tasks.bill", "high"),
        ("shop", "x.reports.y.daily", "eu-1"),
        ("crm", "anything", None),
        ("crm", "any.thing", "anywhere"),
        ("crm", "celery.backend_cleanup", None),
    ],
)
def test_what_a_pattern_names_is_allowed(broker: str, task: str, queue: str | None) -> None:
    assert allowed(broker, task, queue)


@pytest.mark.parametrize(
    ("broker", "task", "queue"),
    [
        ("shop", "shop.tasks", None),
        ("shop", "xshop.tasks.bill", None),
        ("shop", "shop.tasks.erase", "high"),
        ("shop", "shop.tasks.bill", "low"),
        ("shop", "shop.tasks.bill", "highest"),
        ("shop", "x.reports.daily", "eu-1"),
        ("shop", "x.reports.y.daily", "us"),
        ("elsewhere", "shop.tasks.bill", None),
        ("crm", "celery.chord_unlock", None),
        ("crm", "celery.backend_cleanup", "anywhere"),
        ("crm", "scheduler_app.tasks.deliver", "schedulerdb:callbacks"),
        ("crm", "anything", "otherdb:callbacks"),
    ],
)
def test_what_no_pattern_names_is_refused(broker: str, task: str, queue: str | None) -> None:
    assert not allowed(broker, task, queue)


def test_a_refusal_says_which_pattern_would_do() -> None:
    said = ALLOWED.refusal(CeleryTaskAction("shop.erase", "shop", queue="low")) or ""
    assert said.endswith("the pattern shop:shop.erase@low")


def test_our_own_queues_are_refused_whatever_a_pattern_says() -> None:
    opened = AllowedTasks.parse(("crm:*@schedulerdb:callbacks",), DATABASE)
    task = CeleryTaskAction("celery.chord_unlock", "crm", queue="schedulerdb:callbacks")
    assert "is a queue of this scheduler itself" in (opened.refusal(task) or "")


def test_without_patterns_nothing_is_allowed() -> None:
    assert AllowedTasks.parse((), DATABASE).refusal(CeleryTaskAction("a", "shop"))


@pytest.mark.parametrize(
    "value", ["shop", "shop:", ":a", "a b:c", "shop:a b", "shop:a@", "shop:a@b c", "shop:@x"]
)
def test_what_is_no_pattern_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="must be patterns such as"):
        parse_task_patterns(f"shop:good,{value}")


def test_more_patterns_than_anybody_reads_are_refused() -> None:
    with pytest.raises(ValueError, match="more than 200"):
        parse_task_patterns(",".join(["shop:a"] * 201))


def test_many_stars_cost_little() -> None:
    pattern = AllowedTasks.parse((f"shop:{'*a' * 200}",), DATABASE)
    assert pattern.refusal(CeleryTaskAction("a" * 199 + "b", "shop"))


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ("", "such as reports:reports.tasks.*; reports:*@* allows every"),
        ("shop:*,crm:*", "crm is not one"),
        ("shop:*@schedulerdb:callbacks", "must not name a queue of this scheduler"),
    ],
)
def test_a_process_does_not_start_with_brokers_and_no_usable_patterns(tasks: str, says: str) -> None:
    given = {"CELERY_BROKERS": "shop=redis://h:1/0,reports=redis://h:1/1", "CELERY_TASKS": tasks}
    with pytest.raises(InvalidSetting, match="CELERY_TASKS") as refusal:
        load_settings(environ=given)
    assert says in str(refusal.value)

"""Tests of real processes, for code that runs in no test's own process."""

from typing import Final

_DELIVERY: Final = (
    "tests/acceptance/test_delivery.py::test_a_trigger_calls_at_once_whatever_the_state",
    "tests/acceptance/test_celery_tools.py::test_inspect_and_the_metrics_show_the_events_in_flight",
)
_BROKER_LOSS: Final = "tests/acceptance/test_broker_loss.py"
_GARBAGE: Final = "tests/acceptance/test_garbage.py"

#: By the file of the fault, the quickest first.
TESTS_OF_PROCESSES: Final[dict[str, tuple[str, ...]]] = {
    "scheduler_app/broker/app.py": (
        "tests/integration/broker/test_flower_login.py",
        "tests/acceptance/test_own_tasks.py",
        *_DELIVERY,
    ),
    "scheduler_app/broker/consumer.py": (_GARBAGE, "tests/acceptance/test_own_tasks.py"),
    "scheduler_app/broker/inspection.py": _DELIVERY,
    "scheduler_app/broker/task.py": ("tests/acceptance/test_own_tasks.py",),
    "scheduler_app/broker/rabbitmq/transport.py": ("tests/acceptance/test_rabbitmq.py",),
    "scheduler_app/broker/rabbitmq/backend.py": ("tests/acceptance/test_rabbitmq.py",),
    "scheduler_app/broker/redis/backend.py": (*_DELIVERY, _BROKER_LOSS),
    "scheduler_app/broker/redis/transport.py": (_GARBAGE, _BROKER_LOSS),
    "scheduler_app/broker/worker_steps.py": (
        *_DELIVERY,
        "tests/acceptance/chaos/test_orderly_ends.py",
    ),
    "scheduler_app/worker/process.py": (
        *_DELIVERY,
        "tests/acceptance/test_delivery.py::test_a_worker_may_have_as_many_connections_as_the_hard_limit_of_files_allows",
        "tests/acceptance/test_crashes.py",
    ),
}

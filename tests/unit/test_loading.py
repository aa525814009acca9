"""What a process loads at its start: a good part of the time until it is ready, and of its memory."""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from scheduler_app.cli.up.services import beat_service, flower_service, worker_service
from scheduler_app.cli.up.supervisor import Service
from scheduler_app.config import load_settings
from scheduler_app.loading import without_garbage_collection

#: What some processes ask for later, or never. Each of these took more than 15 ms, or brings other packages.
NEVER_AT_ONCE = (
    "attr",
    "flower",
    "holidays",
    "icalendar",
    "pycurl",
    "pygments",
    "rich",
    "scheduler_app.domain.recurrence.description.sentences",
    "scheduler_app.domain.recurrence.why.set_reasons",
    "scheduler_app.domain.triggers.cron.translation",
    "scheduler_app.domain.triggers.phrase.parser",
)


def loaded(statements: str) -> set[str]:
    program = f"{statements}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("module", "others"),
    [
        (
            "scheduler_app.api.factory",
            ("scheduler_app.worker", "scheduler_app.beat", "celery.worker.control"),
        ),
        (
            "scheduler_app.beat.scheduler",
            ("scheduler_app.worker", "scheduler_app.api", "flask", "marshmallow"),
        ),
        ("scheduler_app.worker.process", ("scheduler_app.beat", "scheduler_app.api", "flask", "marshmallow")),
        # Flower, beat and each of Celery's commands import it.
        ("scheduler_app.worker_signals", ("scheduler_app.assembly", "scheduler_app.worker")),
        ("scheduler_app.cli.up.local_run", ("pymongo", "redis", "celery", "kombu", "scheduler_app.store")),
    ],
)
def test_a_process_loads_nothing_that_it_may_never_need(module: str, others: tuple[str, ...]) -> None:
    found = loaded(f"import {module}")
    assert module in found
    assert sorted(found & {*NEVER_AT_ONCE, *others}) == []


@pytest.mark.parametrize(
    ("service", "others"),
    [
        (worker_service(1, load_settings(), {}), {"flower", "tornado"}),
        (beat_service({}), {"flower", "tornado"}),
        (flower_service(1, "user:password", {}), set()),
    ],
    ids=["worker", "beat", "flower"],
)
def test_a_process_of_up_loads_no_other_command_of_celery(service: Service, others: set[str]) -> None:
    environment = {**os.environ, "PYTHONPROFILEIMPORTTIME": "1"}
    done = subprocess.run(
        [*service.command, "--help"], env=environment, capture_output=True, text=True, check=True
    )
    found = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert f" {service.name.rstrip('1')} [OPTIONS]" in done.stdout
    assert "scheduler_app.broker.app" in found
    assert sorted(found & {"celery.bin.celery", "prompt_toolkit", *others}) == []


@pytest.mark.parametrize(
    "service",
    [worker_service(1, load_settings(), {}), beat_service({}), flower_service(1, "user:password", {})],
    ids=["worker", "beat", "flower"],
)
def test_a_process_of_up_imports_no_module_of_the_folder_where_it_is_started(
    service: Service, tmp_path: Path
) -> None:
    for name in ("api", "beat", "celery", "click", "redis", "scheduler_app", "yaml"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('{name}.py of another project was imported')")
    done = subprocess.run([*service.command, "--help"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_rich_can_be_imported_after_the_logs() -> None:
    program = "import scheduler_app.telemetry, sys; assert 'rich' not in sys.modules; import rich.console"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_garbage_collector_returns_after_loading_even_if_that_fails() -> None:
    def load() -> None:
        with without_garbage_collection():
            assert not gc.isenabled()
            raise ImportError("of the test")

    assert gc.isenabled()
    with pytest.raises(ImportError, match="of the test"):
        load()
    assert gc.isenabled()
    gc.unfreeze()


def test_loading_leaves_a_garbage_collector_alone_that_was_off() -> None:
    gc.disable()
    try:
        with without_garbage_collection():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
        gc.unfreeze()


_SETTLES = """
import gc, weakref
from scheduler_app.loading import settle_heap
class Cycle: pass
lost = Cycle(); lost.itself = lost; gone = weakref.ref(lost); del lost
made = [Cycle() for _ in range(100_000)]
settle_heap()
print(gone() is None, gc.get_freeze_count() > 100_000, len(gc.get_objects()) < 1_000)
"""


def test_what_a_start_has_made_is_looked_at_by_no_later_collection() -> None:
    done = subprocess.run([sys.executable, "-c", _SETTLES], capture_output=True, text=True, check=True)
    assert done.stdout == "True True True\n"

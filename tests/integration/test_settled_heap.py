"""Every process ends its start by taking what it has made out of all later garbage collections."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import requests

from scheduler_app.config import Settings
from scheduler_app.embedded import free_port
from tests.processes import Program

CODE = Path(__file__).parents[2]

#: `gc.get_objects()` names all that a collection looks at.
_WORKER = """
import gc
from celery import signals
from scheduler_app import app, worker_signals

@signals.worker_ready.connect(weak=False)
def ready(**_):
    made = worker_signals._worker
    assert made is not None
    print("settled:", all(each is not made for each in gc.get_objects()), flush=True)

app.worker_main(["worker", "--pool", "threads", "--without-gossip", "--without-mingle"])
"""

_BEAT = """
import gc
from celery import signals
from scheduler_app import app

@signals.beat_init.connect(weak=False)
def ready(sender, **_):
    made = sender.scheduler._duties
    assert made is not None
    print("settled:", all(each is not made for each in gc.get_objects()), flush=True)

app.start(["beat", "--pidfile="])
"""

_PAGE = """
import gc

class Made: pass

made = Made()

def page(environ, start_response):
    start_response("200 OK", [])
    return [str(all(each is not made for each in gc.get_objects())).encode()]
"""

Run = Callable[..., Program]


def environment(settings: Settings) -> dict[str, str]:
    return {
        "PYTHONPATH": str(CODE),
        "MONGO_URI": settings.mongo_uri,
        "MONGO_DATABASE": settings.mongo_database,
        "BROKER_URL": settings.broker_url,
    }


@pytest.mark.parametrize("program", [pytest.param(_WORKER, id="worker"), pytest.param(_BEAT, id="beat")])
def test_a_started_process_leaves_what_its_start_made_out_of_collections(
    program: str, settings: Settings, run: Run
) -> None:
    started = run(sys.executable, "-c", program, **environment(settings))
    assert started.wait_for(r"settled: (\w+)")[1] == "True"


def test_a_process_of_the_api_leaves_what_its_start_made_out_of_collections(
    settings: Settings, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "served.py").write_text(_PAGE)
    # Our own class freezes what it loads; with another one it is the configuration's hook that has to do it.
    options = ("--worker-class", "gthread", "--bind", f"127.0.0.1:{(port := free_port())}")
    config = ("--config", "python:scheduler_app.cli.gunicorn_config")
    command = (sys.executable, "-m", "gunicorn", *config, *options, "served:page")
    found_there = {**environment(settings), "PYTHONPATH": str(tmp_path)}
    run(*command, **found_there).wait_for("Booting worker")
    assert requests.get(f"http://127.0.0.1:{port}/").text == "True"

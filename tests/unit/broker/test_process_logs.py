"""What the processes of Celery log: in our form, and without banners where logs are JSON."""

import json
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from celery.apps import worker
from celery.concurrency.thread import TaskPool
from celery.signals import celeryd_init, import_modules, setup_logging
from structlog.testing import capture_logs

from scheduler_app.broker import app
from scheduler_app.broker.app import set_up_flower_log, set_up_worker_log
from scheduler_app.config import Settings

JSON, TEXT = Settings(log_format="json", log_level="warning"), Settings(log_format="text")


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
    """What logs were set up with; receivers of Celery's signals, warnings and its output are as before."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(app, "configure_logs", lambda level, form: found.append((level, form)))
    for signal in (celeryd_init, import_modules, setup_logging):
        monkeypatch.setattr(signal, "receivers", [])
    monkeypatch.setattr(worker, "safe_say", worker.safe_say)
    shown = warnings.showwarning
    yield found
    logging.captureWarnings(False)
    warnings.showwarning = shown


def starting() -> Any:
    """What Celery hands to those who listen for the start of a worker."""
    consumed = SimpleNamespace(consume_from={"slow": 1, "callbacks": 1})
    instance = SimpleNamespace(
        concurrency=7, pool_cls=TaskPool, app=SimpleNamespace(amqp=SimpleNamespace(queues=consumed))
    )
    instance.emit_banner = "Celery's"
    celeryd_init.send(sender="w1@host", instance=instance)
    return instance


def test_a_worker_that_starts_says_so_in_a_line_of_json_and_shows_no_banner(
    configured: list[tuple[str, str]], capfd: pytest.CaptureFixture[str]
) -> None:
    set_up_worker_log(JSON)
    assert configured == [], "nothing starts yet"
    instance = starting()
    assert configured == [("warning", "json")]
    with capture_logs() as lines:
        instance.emit_banner()
    (line,) = lines
    assert (line["event"], line["concurrency"], line["pool"]) == ("worker.starting", 7, "thread")
    assert line["queues"] == ["callbacks", "slow"]
    # What Celery says within signal handlers is a line, too; and what Python warns of is logged.
    worker.safe_say("it ends", None)
    said = json.loads(capfd.readouterr().err)
    assert (said["event"], said["logger"], said["level"]) == ("it ends", "celery.apps.worker", "info")
    assert said["timestamp"].endswith("Z")
    assert warnings.showwarning.__module__ == "logging"


def test_where_logs_are_text_a_worker_keeps_its_banner(configured: list[tuple[str, str]]) -> None:
    said = worker.safe_say
    set_up_worker_log(TEXT)
    assert starting().emit_banner == "Celery's"
    assert worker.safe_say is said
    assert configured == [(TEXT.log_level, "text")]


class OfTornado(logging.Formatter):
    pass


@pytest.mark.parametrize(
    ("knows_tornado", "is_flower", "expected"), [(True, True, 1), (True, False, 0), (False, True, 0)]
)
def test_flower_alone_gets_our_form_with_its_own_level(
    configured: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    knows_tornado: bool,
    is_flower: bool,
    expected: int,
) -> None:
    module = ModuleType("tornado.log")
    module.LogFormatter = OfTornado  # type: ignore[attr-defined]
    if knows_tornado:
        monkeypatch.setitem(sys.modules, "tornado.log", module)
    else:
        monkeypatch.delitem(sys.modules, "tornado.log", raising=False)
    handler = logging.StreamHandler()
    handler.setFormatter(OfTornado() if is_flower else logging.Formatter())
    root = logging.getLogger()
    root.addHandler(handler)
    monkeypatch.setattr(root, "level", logging.ERROR)
    try:
        set_up_flower_log(JSON)
    finally:
        root.removeHandler(handler)
    assert configured == [("ERROR", "json")] * expected


def test_the_application_of_a_process_conceals_its_secrets_and_sets_up_what_is_logged(
    configured: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)  # where no file has settings
    for name, value in (("BROKER_URL", "memory://"), ("LOG_FORMAT", "json"), ("LOG_LEVEL", "warning")):
        monkeypatch.setenv(name, value)
    did: list[Any] = []
    monkeypatch.setattr(app, "conceal_secrets", did.append)
    monkeypatch.setattr(app, "require_login_for_metrics", lambda: did.append("login"))
    monkeypatch.setattr(app, "set_up_flower_log", did.append)
    made = app.current.__wrapped__()
    assert made.conf.include == [app.WORKER_PROCESS]
    assert did == [made.settings]
    assert configured == []
    setup_logging.send(sender=None, loglevel="DEBUG")
    assert configured == [("warning", "json")]
    starting()
    assert configured == [("warning", "json")] * 2
    import_modules.send(sender=made)
    assert did[1:] == ["login", made.settings]

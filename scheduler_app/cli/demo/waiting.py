"""Finds the deployment that is to be filled, and waits until it answers."""

import threading
from pathlib import Path

import requests

from scheduler_app.cli.addresses import api_url
from scheduler_app.cli.run_file import FILE_NAME
from scheduler_app.clock import monotonic
from scheduler_app.config import Settings, load_settings

_PAUSE_SECONDS = 0.5


def running_settings(config: str | None, data_dir: Path, wait: float) -> Settings:
    """The settings of the deployment, as soon as its API is ready, or after `wait` seconds in any case.
    Raises InvalidSetting."""
    end, pause, run_file = monotonic() + wait, threading.Event(), data_dir / FILE_NAME
    while True:
        found = config or (str(run_file) if run_file.exists() else None)
        settings = load_settings(found)
        if (found and _is_ready(settings)) or monotonic() >= end:
            return settings
        pause.wait(_PAUSE_SECONDS)


def _is_ready(settings: Settings) -> bool:
    try:
        return requests.get(f"{api_url(settings)}/readyz", timeout=2).ok
    except requests.RequestException:
        return False

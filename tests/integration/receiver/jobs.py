"""The work of the manual's receivers, which a test steers by a callback: it may fail, and wait."""

import time
from pathlib import Path


def back_up(name: str, order: dict[str, str]) -> None:
    """Fails until the file `after` exists, and lasts until the file `until` does."""
    print(f"started {name} {order['n']}", flush=True)
    if "after" in order and not Path(order["after"]).exists():
        raise RuntimeError("not yet")
    while "until" in order and not Path(order["until"]).exists():
        time.sleep(0.01)
    print(f"backed up {name} {order['n']}", flush=True)

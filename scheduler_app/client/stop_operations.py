"""Each operation on kill switches and blackouts as a call. `scheduler.py` says what the arguments mean."""

from collections.abc import Mapping
from typing import Any

from scheduler_app.client.calls import Call, delete, get, put, without_none
from scheduler_app.client.record import Json
from scheduler_app.client.request_values import named_path
from scheduler_app.client.results import KillSwitch


def kill_switch_on(which: Json, note: str | None) -> Call[KillSwitch]:
    return put("/api/v1/kill-switch", KillSwitch.of, without_none(which | {"note": note}))


def kill_switch_off(which: Json) -> Call[int]:
    def read(answer: Json) -> int:
        return int(answer["held"])

    query = {name: "true" if value is True else value for name, value in without_none(which).items()}
    return Call("DELETE", "/api/v1/kill-switch", read, query)


def kill_switches() -> Call[tuple[KillSwitch, ...]]:
    def read(answer: Json) -> tuple[KillSwitch, ...]:
        return tuple(map(KillSwitch.of, answer["kill_switches"]))

    return get("/api/v1/kill-switch", read)


def stopped_by(everything: bool, tag: str | None, destination: str | None) -> Json:
    """What a kill switch stops. Raises ValueError unless it is one of the three."""
    which = {"all": everything or None, "tag": tag, "destination": destination}
    if len(without_none(which)) != 1:
        raise ValueError("give one of everything, tag and destination")
    return which


def put_blackout(name: str, fields: Mapping[str, Any], dry_run: bool) -> Call[Json]:
    return put(_blackout_path(name), dict, dict(fields), dry_run=dry_run)


def get_blackout(name: str) -> Call[Json]:
    return get(_blackout_path(name), dict)


def blackouts() -> Call[tuple[Json, ...]]:
    def read(answer: Json) -> tuple[Json, ...]:
        return tuple(answer["blackouts"])

    return get("/api/v1/blackouts", read)


def delete_blackout(name: str) -> Call[None]:
    return delete(_blackout_path(name))


def _blackout_path(name: str) -> str:
    return named_path("blackouts", name)

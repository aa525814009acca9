"""The operations on kill switches and blackouts."""

from collections.abc import Mapping
from typing import Any

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, path_of, without_none
from scheduler_app.client.methods import operation
from scheduler_app.client.record import Json
from scheduler_app.client.results import KillSwitch


class StopOperations:
    """What stops callbacks without changing a schedule."""

    @operation
    def kill_switch_on(
        self,
        *,
        everything: bool = False,
        tag: str | None = None,
        destination: str | None = None,
        note: str | None = None,
    ) -> Call[KillSwitch]:
        """Stops everything, a tag or a destination: within a second nothing of it is sent. No schedule is
        changed. Raises ValueError unless one of the three is given."""
        body = _stopped_by(everything, tag, destination) | without_none({"note": note})
        return calls.put("/api/v1/kill-switch", KillSwitch.of, body)

    @operation
    def kill_switch_off(
        self, *, everything: bool = False, tag: str | None = None, destination: str | None = None
    ) -> Call[int]:
        """Releases it; returns how many events were held and are due again, 10,000 at most."""
        which = _stopped_by(everything, tag, destination)
        query = {name: "true" if value is True else value for name, value in which.items()}
        return Call("DELETE", "/api/v1/kill-switch", lambda answer: int(answer["held"]), query)

    @operation
    def kill_switches(self) -> Call[tuple[KillSwitch, ...]]:
        """Those that are on."""
        return calls.get("/api/v1/kill-switch", calls.each(KillSwitch.of, "kill_switches"))

    @operation
    def put_blackout(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Call[Json]:
        """Sets a blackout, or replaces the one of that name; `fields` are those of the API. `result` is
        `created`, `changed` or `unchanged`. `dry_run` changes nothing."""
        return calls.put(path_of("blackouts", name), dict, fields, dry_run=dry_run)

    @operation
    def get_blackout(self, name: str) -> Call[Json]:
        """One as the API shows it, with its present or next window."""
        return calls.get(path_of("blackouts", name), dict)

    @operation
    def blackouts(self) -> Call[tuple[Json, ...]]:
        """All blackouts as the API shows them, each with its present or next window."""
        return calls.get("/api/v1/blackouts", calls.each(dict, "blackouts"))

    @operation
    def delete_blackout(self, name: str) -> Call[None]:
        """Removes a blackout."""
        return calls.delete(path_of("blackouts", name))


def _stopped_by(everything: bool, tag: str | None, destination: str | None) -> Json:
    """What a kill switch stops. Raises ValueError unless it is one of the three."""
    which = without_none({"all": everything or None, "tag": tag, "destination": destination})
    if len(which) != 1:
        raise ValueError("give one of everything, tag and destination")
    return which

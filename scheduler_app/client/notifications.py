"""The operations on who is told of failures, on what is not told for a while, and on heartbeats, of which
people are told when they are missed."""

from collections.abc import Mapping
from typing import Any

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, path_of, without_none
from scheduler_app.client.methods import operation
from scheduler_app.client.record import Json


class NotificationOperations:
    """Who is told of what."""

    @operation
    def put_heartbeat(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Call[Json]:
        """Sets when something outside has to ping, or changes it; `fields` are those of the API. The answer
        to its creation has the secret `ping_url`, which is never shown again. `dry_run` changes nothing."""
        return calls.put(path_of("heartbeats", name), dict, fields, dry_run=dry_run)

    @operation
    def get_heartbeat(self, name: str) -> Call[Json]:
        """One as the API shows it, with its newest pings and what the last one said."""
        return calls.get(path_of("heartbeats", name), dict)

    @operation
    def heartbeats(self) -> Call[tuple[Json, ...]]:
        """All heartbeats as the API shows them."""
        return calls.get("/api/v1/heartbeats", calls.each(dict, "heartbeats"))

    @operation
    def ping_heartbeat(
        self,
        name: str,
        *,
        kind: str | None = None,
        exit_status: int | None = None,
        output: str | None = None,
    ) -> Call[Json]:
        """Reports a run that has succeeded, or that it was of another `kind` (`start`, `fail`) or ended with
        this exit status; `output` is what it has written. Returns the heartbeat."""
        body = without_none({"kind": kind, "exit_status": exit_status, "output": output})
        return calls.post(path_of("heartbeats", name, "ping"), dict, body)

    @operation
    def rotate_heartbeat_token(self, name: str) -> Call[Json]:
        """Gives it another secret `ping_url`, which is shown once; the old one opens nothing any more."""
        return calls.post(path_of("heartbeats", name, "token"), dict)

    @operation
    def delete_heartbeat(self, name: str) -> Call[None]:
        """Removes a heartbeat."""
        return calls.delete(path_of("heartbeats", name))

    @operation
    def put_notification(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Call[Json]:
        """Sets who is told of failures, or replaces the notification of that name; `fields` are those of the
        API. `result` is `created`, `changed` or `unchanged`. `dry_run` changes nothing."""
        return calls.put(path_of("notifications", name), dict, fields, dry_run=dry_run)

    @operation
    def get_notification(self, name: str) -> Call[Json]:
        """One as the API shows it, its secrets masked."""
        return calls.get(path_of("notifications", name), dict)

    @operation
    def notifications(self) -> Call[tuple[Json, ...]]:
        """All notifications as the API shows them."""
        return calls.get("/api/v1/notifications", calls.each(dict, "notifications"))

    @operation
    def delete_notification(self, name: str) -> Call[None]:
        """Removes a notification."""
        return calls.delete(path_of("notifications", name))

    @operation
    def test_notification(self, name: str) -> Call[tuple[str, ...]]:
        """Sends a message to each of its channels; returns the ids of the messages."""
        path = path_of("notifications", name, "test")
        return calls.post(path, lambda answer: tuple(answer["message_ids"]))

    @operation
    def put_silence(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Call[Json]:
        """Sets what is not told for a while, or replaces the silence of that name; as `put_notification`."""
        return calls.put(path_of("silences", name), dict, fields, dry_run=dry_run)

    @operation
    def silences(self) -> Call[tuple[Json, ...]]:
        """All silences as the API shows them."""
        return calls.get("/api/v1/silences", calls.each(dict, "silences"))

    @operation
    def delete_silence(self, name: str) -> Call[None]:
        """Removes a silence."""
        return calls.delete(path_of("silences", name))

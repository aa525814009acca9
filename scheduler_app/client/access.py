"""Keys of the API, people and tenants: methods of `Scheduler` and `AsyncScheduler`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scheduler_app.client import calls
from scheduler_app.client.calls import Call, instants, path_of, without_none
from scheduler_app.client.methods import listing, operation
from scheduler_app.client.record import Json


class AccessOperations:
    """Every method raises SchedulerError; most need a key with the scope `admin`."""

    @operation
    def create_key(
        self,
        name: str,
        scopes: Sequence[str],
        *,
        tenant: str | None = None,
        tags: Sequence[str] | None = None,
        expires_at: datetime | str | None = None,
        requests_per_second: float | None = None,
        installation: bool = False,
        idempotency_key: str | None = None,
    ) -> Call[Json]:
        """Makes a key of the API with some of the scopes `read`, `trigger`, `write` and `admin`; its `key` is
        in this answer alone. With `tags` it is for schedules with one of these alone; with
        `requests_per_second` more requests are refused; with `installation` it acts in every tenant."""
        body: dict[str, Any] = {"name": name, "scopes": list(scopes)} | instants({"expires_at": expires_at})
        body |= without_none({"tenant": tenant, "installation": installation or None})
        body |= without_none({"requests_per_second": requests_per_second})
        body |= {"tags": list(tags)} if tags else {}
        return calls.post("/api/v1/keys", dict, body, key=idempotency_key)

    @operation
    def keys(self) -> Call[tuple[Json, ...]]:
        """All stored keys, the newest first: when each was used last and from where, never the key itself."""
        return calls.get("/api/v1/keys", calls.each(dict, "keys"))

    @operation
    def get_key(self, key_id: str) -> Call[Json]:
        """One stored key, without the key itself."""
        return calls.get(path_of("keys", key_id), dict)

    @operation
    def rotate_key(self, key_id: str, *, overlap: timedelta | None = None) -> Call[Json]:
        """Replaces a key by another one with the same id, which is in this answer alone; the old one opens
        until `overlap` is over."""
        body = without_none({"overlap_seconds": None if overlap is None else int(overlap.total_seconds())})
        return calls.post(path_of("keys", key_id, "rotate"), dict, body)

    @operation
    def revoke_key(self, key_id: str) -> Call[None]:
        """Deletes a key; within five seconds it opens nothing."""
        return calls.delete(path_of("keys", key_id))

    @operation
    def revoke_leaked_key(self, key: str) -> Call[None]:
        """Deletes the key with this text, which is all that is needed."""
        call: Call[None] = calls.post("/api/v1/keys/revoke-leaked", lambda _: None, {"key": key})
        return replace(call, accept_404_after_retry=True)

    @operation
    def people(self) -> Call[tuple[Json, ...]]:
        """The people who have signed in with an account, who was seen last first."""
        return calls.get("/api/v1/people", calls.each(dict, "people"))

    @operation
    def get_person(self, person_id: str) -> Call[Json]:
        """One as the API shows him or her."""
        return calls.get(path_of("people", person_id), dict)

    @operation
    def end_person_sessions(self, person_id: str) -> Call[int]:
        """Ends every sign-in of a person, in browsers and on command lines; gives how many there were."""
        path = path_of("people", person_id, "sessions")
        return Call("DELETE", path, lambda said: int(said["ended"]))

    @operation
    def redeem_verifier(self, verifier: str, *, code: str | None = None) -> Call[Json]:
        """The `token` of a command line that a person has let in, until `expires_at`; a 404 until then."""
        body = without_none({"verifier": verifier, "code": code})
        return calls.post("/api/v1/sign-in/token", dict, body)

    @operation
    def end_sign_in(self, token: str) -> Call[None]:
        """Ends the sign-in of a command line, whose token is all that is needed."""
        call: Call[None] = calls.post("/api/v1/sign-in/end", lambda _: None, {"token": token})
        return replace(call, accept_404_after_retry=True)

    @operation
    def put_tenant(self, name: str, fields: Mapping[str, Any], *, dry_run: bool = False) -> Call[Json]:
        """Makes a tenant, or changes it; `fields` are those of the API. `result` is `created`, `changed` or
        `unchanged`. `dry_run` changes nothing."""
        return calls.put(path_of("tenants", name), dict, fields, dry_run=dry_run)

    @operation
    def get_tenant(self, name: str) -> Call[Json]:
        """One as the API shows it."""
        return calls.get(path_of("tenants", name), dict)

    @operation
    def tenants(self) -> Call[tuple[Json, ...]]:
        """All tenants, by name."""
        return calls.get("/api/v1/tenants", calls.each(dict, "tenants"))

    @listing
    def export_tenant(self, name: str, *, secrets: bool = False) -> Call[Json]:
        """Yields everything of a tenant: a first line that says what it is, a line for each document, and a
        last one with `end` and the counts, without which the export was broken off."""
        return calls.get(path_of("tenants", name, "export"), dict, {"secrets": "true"} if secrets else {})

    @operation
    def import_tenant(
        self, name: str, lines: Sequence[str], *, active: bool = False, dry_run: bool = False
    ) -> Call[Json]:
        """Takes lines of an export, the first one of which is its first line: `made`, `there` and `left_out`
        by collection, and the lines that were refused. With `active`, schedules go on where they stood."""
        body = {"lines": list(lines)} | ({"active": True} if active else {})
        return calls.post(path_of("tenants", name, "import"), dict, body, dry_run=dry_run)

    @operation
    def delete_tenant(self, name: str) -> Call[Json]:
        """Has everything of a tenant removed, and the tenant; returns the deletion, which beats carry out."""
        return Call("DELETE", path_of("tenants", name), dict, query={"confirm": name})

    @operation
    def delete_tag(self, tag: str, *, dry_run: bool = False) -> Call[Json]:
        """Has the schedules with a tag removed, and all that hangs on them; returns the deletion, which beats
        carry out. `dry_run` changes nothing, and gives what it would find as `found`."""
        query = {"tag": tag, "confirm": tag} | ({"dry_run": "true"} if dry_run else {})
        return Call("DELETE", "/api/v1/tags", dict, query=query)

    @operation
    def deletion(self, deletion_id: str) -> Call[Json]:
        """How far a deletion is: `counts` by collection, and `state`, which is `deleted` at the end."""
        return calls.get(path_of("deletions", deletion_id), dict)

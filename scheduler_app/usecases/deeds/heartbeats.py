"""What people do with heartbeats, and the pings that come from outside."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, Literal

from scheduler_app.domain.errors import Conflict, NotFound
from scheduler_app.domain.heartbeat import (
    DEFAULT_GRACE,
    MAX_HEARTBEATS,
    MAX_OUTPUT,
    Heartbeat,
    Ping,
    new_heartbeat,
)
from scheduler_app.domain.ids import WholeId, check_new_name, name_of, tenant_of
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.domain.triggers import Given, edited_trigger, new_trigger
from scheduler_app.domain.url_token import id_of
from scheduler_app.store import Store
from scheduler_app.store.heartbeats import CorruptHeartbeat
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.named import with_calendar

log = get_logger(__name__)

#: How often a write is tried again where a person edits the heartbeat at that moment.
TRIES: Final = 5
HeartbeatResult = Literal["created", "changed", "unchanged"]


@dataclass(frozen=True, slots=True)
class HeartbeatDraft:
    """What a person asks for."""

    given: Given
    """The fields of the trigger."""
    timing: ScheduleDraft
    """Its timezone and calendar, as schedules have them."""
    grace_seconds: float = DEFAULT_GRACE
    note: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class HeartbeatService:
    store: Store
    new_token: Callable[[str], tuple[str, str]]
    """See `domain.url_token`; a dry run makes none."""

    def all(self, tenant: str) -> list[Heartbeat | CorruptHeartbeat]:
        """A tenant's, by name."""
        return self.store.heartbeats.of(tenant)

    def find(self, heartbeat_id: WholeId) -> Heartbeat | CorruptHeartbeat:
        """Raises NotFound."""
        found = self.store.heartbeats.get(heartbeat_id)
        if found is None:
            raise NotFound(f"there is no heartbeat {name_of(heartbeat_id)[:64]}")
        return found

    def put(
        self, heartbeat_id: WholeId, draft: HeartbeatDraft, now: datetime
    ) -> tuple[Heartbeat, HeartbeatResult, str | None]:
        """Sets it under its name: as it is from now on, what that did, and the token of a new one, which
        cannot be shown again. Raises InvalidField, and Conflict where there are too many."""
        for _ in range(TRIES):
            existing = self.store.heartbeats.get(heartbeat_id)
            old = existing if isinstance(existing, Heartbeat) else None
            asked = self._asked(heartbeat_id, draft, old, now)
            if old is not None:
                after = old.edited(asked, now)
                if after is old:
                    return old, "unchanged", None
                if self.store.heartbeats.edit(after, old.revision):
                    return after, "changed", None
                continue
            token, digest = self.new_token(heartbeat_id)
            made = new_heartbeat(replace(asked, secret_sha256=digest), now)
            if existing is not None:
                self.store.heartbeats.replace_corrupt(made)
                return made, "changed", token
            self._check_new(heartbeat_id)
            if self.store.heartbeats.insert(made):
                log.info("heartbeat.created", message="A heartbeat was created", heartbeat=heartbeat_id)
                return made, "created", token
        raise _contended()

    def rotate(self, heartbeat_id: WholeId) -> tuple[Heartbeat, str]:
        """Gives it another token; the old one opens nothing from now on. Raises NotFound, Conflict."""
        found = self._sound(heartbeat_id)
        token, digest = self.new_token(heartbeat_id)
        if not self.store.heartbeats.rotate(heartbeat_id, digest):
            raise NotFound(f"there is no heartbeat {name_of(heartbeat_id)}")
        log.info("heartbeat.rotated", message="A heartbeat has another URL", heartbeat=heartbeat_id)
        return found, token

    def delete(self, heartbeat_id: WholeId, now: datetime) -> None:
        """With it goes the cause that tells of it. Raises NotFound."""
        found = self.find(heartbeat_id)
        if not self.store.heartbeats.delete(heartbeat_id):
            raise NotFound(f"there is no heartbeat {name_of(heartbeat_id)}")
        if isinstance(found, Heartbeat):
            self.store.causes.end(found.cause_key, now)
        log.info("heartbeat.deleted", message="A heartbeat was deleted", heartbeat=heartbeat_id)

    def ping(self, heartbeat_id: WholeId, ping: Ping, output: bytes) -> Heartbeat:
        """Raises NotFound, Conflict."""
        for _ in range(TRIES):
            after = self._sound(heartbeat_id).pinged(ping)
            if self.store.heartbeats.ping(after, ping, _text(output)):
                # With the ping itself, beside which others may have come.
                return self._sound(heartbeat_id)
        raise _contended()

    def ping_by_token(self, token: str, ping: Ping, output: bytes) -> Heartbeat | None:
        """None where the token opens nothing. Raises Conflict."""
        for _ in range(TRIES):
            found = self.store.heartbeats.get(WholeId(id_of(token)))
            if not isinstance(found, Heartbeat) or not found.opened_by(token):
                return None
            after = found.pinged(ping)
            if self.store.heartbeats.ping(after, ping, _text(output)):
                return after
        raise _contended()

    def _sound(self, heartbeat_id: WholeId) -> Heartbeat:
        found = self.find(heartbeat_id)
        if isinstance(found, CorruptHeartbeat):
            raise Conflict(f"the stored heartbeat {found.name} is corrupt: {found.reason}. Set it again")
        return found

    def _asked(
        self, heartbeat_id: WholeId, draft: HeartbeatDraft, old: Heartbeat | None, now: datetime
    ) -> Heartbeat:
        timing = with_calendar(tenant_of(heartbeat_id), draft.timing, self.store)
        context = timing.context(None, None, now)
        if old is None:
            trigger = new_trigger(draft.given, context)
        else:
            # A rule that is given again in the same words goes on: an interval does not begin anew.
            trigger = edited_trigger(
                draft.given, old.trigger, context, old.created_at, had_calendar=old.calendar is not None
            )
        return Heartbeat(
            id=heartbeat_id,
            trigger=trigger,
            calendar=timing.observed(None, trigger),
            grace_seconds=draft.grace_seconds,
            note=draft.note,
            tags=draft.tags,
            secret_sha256="",
            created_at=now if old is None else old.created_at,
            since=now,
        )

    def _check_new(self, heartbeat_id: WholeId) -> None:
        check_new_name(name_of(heartbeat_id))
        if self.store.heartbeats.count(tenant_of(heartbeat_id)) >= MAX_HEARTBEATS:
            raise Conflict(f"there are {MAX_HEARTBEATS} heartbeats: delete some that nothing pings any more")


def _contended() -> Conflict:
    return Conflict("the heartbeat is being changed by others at this moment; try again")


def _text(output: bytes) -> str | None:
    return output[:MAX_OUTPUT].decode("utf-8", "replace") or None

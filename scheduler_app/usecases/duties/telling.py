"""Tell: compares causes with the rules of notifications, and makes the messages that are owed.

What is to be told is noted first, and its message made after that, under an id that is derived from the
rule, the cause and the change: whoever dies in between leaves a note, of which the next beat makes the same
message.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from scheduler_app.domain.cause import FACTS, Cause
from scheduler_app.domain.ids import compact, name_of
from scheduler_app.domain.notification_rule import (
    DEAD,
    END,
    GATHERING,
    HOUR,
    MAX_AN_HOUR,
    NotificationRule,
    Telling,
    Told,
    message_name,
)
from scheduler_app.store import Store
from scheduler_app.store.silences import LastingSilences
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.notices import Notices

log = get_logger(__name__)

#: Another beat tells of a rule after so long where the one that had the turn died.
TURN_SECONDS = 30.0


class _Owed(NamedTuple):
    """A change that is to be told, and since when."""

    due: datetime
    cause_id: str
    change: str


@dataclass(frozen=True)
class RuleTelling:
    """The duty. Any number of beats may do it at once: of a rule one tells at a time."""

    store: Store
    notices: Notices

    def tell_page(self, now: datetime) -> bool:
        """Tells what is owed of all rules. It costs one question where there is no rule. Raises a
        STORE_FAULT."""
        rules = self.store.notification_rules.everybodys()
        if not rules:
            return False
        living: dict[str, list[Cause]] = {}
        for cause in self.store.causes.living():
            living.setdefault(cause.tenant, []).append(cause)
        silences = self.store.silences.lasting(now)
        for rule in rules:
            self._tell(rule, living.get(rule.tenant, []), silences, now)
        return False

    def _tell(
        self, rule: NotificationRule, causes: Sequence[Cause], silences: LastingSilences, now: datetime
    ) -> None:
        if not rule.may_ring(now):
            return
        if not self.store.tellings.owed(rule.id) and not self._owed(rule, causes, silences, now):
            return
        token = self.store.notification_rules.take_turn(rule.id, seconds=TURN_SECONDS)
        if token is None:
            return
        # What the beat that had the turn before has noted is seen now.
        owed = self._owed(rule, causes, silences, now)
        for ends in (False, True):
            self._note(rule, [each for each in owed if (each.change == END) is ends], now, ends=ends)
        self.notices.make(rule, now)
        self.store.notification_rules.end_turn(rule.id, token)

    def _owed(
        self, rule: NotificationRule, causes: Sequence[Cause], silences: LastingSilences, now: datetime
    ) -> list[_Owed]:
        begun = self.store.tellings.open(rule.id)
        after = timedelta(seconds=rule.after_seconds)
        found = []
        for cause in causes:
            told = begun.get(cause.id)
            change = rule.owed(cause, told, now)
            if change is not None and silences.of(cause) is None:
                found.append(_Owed(cause.since + after if told is None else now, cause.id, change))
        found += self._dead_letters(rule, causes, silences, now)
        return sorted([*found, *self._ends(rule, causes, begun)])

    def _dead_letters(
        self, rule: NotificationRule, causes: Iterable[Cause], silences: LastingSilences, now: datetime
    ) -> list[_Owed]:
        some = [each for each in causes if rule.owes_dead_letters(each) and silences.of(each) is None]
        if not some:
            return []
        known = self.store.tellings.known([_telling(rule, each.id, DEAD, now, "").id for each in some])
        return [
            _Owed(cause.last, cause.id, DEAD)
            for cause in some
            if _telling(rule, cause.id, DEAD, now, "").id not in known
        ]

    def _ends(
        self, rule: NotificationRule, causes: Sequence[Cause], begun: dict[str, Telling]
    ) -> list[_Owed]:
        """The ends of what was told; what is not told is closed at once."""
        goes_on = {each.id for each in causes if each.dismissed_at is None}
        gone = [each for each in begun.values() if each.cause_id not in goes_on]
        if not gone:
            return []
        found = self.store.causes.get_many([each.cause_id for each in gone])
        ends, silent = [], []
        for telling in gone:
            cause = found.get(telling.cause_id)
            if cause is None or cause.dismissed_at is not None:
                silent.append(telling)
            elif cause.over_at is not None:
                if Told.RECOVERED in rule.on and cause.key.kind not in FACTS:
                    ends.append(_Owed(cause.over_at, cause.id, END))
                else:
                    silent.append(telling)
        self.store.tellings.close(silent)
        return ends

    def _note(self, rule: NotificationRule, owed: Sequence[_Owed], now: datetime, *, ends: bool) -> None:
        """Notes that these changes are told: as many by a message of their own as an hour has room for, and
        all others together by its last one."""
        if not owed:
            return
        alone, is_full = self.store.tellings.messages_since(rule.id, now - HOUR, ends=ends, most=MAX_AN_HOUR)
        room = max(0, MAX_AN_HOUR - 1 - alone)
        self.store.tellings.insert(
            [
                _telling(rule, cause_id, change, now, message_name(rule.id, cause_id, change))
                for _, cause_id, change in owed[:room]
            ],
            alone=True,
        )
        left = owed[room:]
        if left and not is_full and now - left[0].due >= GATHERING:
            shared = message_name(rule.id, compact(now), "ends" if ends else "more")
            self.store.tellings.insert(
                [_telling(rule, cause_id, change, now, shared) for _, cause_id, change in left],
                alone=False,
            )
            log.warning(
                "notifications.bounded",
                message="A notification tells of many causes in one message: its hour is full",
                notification=name_of(rule.id),
                count=len(left),
            )


def _telling(rule: NotificationRule, cause_id: str, change: str, now: datetime, message: str) -> Telling:
    return Telling(rule_id=rule.id, cause_id=cause_id, change=change, told_at=now, message=message)

"""The witness at work: some minutes after each hour it writes what was owed in it, and looks again at hours
with events that had not ended. It works at its own pace, and nothing else waits for it.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Event
from typing import Final

from scheduler_app.clock import clock, monotonic
from scheduler_app.config import Settings
from scheduler_app.domain.cause import CauseKey, CauseKind, found
from scheduler_app.domain.hash_chain import BEGINNING
from scheduler_app.domain.ids import whole_id
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.ledger import (
    HOUR,
    OF_LEDGER,
    Account,
    LedgerLine,
    hour_of,
    newest_judged,
    oldest_judged,
)
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.causes import Causes
from scheduler_app.store.ledger import History, Ledger
from scheduler_app.store.tenants import Tenants
from scheduler_app.telemetry import get_logger, metrics
from scheduler_app.witness.accounting import account_of

log = get_logger(__name__)

#: The share of its time that it works, at the most, while it reads pages.
BUSY_SHARE: Final = 0.25
#: Hours with events that had not ended are looked at again after so long, older ones after this share of
#: their age, and no more of them in one turn.
AGAIN_SECONDS: Final = 600.0
AGAIN_SHARE: Final = 1 / 24
MOST_AGAIN: Final = 3
#: Of so many hours those are chosen that were looked at the longest ago.
MOST_UNSETTLED: Final = 1_000
#: After a start, hours are made up from the last line on, and no more than these.
MOST_MADE_UP: Final = 48
#: After so long without a page read it hangs.
HANGS_SECONDS: Final = 300.0
#: Hours that other witnesses write at the same moment are tried again.
TRIES: Final = 10


@dataclass(frozen=True, slots=True)
class WitnessTurn:
    """What one turn did."""

    lines: int
    missing: int
    unexplained: int


class Witness:
    """Writes the ledger. Any number may run: an hour's line is written once."""

    def __init__(
        self, history: History, ledger: Ledger, causes: Causes, tenants: Tenants, *, look_back: timedelta
    ) -> None:
        """`look_back` is how long events are kept after their end, so that their hours can be judged, and
        `tenants` say where that is less."""
        self._history = history
        self._ledger = ledger
        self._causes = causes
        self._tenants = tenants
        self._look_back = look_back
        self._last: datetime | None = None
        self._looked_at: dict[datetime, datetime] = {}

    def turn(self, now: datetime, *, rest: Callable[[], None] = lambda: None) -> WitnessTurn:
        """Writes the lines of the hours that are over, and later ones of older ones. Raises a STORE_FAULT."""
        lines: list[LedgerLine] = []
        for hour in self._hours_to_judge(now):
            lines += self._write(hour, account_of(self._history, hour, rest=rest), now)
            self._last = hour
            self._looked_at[hour] = now
        for hour in self._hours_to_judge_again(now):
            lines += self._write(hour, account_of(self._history, hour, rest=rest), now)
        return WitnessTurn(
            len(lines),
            sum(line.account.counts.missing for line in lines),
            sum(line.account.counts.unexplained for line in lines),
        )

    def _hours_to_judge(self, now: datetime) -> list[datetime]:
        newest, oldest = newest_judged(now), oldest_judged(now, self._look_back)
        last = self._last or self._last_written()
        if last is None:
            return [newest]
        found = []
        hour = max(last + HOUR, newest - (MOST_MADE_UP - 1) * HOUR, oldest)
        while hour <= newest:
            found.append(hour)
            hour += HOUR
        return found

    def _hours_to_judge_again(self, now: datetime) -> list[datetime]:
        since = oldest_judged(now, self._look_back)
        unsettled = {hour for _, hour in self._ledger.unsettled(since, limit=MOST_UNSETTLED)}
        self._looked_at = {hour: at for hour, at in self._looked_at.items() if hour in unsettled}
        due = [
            hour for hour in unsettled if self._looked_at.get(hour, since) <= now - _again_after(now - hour)
        ]
        chosen = sorted(due, key=lambda hour: (self._looked_at.get(hour, since), hour))[:MOST_AGAIN]
        self._looked_at |= dict.fromkeys(chosen, now)
        return chosen

    def _last_written(self) -> datetime | None:
        known = (self._ledger.newest_hour(tenant) for tenant in self._ledger.tenants())
        return max((hour for hour in known if hour is not None), default=None)

    def _write(self, hour: datetime, accounts: Mapping[str, Account], now: datetime) -> list[LedgerLine]:
        """Appends a line for each tenant whose account differs from its last one of that hour, but for those
        that do not keep its events any more."""
        written, kept = [], self._tenants.retentions()
        for tenant, account in accounts.items():
            if tenant in kept and hour < oldest_judged(now, kept[tenant]):
                continue
            if (line := self._append(tenant, hour, account, now)) is not None:
                written.append(line)
        return written

    def _append(self, tenant: str, hour: datetime, account: Account, now: datetime) -> LedgerLine | None:
        for _ in range(TRIES):
            before = self._ledger.of_hour(tenant, hour)
            if before is not None and before.account == account:
                return None
            if before is not None:
                self._ledger.settle(tenant, hour, before.turn)
            self._note_alarms(tenant, hour, account, before.account if before else Account(), now)
            last = self._ledger.last(tenant)
            line = LedgerLine(
                tenant=tenant,
                number=last.number + 1 if last else 1,
                hour=hour,
                turn=before.turn + 1 if before else 1,
                written_at=now,
                account=account,
                previous=last.hash if last else BEGINNING,
            ).sealed()
            if self._ledger.append(line):
                _report(line)
                return line
        log.error(
            "witness.line_not_written",
            message="Another witness wrote the ledger at the same time, again and again; run one of them",
            tenant=tenant,
            hour=hour.isoformat(),
        )
        return None

    def _note_alarms(
        self, tenant: str, hour: datetime, account: Account, before: Account, now: datetime
    ) -> None:
        """Opens the cause of a tenant's ledger, and ends it with a newer hour of which nothing is wrong. That
        is done before the line is written: who dies in between does it again."""
        counts, known = account.counts, before.counts
        key = CauseKey(tenant, CauseKind.MISSED, whole_id(tenant, OF_LEDGER), OF_LEDGER)
        if counts.missing > known.missing or counts.unexplained > known.unexplained:
            what = f"{counts.missing} events are missing, {counts.unexplained} unexplained"
            self._causes.touch([found(key, now, now, f"of the hour from {shown_instant(hour)} {what}")])
        elif not counts.missing and not counts.unexplained:
            living = [each for each in self._causes.living(kinds=[CauseKind.MISSED]) if each.key == key]
            self._causes.write([each.over(now) for each in living if hour >= hour_of(each.last)])


def _again_after(age: timedelta) -> timedelta:
    """What has not ended for a day will hardly end in the next ten minutes; and it may never."""
    return max(timedelta(seconds=AGAIN_SECONDS), age * AGAIN_SHARE)


def _report(line: LedgerLine) -> None:
    counts = line.account.counts
    for kind, number, ids in (
        ("missing", counts.missing, line.account.missing),
        ("unexplained", counts.unexplained, line.account.unexplained),
    ):
        if number:
            metrics.ledger_alarms.labels(kind).inc(number)
            log.error(
                f"witness.{kind}",
                message=f"The ledger has {kind} events; `scheduler ledger` shows them",
                tenant=line.tenant,
                hour=line.hour.isoformat(),
                count=number,
                event_ids=list(ids[:10]),
            )


def paced(share: float = BUSY_SHARE) -> Callable[[], None]:
    """A `rest` that works for `share` of the time, and sleeps for the others."""
    began = monotonic()

    def rest() -> None:
        nonlocal began
        worked = monotonic() - began
        time.sleep(min(worked * (1 / share - 1), 1.0))
        began = monotonic()

    return rest


def witness_of(settings: Settings) -> tuple[Store, Witness]:
    """A witness with a store of its own. Raises InvalidSetting and InvalidField."""
    store = Store(settings)
    look_back = timedelta(days=settings.retention_days)
    return store, Witness(store.history, store.ledger, store.causes, store.tenants, look_back=look_back)


class WitnessHealth:
    """Whether turns end: a process that hangs is restarted by who asks `/healthz`."""

    def __init__(self) -> None:
        self._alive_at = monotonic()

    def answered(self) -> None:
        """Notes that it works: a page was read, or MongoDB did not answer."""
        self._alive_at = monotonic()

    def trouble(self) -> str | None:
        """A sentence where it has done nothing for `HANGS_SECONDS`."""
        silent = monotonic() - self._alive_at
        return f"nothing was read for {silent:.0f} s" if silent > HANGS_SECONDS else None


def run(
    witness: Witness,
    stopped: Event,
    health: WitnessHealth,
    *,
    every_seconds: float = 60.0,
    once: bool = False,
) -> None:
    """Works until `stopped` is set, or for one turn."""
    pause = paced()

    def rest() -> None:
        health.answered()
        pause()

    while not stopped.is_set():
        try:
            done = witness.turn(clock.now(), rest=rest)
        except STORE_FAULTS as error:
            log.warning(
                "witness.waits",
                message="MongoDB does not answer; the witness tries again",
                error=str(error)[:300],
            )
        else:
            health.answered()
            metrics.ledger_lines.inc(done.lines)
            if done.lines:
                log.info("witness.wrote", message="The ledger has new lines", lines=done.lines)
            if once:
                return
        stopped.wait(every_seconds)

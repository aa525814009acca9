"""What people ask of the ledger: its hours, those of one tag, and whether it is as it was written."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from scheduler_app.clock import monotonic
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.hash_chain import Verification
from scheduler_app.domain.instants import shown_instant
from scheduler_app.domain.ledger import (
    HOUR,
    Account,
    LedgerLine,
    by_hour,
    hour_of,
    newest_judged,
    oldest_judged,
    verify,
)
from scheduler_app.store import Store
from scheduler_app.witness.accounting import account_of_schedules

#: The longest stretch of time that is answered at once, and of a tag's hours, which are counted anew.
MOST_HOURS: Final = 31 * 24
MOST_HOURS_OF_TAG: Final = 24
#: The schedules with a tag that are looked at, how many of them at a time, and for how long in all: a thread
#: of the API does it.
MOST_TAGGED: Final = 500
TAGGED_AT_ONCE: Final = 20
SECONDS_OF_TAG: Final = 5.0
#: Lines of one hour follow each other as its events end; more than these of a stretch of time are not read.
MOST_LINES: Final = 20_000
#: The lines that one call verifies.
MOST_VERIFIED: Final = 5_000


@dataclass(frozen=True, slots=True)
class HourOfTag:
    """What was owed to a tag's schedules in an hour; counted when it is asked for, and in no line."""

    hour: datetime
    account: Account


@dataclass(frozen=True)
class LedgerQuestions:
    store: Store
    kept: timedelta
    """How long events are kept after their end, where a tenant does not say less."""

    def hours(self, tenant: str, since: datetime, until: datetime) -> list[LedgerLine]:
        """The last line of each hour from `since` up to `until`. Raises InvalidField and a STORE_FAULT."""
        _check_range(since, until, MOST_HOURS)
        lines, more = self.store.ledger.lines(tenant, hour_of(since), until, limit=MOST_LINES)
        if more:
            raise InvalidField("to", f"there are more than {MOST_LINES} lines; ask for a shorter time")
        return by_hour(lines)

    def hours_of_tag(
        self, tenant: str, tag: str, since: datetime, until: datetime, now: datetime
    ) -> list[HourOfTag]:
        """What was owed to the schedules with a tag, hour by hour, of the hours that a witness would judge
        now. Raises InvalidField and a STORE_FAULT."""
        _check_range(since, until, MOST_HOURS_OF_TAG)
        oldest = oldest_judged(now, self._kept(tenant))
        if until <= oldest:
            raise InvalidField(
                "to",
                f"must come after {shown_instant(oldest)}: events of the hours before it may be removed;"
                " ask for later hours",
            )
        rows = self.store.history.tagged(tenant, tag, limit=MOST_TAGGED + 1)
        if len(rows) > MOST_TAGGED:
            raise InvalidField("tag", f"more than {MOST_TAGGED} schedules have it; ask for one of fewer")
        found, end = [], monotonic() + SECONDS_OF_TAG
        hour, end_of_judged = max(hour_of(since), oldest), newest_judged(now) + HOUR
        while hour < min(until, end_of_judged):
            account = Account()
            for first in range(0, len(rows), TAGGED_AT_ONCE):
                some = rows[first : first + TAGGED_AT_ONCE]
                account += account_of_schedules(self.store.history, some, hour)
                if monotonic() > end:
                    raise InvalidField(
                        "to", f"takes longer than {SECONDS_OF_TAG:g} s for this tag; ask for fewer hours"
                    )
            found.append(HourOfTag(hour, account))
            hour += HOUR
        return found

    def _kept(self, tenant: str) -> timedelta:
        known = self.store.tenants.get(tenant)
        days = known.retention_days if known else None
        return min(self.kept, timedelta(days=days)) if days else self.kept

    def verify(self, tenant: str, after: int = 0) -> tuple[Verification, int | None]:
        """Whether each of the next lines after the number `after` has the hash that the line after it names.
        The number is where to go on, None at the end. Raises a STORE_FAULT, and Corrupt."""
        known = self.store.ledger.chain(tenant, after - 1, limit=1) if after else []
        lines = self.store.ledger.chain(tenant, after, limit=MOST_VERIFIED)
        found = verify(lines, first=known[0] if known and known[0].number == after else None)
        is_last = len(lines) < MOST_VERIFIED or found.wrong is not None
        return found, None if is_last else lines[-1].number


def _check_range(since: datetime, until: datetime, hours: int) -> None:
    if until <= since:
        raise InvalidField("to", "must come after from")
    if until - since > timedelta(hours=hours):
        raise InvalidField("to", f"must be within {hours} hours after from")

"""Threads claim, record, cancel, recover and edit one event in any order: its history stays a legal one."""

import random
import threading
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from scheduler_app.domain.states import FINAL, TRANSITIONS, State
from scheduler_app.store import Store
from scheduler_app.store.events.outcomes import OutcomeRecord
from tests.builders import event
from tests.documents import event_document
from tests.integration.store.taking import take

ROUNDS = 20
THREADS = 6
STEPS = 12
SECOND = timedelta(seconds=1)


class Hands:
    """What one thread does to the event; it remembers the claims that it won."""

    def __init__(self, store: Store, event_id: str, now: datetime, seed: int) -> None:
        self.store, self.event_id, self.now = store, event_id, now
        self.draw = random.Random(seed)
        self.claims: list[str] = []
        self.accepted = 0

    def run(self) -> None:
        verbs: list[Callable[[], Any]] = [
            self.claim, self.claim, self.claim, self.record, self.record, self.dispatch,
            self.give_back, self.recover, self.recover, self.edit,
        ]  # fmt: skip
        for _ in range(STEPS):
            self.draw.choice(verbs)()

    def claim(self) -> None:
        # Half of the leases are over at once, as those of a worker that hangs.
        lease = self.draw.choice([-1.0, 60.0])
        token, won = self.store.claims.claim(
            [self.event_id], until=self.now, now=self.now, lease_seconds=lease, worker="w"
        )
        self.claims += [token] * len(won)

    def record(self) -> None:
        if self.claims:
            token = self.draw.choice(self.claims)
            state = self.draw.choice([State.COMPLETED, State.RETRYING, State.RETRYING, State.ERROR])
            due = self.now if state is State.RETRYING else None
            record = OutcomeRecord(self.event_id, token, state, "said", due, {"number": 1}, self.now)
            refused = self.store.outcomes.record([record])
            self.store.outcomes.record_late(refused) if refused else None

    def dispatch(self) -> None:
        """Half of them die before the message is out."""
        token, _ = take(self.store.outbox, self.now, limit=1, lease_seconds=-1)
        if self.draw.random() < 0.5:
            self.store.outbox.sent(token)

    def give_back(self) -> None:
        if self.claims:
            self.store.claims.give_back([self.event_id], self.draw.choice(self.claims), self.now, "back")

    def recover(self) -> None:
        self.store.recoveries.recover_workers(self.now, delay_seconds=0, limit=10)
        self.store.outbox.put_back_abandoned(self.now, limit=10)
        self.store.recoveries.recover_messages(self.now + 3600 * SECOND, grace_seconds=10, limit=10)

    def edit(self) -> None:
        """The cut of an edit, and a worker that has read of it after its claim; a person's cancel."""
        chance = self.draw.random()
        if chance < 0.1:
            self.store.cancellations.cancel_past_cut("s1", 2, self.now - SECOND, self.now, "cut")
        elif chance < 0.15:
            self.store.cancellations.cancel(self.event_id, self.now, "withdrawn")
        elif chance < 0.2 and self.claims:
            self.store.claims.cancel_claimed([self.event_id], self.draw.choice(self.claims), self.now, "void")


MOVES = {
    (source, target) for move in TRANSITIONS.values() for source in move.sources for target in move.targets
}


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_any_interleaving_leaves_a_legal_history(store: Store, now: datetime, seed: int) -> None:
    made = event(now)
    store.events.insert([made], now, "made")
    hands = [Hands(store, made.id, now, seed * 1000 + number) for number in range(THREADS)]
    threads = [threading.Thread(target=each.run) for each in hands]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = event_document(store, made.id)
    assert found is not None
    states = [State(line["status"]) for line in found["status"]]
    if len(states) <= 50:
        assert all(move in MOVES for move in pairwise(states)), states
    assert not FINAL & set(states[:-1]), "something moved a finished event"
    assert states[-1] == found["state"]
    claims = [attempt["claim"] for attempt in found["attempts"]]
    assert len(claims) == len(set(claims)), "one claim was counted twice"
    assert set(claims) <= {token for each in hands for token in each.claims}
    in_time = [attempt for attempt in found["attempts"] if not attempt.get("late")]
    assert found["attempt"] == len(in_time)
    final = found["state"] in FINAL
    assert final == ("due_at" not in found) == ("archived_at" in found)
    assert not final or not {"owner", "lease_until", "dispatcher"} & found.keys()

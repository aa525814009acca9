"""Attempts whose receivers say how their work went: each gets a token before its request is made."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from scheduler_app.domain.completion import digest
from scheduler_app.domain.completion_token import new_token
from scheduler_app.store.events.completions import Completions, Expected
from scheduler_app.worker.attempt import Attempt


def with_tokens(completions: Completions, attempts: Sequence[Attempt]) -> list[Attempt]:
    """The attempts, those that are awaited with tokens, and without those whose claims were lost meanwhile.
    Raises a STORE_FAULT."""
    found: list[Attempt] = []
    awaited: dict[str, Attempt] = {}
    expected: list[Expected] = []
    for attempt in attempts:
        if attempt.completion_seconds is None:
            found.append(attempt)
            continue
        token, event = new_token(), attempt.event
        awaited[event.id] = replace(attempt, event=event._replace(completion_token=token))
        expected.append(_expected(attempt, digest(token), attempt.completion_seconds))
    held = completions.expect(expected)
    return [*found, *(attempt for event_id, attempt in awaited.items() if event_id in held)]


def _expected(attempt: Attempt, digested: str, seconds: float) -> Expected:
    policy, tries = attempt.deliverable.retry, attempt.number - attempt.event.attempts_before
    return Expected(
        event_id=attempt.event.id,
        claim=attempt.token,
        digest=digested,
        number=attempt.number,
        seconds=seconds,
        # Decided now, as by a failed response: ending the attempt later needs no schedule.
        retry_in=None if policy.spent(tries) else timedelta(seconds=policy.delay(tries)),
    )

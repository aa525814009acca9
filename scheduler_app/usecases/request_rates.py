"""Requests of tenants and keys that have a limit, counted for all processes of the API together."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from scheduler_app.domain.flow_control import FlowRequest, Limiter, WaitReason
from scheduler_app.domain.request_rate import RateState, RequestRate
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)


@dataclass(frozen=True)
class RequestRates:
    """`limiter` counts; None, or one that is away, lets every request pass."""

    limiter: Limiter | None

    def take(self, rates: Sequence[RequestRate]) -> list[RateState]:
        """Counts a request against these limits; none of them is known while the limiter is away."""
        if self.limiter is None:
            return []
        # A slot of no length: requests in flight are not counted.
        request = (secrets.token_hex(8),)
        try:
            grants = self.limiter.decide(
                [FlowRequest(each, wanted=request, slot_seconds=0.0, has_begun=True) for each in rates]
            )
        except self.limiter.unavailable as error:
            log.warning(
                "api.rates_unknown",
                message="The requests of tenants and keys cannot be counted; all of them pass",
                error=str(error)[:300],
            )
            return []
        return [
            RateState(
                rate,
                0.0 if grant.granted or grant.why is not WaitReason.RATE else grant.wait,
                int(grant.tokens or 0),
            )
            for rate, grant in zip(rates, grants, strict=True)
        ]

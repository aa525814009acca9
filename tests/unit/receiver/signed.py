"""Deliveries as the scheduler's own code writes them."""

from datetime import UTC, datetime

from scheduler_app.actions.http import headers_for

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
SECRET = "whsec_" + "b2xkIHNlY3JldCBvZiBhdCBsZWFzdCAyNCBieXRlcw=="
OTHER = "whsec_" + "bmV3IHNlY3JldCBvZiBhdCBsZWFzdCAyNCBieXRlcw=="
BODY = b'{"full": true}'


def headers(
    *,
    key: str = "s-1-20260302T120000Z",
    body: bytes = BODY,
    secrets: tuple[str, ...] = (SECRET,),
    hops: int = 0,
) -> dict[str, str]:
    """The headers of an attempt at NOW, after `hops` other callbacks."""
    found = headers_for(
        event_id=key,
        schedule_id="s",
        run_time=NOW,
        attempt=2,
        now=NOW,
        user_headers={"X-Team": "ops"},
        body=body,
        signing_secrets=secrets,
        hops=hops,
    )
    return dict(found)

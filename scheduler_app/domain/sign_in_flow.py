"""A sign-in with the provider, from the browser's departure to its return; and how it may fail."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from scheduler_app.domain.errors import SchedulerError


class ProviderAway(SchedulerError):
    """The provider gave no answer in time, or none that can be used."""


class SignInRefused(SchedulerError):
    """The provider refuses, or what it sends is not to be trusted; the sentence is for the person."""


@dataclass(frozen=True, slots=True)
class Flow:
    """What ties the provider's answer to the browser that began the sign-in: all of it follows from a secret
    that this browser keeps in a cookie."""

    secret: str = field(repr=False)

    @staticmethod
    def begin() -> "Flow":
        return Flow(secrets.token_urlsafe(32))

    @property
    def state(self) -> str:
        return self._derived("state")

    def is_state(self, text: str) -> bool:
        """Whether an answer belongs to this sign-in."""
        return hmac.compare_digest(text.encode("utf-8", "surrogatepass"), self.state.encode())

    @property
    def nonce(self) -> str:
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        return self._derived("verifier")

    def _derived(self, what: str) -> str:
        return hmac.new(self.secret.encode(), what.encode(), hashlib.sha256).hexdigest()

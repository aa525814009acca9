"""What the provider signs, checked: ID tokens (OpenID Connect Core, 3.1.3.7) and logout tokens (Back-Channel
Logout, 2.6).

Only signatures by one of the provider's own public keys count: never `none`, and never an algorithm whose key
is a shared secret, by which a public key could be taken for one.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from threading import Lock
from typing import Any, Final

from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import BadSignatureError, InvalidKeyIdError, JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import JWTClaimsRegistry

from scheduler_app.clock import monotonic
from scheduler_app.domain.sign_in_flow import ProviderAway

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"),
    "Ed25519",
)
#: How far the provider's clock may differ from ours.
LEEWAY_SECONDS: Final = 60
#: A logout token is accepted for so long after it was made.
_LOGOUT_SECONDS: Final = 600
KEYS_SECONDS: Final = 3600.0
#: A token that no known key has signed makes the keys be read again, not more often than this.
KEYS_AGAIN_SECONDS: Final = 30.0
MAX_KEYS: Final = 100
_LOGOUT_EVENT: Final = "http://schemas.openid.net/event/backchannel-logout"


class InvalidToken(Exception):
    """A token is not one of this provider for this client; the message says why, and quotes nothing of it."""


class ProviderKeys:
    """The provider's public keys: a process keeps them for an hour, and reads them again after a rotation."""

    def __init__(self, read: Callable[[], Mapping[str, Any]]) -> None:
        self._read = read
        self._lock = Lock()
        self._keys: KeySet | None = None
        self._read_at = self._again_at = float("-inf")

    def known(self) -> KeySet:
        """Raises ProviderAway."""
        with self._lock:
            keys, age = self._keys, monotonic() - self._read_at
        return keys if keys is not None and age < KEYS_SECONDS else self._fetched()

    def read_again(self) -> KeySet | None:
        """The keys as they are now; None where they were read again a moment ago. Raises ProviderAway."""
        with self._lock:
            if monotonic() - self._again_at < KEYS_AGAIN_SECONDS:
                return None
            self._again_at = monotonic()
        return self._fetched()

    def _fetched(self) -> KeySet:
        found = self._read()
        listed = found.get("keys")
        if not isinstance(listed, list) or len(listed) > MAX_KEYS:
            raise ProviderAway("its keys cannot be read")
        # Keys for encryption are not for signatures.
        usable = [each for each in listed if isinstance(each, dict) and each.get("use", "sig") == "sig"]
        try:
            keys = KeySet.import_key_set({"keys": usable})
        except (JoseError, ValueError, KeyError, TypeError) as error:
            raise ProviderAway(f"its keys cannot be read: {type(error).__name__}") from None
        with self._lock:
            self._keys, self._read_at = keys, monotonic()
        return keys


class TokenChecks:
    """Checks tokens of one issuer for one client."""

    def __init__(self, issuer: str, client_id: str, keys: ProviderKeys) -> None:
        self._issuer, self._client_id, self._keys = issuer, client_id, keys

    def id_token(
        self, text: str, now: datetime, *, nonce: str | None, access_token: str | None
    ) -> dict[str, Any]:
        """The claims of an ID token. `nonce` is what was sent with the request that led to it, None where
        none was. Raises InvalidToken and ProviderAway."""
        token = self._signed(text)
        checked = CodeIDToken(
            token.claims,
            token.header,
            options=self._expected(),
            params={"client_id": self._client_id, "nonce": nonce, "access_token": access_token},
        )
        try:
            checked.validate(now=int(now.timestamp()), leeway=LEEWAY_SECONDS)
        except JoseError as error:
            raise InvalidToken(_reason(error)) from None
        if not token.claims["sub"]:
            raise InvalidToken("its sub is empty")
        return dict(token.claims)

    def logout_token(self, text: str, now: datetime) -> tuple[str | None, str | None]:
        """The subject and the session that a logout token ends; at least one of them. Raises InvalidToken and
        ProviderAway."""
        token = self._signed(text)
        claims = token.claims
        registry = JWTClaimsRegistry(
            int(now.timestamp()), LEEWAY_SECONDS, iat={"essential": True}, **self._expected()
        )
        try:
            registry.validate(claims)
        except JoseError as error:
            raise InvalidToken(_reason(error)) from None
        events = claims.get("events")
        if not isinstance(events, dict) or _LOGOUT_EVENT not in events or "nonce" in claims:
            raise InvalidToken("it is no logout token")
        if claims["iat"] < now.timestamp() - _LOGOUT_SECONDS - LEEWAY_SECONDS:
            raise InvalidToken("it was made too long ago")
        subject, session = (_text_or_none(claims.get(name)) for name in ("sub", "sid"))
        if subject is None and session is None:
            raise InvalidToken("it names neither a sub nor a sid")
        return subject, session

    def _expected(self) -> dict[str, Any]:
        return {
            "iss": {"essential": True, "value": self._issuer},
            "aud": {"essential": True, "value": self._client_id},
        }

    def _signed(self, text: str) -> jwt.Token:
        """The token with this text, its signature checked. Raises InvalidToken and ProviderAway."""
        try:
            return jwt.decode(text, self._keys.known(), ALGORITHMS)
        except (BadSignatureError, InvalidKeyIdError) as error:
            # It may be signed by a key that is newer than those that are known.
            again = self._keys.read_again()
            if again is None:
                raise InvalidToken(_reason(error)) from None
        except (JoseError, ValueError, TypeError) as error:
            raise InvalidToken(_reason(error)) from None
        try:
            return jwt.decode(text, again, ALGORITHMS)
        except (JoseError, ValueError, TypeError) as error:
            raise InvalidToken(_reason(error)) from None


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _reason(error: Exception) -> str:
    """Which check failed. Other errors than those of claims may quote the token."""
    claim = getattr(error, "claim", None)
    if claim is not None:
        return f"its {claim} is wrong or has passed ({type(error).__name__})"
    return f"its signature or form is wrong ({type(error).__name__})"

"""The provider: where its endpoints are, and the steps of a sign-in with it.

Authorization code with PKCE (RFC 7636), state and nonce, for a client with a secret. Authlib writes the
requests and reads the answers, joserfc checks signatures (`tokens`), `exchange` bounds what is waited for.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import Any, Final
from urllib.parse import urlencode

import requests
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session

from scheduler_app.clock import monotonic
from scheduler_app.domain.errors import SchedulerError
from scheduler_app.domain.sign_in_flow import Flow, ProviderAway, SignInRefused
from scheduler_app.oidc.exchange import Exchanges, bound, is_safe, timeouts
from scheduler_app.oidc.tokens import InvalidToken, ProviderKeys, TokenChecks

#: How long what the provider says of itself is kept; a sign-in begins with what is younger.
DISCOVERY_SECONDS: Final = 3600.0
FRESH_SECONDS: Final = 30.0
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_OPTIONAL_ENDPOINTS: Final = ("userinfo_endpoint", "end_session_endpoint")
MAX_ID_TOKEN: Final = 16 * 1024
#: Errors of the token endpoint that are about this client, and not about the person.
_OUR_ERRORS: Final = ("invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_request")
_TEMPORARY: Final = ("server_error", "temporarily_unavailable", "slow_down")


@dataclass(frozen=True, slots=True)
class ProviderTokens:
    """What the provider gives of one person."""

    claims: Mapping[str, Any]
    id_token: str = field(repr=False)
    refresh_token: str | None = field(repr=False)


class Provider:
    def __init__(
        self, issuer: str, client_id: str, client_secret: str, scopes: str, redirect_url: str, home_url: str
    ) -> None:
        """Nothing is asked yet. `redirect_url` is where browsers come back after a sign-in, `home_url` after
        signing out."""
        self._issuer, self._client_id, self._client_secret = issuer, client_id, client_secret
        self._scopes, self._redirect_url, self._home_url = scopes, redirect_url, home_url
        self._exchanges = Exchanges()
        self._lock = Lock()
        self._discovered: Mapping[str, Any] | None = None
        self._discovered_at = float("-inf")
        keys = ProviderKeys(lambda: self._exchanges.get(self._discovery()["jwks_uri"]))
        self._checks = TokenChecks(issuer, client_id, keys)

    def authorization_url(self, flow: Flow) -> str:
        """Where a browser goes to sign in. Raises ProviderAway where the provider does not answer now."""
        found = self._discovery(FRESH_SECONDS)
        with self._session(found) as session:
            url, _ = session.create_authorization_url(
                found["authorization_endpoint"],
                state=flow.state,
                code_verifier=flow.verifier,
                nonce=flow.nonce,
            )
        return str(url)

    def redeem(self, code: str, flow: Flow, now: datetime) -> ProviderTokens:
        """What the provider gives for a code. Raises SignInRefused and ProviderAway."""
        answer = self._ask(
            lambda session, url: session.fetch_token(
                url,
                grant_type="authorization_code",
                code=code,
                code_verifier=flow.verifier,
                timeout=timeouts(),
                allow_redirects=False,
            )
        )
        if not isinstance(answer.get("id_token"), str):
            raise SignInRefused("your company's sign-in has sent no ID token")
        return self._checked(answer, now, nonce=flow.nonce)

    def refresh(self, refresh_token: str, subject_of: Callable[[str], bool], now: datetime) -> ProviderTokens:
        """What the provider gives for a refresh token; its claims are empty where it says nothing new of the
        person. `subject_of` tells whether a subject is the person that it is of. Raises SignInRefused where
        the sign-in is over, and ProviderAway."""
        answer = self._ask(
            lambda session, url: session.refresh_token(
                url, refresh_token=refresh_token, timeout=timeouts(), allow_redirects=False
            )
        )
        if not isinstance(answer.get("id_token"), str):
            return ProviderTokens({}, "", _text_or_none(answer.get("refresh_token")))
        try:
            found = self._checked(answer, now, nonce=None)
        except ProviderAway:
            # The refresh token may have been replaced: without the new one, the next one would be refused.
            return ProviderTokens({}, "", _text_or_none(answer.get("refresh_token")))
        if not subject_of(found.claims["sub"]):
            raise SignInRefused("your company's sign-in has answered for somebody else")
        return found

    def sign_out_url(self, id_token: str) -> str | None:
        """Where a browser goes to sign out there, too; None where the provider has no such place, or does not
        answer."""
        try:
            url = self._discovery().get("end_session_endpoint")
        except ProviderAway:
            url = None
        if url is None:
            return None
        query = {"client_id": self._client_id, "post_logout_redirect_uri": self._home_url}
        if id_token:
            query["id_token_hint"] = id_token
        return f"{url}{'&' if '?' in url else '?'}{urlencode(query)}"

    def logged_out(self, logout_token: str, now: datetime) -> tuple[str | None, str | None]:
        """The subject and the session that the provider has ended. Raises SignInRefused and ProviderAway."""
        try:
            return self._checks.logout_token(logout_token, now)
        except InvalidToken as error:
            raise SignInRefused(f"this is no logout token of the provider: {error}") from None

    def _checked(self, answer: Mapping[str, Any], now: datetime, *, nonce: str | None) -> ProviderTokens:
        id_token, access_token = answer["id_token"], _text_or_none(answer.get("access_token"))
        try:
            claims = self._checks.id_token(id_token, now, nonce=nonce, access_token=access_token)
        except InvalidToken as error:
            raise SignInRefused(
                f"what your company's sign-in has sent is not to be trusted: {error}"
            ) from None
        if access_token is not None and (url := self._discovery().get("userinfo_endpoint")):
            # Many providers put groups and mail addresses there alone.
            said = self._exchanges.get(url, {"Authorization": f"Bearer {access_token}"})
            if said.get("sub") != claims["sub"]:
                raise SignInRefused("your company's sign-in has said who somebody else is")
            claims = {**said, **claims}
        kept = id_token if len(id_token) <= MAX_ID_TOKEN else ""
        return ProviderTokens(claims, kept, _text_or_none(answer.get("refresh_token")))

    def _ask(self, request: Callable[[OAuth2Session, str], Mapping[str, Any]]) -> dict[str, Any]:
        """What the token endpoint answers. Raises SignInRefused and ProviderAway."""
        found = self._discovery()
        url = found["token_endpoint"]

        def ask() -> dict[str, Any]:
            with self._session(found) as session:
                try:
                    return dict(request(session, url))
                except OAuthError as error:
                    raise _refusal(str(error.error)) from None
                except requests.RequestException:
                    raise
                except ValueError:
                    raise ProviderAway("its token endpoint answered what is no JSON object") from None

        return self._exchanges.run(url, ask)

    def _session(self, found: Mapping[str, Any]) -> OAuth2Session:
        methods = found.get("token_endpoint_auth_methods_supported")
        by_form = isinstance(methods, list) and "client_secret_basic" not in methods
        session = OAuth2Session(
            self._client_id,
            self._client_secret,
            token_endpoint_auth_method="client_secret_post" if by_form else "client_secret_basic",
            scope=self._scopes,
            redirect_uri=self._redirect_url,
            code_challenge_method="S256",
        )
        bound(session)
        return session

    def _discovery(self, max_age: float = DISCOVERY_SECONDS) -> Mapping[str, Any]:
        """What the provider says of itself. Raises ProviderAway."""
        with self._lock:
            known, age = self._discovered, monotonic() - self._discovered_at
        if known is not None and age < max_age:
            return known
        found = self._exchanges.get(f"{self._issuer.rstrip('/')}/.well-known/openid-configuration")
        if found.get("issuer") != self._issuer:
            raise ProviderAway("it calls itself otherwise than OIDC_ISSUER")
        for name in (*_ENDPOINTS, *_OPTIONAL_ENDPOINTS):
            needed = name in _ENDPOINTS or found.get(name) is not None
            if needed and not is_safe(found.get(name)):
                raise ProviderAway(f"its {name} is no https:// URL")
        with self._lock:
            self._discovered, self._discovered_at = found, monotonic()
        return found


def _refusal(error: str) -> SchedulerError:
    """What an error of the token endpoint (RFC 6749, 5.2) means."""
    if error in _TEMPORARY:
        return ProviderAway(f"its token endpoint answered {error}")
    if error in _OUR_ERRORS:
        return ProviderAway(
            f"it does not accept this scheduler ({error}): compare OIDC_CLIENT_ID, OIDC_CLIENT_SECRET and the"
            " redirect address with what it has"
        )
    return SignInRefused("your company's sign-in has refused: the sign-in is over, or was used already")


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None

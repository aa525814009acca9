"""What people do to sign in with their company's account, and to sign out.

A session goes on while the provider says so: it is asked every `CHECK_SECONDS` by a refresh token, where it
gave one, and may end a session itself (Back-Channel Logout). While it is away, sessions last on.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from scheduler_app.config import Settings
from scheduler_app.domain.api_key import Caller
from scheduler_app.domain.command_line import TOKEN_PREFIX, challenge_of, new_code, new_token, typed_code_of
from scheduler_app.domain.errors import Conflict, NotAuthorized, NotFound
from scheduler_app.domain.ids import TENANT, WholeId, name_of, whole_id
from scheduler_app.domain.person import (
    MAX_NAME,
    Grant,
    Person,
    PersonSession,
    RoleLine,
    granted,
    person_name,
    token_digest,
)
from scheduler_app.domain.sign_in_flow import Flow, ProviderAway, SignInRefused
from scheduler_app.domain.tenant import TenantState
from scheduler_app.store import Store
from scheduler_app.store.mongo import begin_answer_limit_anew
from scheduler_app.telemetry import get_logger
from scheduler_app.usecases.deeds.sign_in_lines import role_given, with_line

if TYPE_CHECKING:
    from scheduler_app.oidc import Provider

log = get_logger(__name__)

#: How often the provider is asked whether a sign-in goes on.
CHECK_SECONDS: Final = 300.0
#: A longer name of a session of the provider's is not kept.
MAX_SESSION_NAME: Final = 1_000
CALLBACK_PATH: Final = "/sign-in/callback"
SIGNED_OUT_PATH: Final = "/sign-in"


@dataclass(frozen=True)
class SignIns:
    store: Store
    settings: Settings

    @property
    def is_offered(self) -> bool:
        """Whether there is a provider."""
        return bool(self.settings.oidc_issuer)

    @cached_property
    def provider(self) -> "Provider":
        # Imported here: what it needs takes a while to load, and most installations have no provider.
        from scheduler_app.oidc import Provider

        settings = self.settings
        return Provider(
            settings.oidc_issuer,
            settings.oidc_client_id,
            settings.oidc_client_secret,
            settings.oidc_scopes,
            settings.public_url + CALLBACK_PATH,
            settings.public_url + SIGNED_OUT_PATH,
        )

    @cached_property
    def roles(self) -> tuple[RoleLine, ...]:
        return self.settings.roles

    @cached_property
    def setup(self) -> str:
        """A digest of what says who may do what: with another one, nobody is signed in any more."""
        given = (self.settings.oidc_issuer, self.settings.oidc_client_id, self.settings.oidc_roles)
        return hashlib.sha256(repr(given).encode()).hexdigest()[:16]

    def finish(self, code: str, flow: Flow, address: str, now: datetime) -> tuple[PersonSession, str]:
        """The session that a code of the provider begins, and its token, which is stored nowhere. Raises
        SignInRefused, ProviderAway, and NotAuthorized where no line of OIDC_ROLES gives anything."""
        found = self.provider.redeem(code, flow, now)
        begin_answer_limit_anew()
        grant = self._grant(found.claims)
        person = self._person(found.claims, grant, address, now)
        for forgotten in self.store.people.seen(person):
            self.store.person_sessions.close_all(name_of(forgotten))
        token = secrets.token_urlsafe(32)
        session = PersonSession(
            id=token_digest(token),
            begun_by=token_digest(token),
            person=name_of(person.id),
            called=person.called,
            grant=grant,
            setup=self.setup,
            checked_at=now,
            expires_at=now + timedelta(hours=self.settings.session_hours),
            provider_session=_session_of(found.claims),
        )
        kept = {"id_token": found.id_token, "refresh_token": found.refresh_token}
        self._begin(session, kept, address)
        return session, token

    def of_digest(self, digest: str) -> PersonSession | None:
        """The session whose token has this digest, as it is stored. Raises a STORE_FAULT."""
        return self.store.person_sessions.get(digest) if self.is_offered else None

    def of_browser(self, digest: str) -> PersonSession | None:
        """The same of a browser alone: what the token of a command line let in would end with that one, and
        the provider would not be asked about it. Raises a STORE_FAULT."""
        found = self.of_digest(digest)
        return found if found is not None and found.is_browsers else None

    def begin(self, flow: Flow) -> str:
        """Where a browser goes to sign in. Raises ProviderAway."""
        return self.provider.authorization_url(flow)

    def goes_on(self, session: PersonSession | None, now: datetime) -> Caller | None:
        """Who makes the requests of a session; None if it is over. Asks the provider where that is due."""
        found = self._going_on(session, now)
        return None if found is None else found.caller

    def end(self, session: PersonSession, address: str) -> None:
        """Ends a session, and what it let in."""
        sessions = self.store.person_sessions
        with_line(self.store, "signed out", session, lambda: sessions.close(session), address=address)

    def end_token(self, token: str, address: str) -> None:
        """Ends the sign-in of a command line. Raises NotFound."""
        session = self.store.person_sessions.get(token_digest(token))
        if session is None or not token.startswith(TOKEN_PREFIX):
            raise NotFound("this is no token of a command line, or its sign-in is over already")
        self.end(session, address)

    def end_all(self, session: PersonSession, address: str) -> None:
        """Ends every session of the person."""
        with_line(
            self.store,
            "signed out everywhere",
            session,
            lambda: self.store.person_sessions.close_all(session.person) or None,
            address=address,
            why="everywhere",
        )

    def sign_out_url(self, session: PersonSession) -> str | None:
        """Where a browser goes to sign out at the provider, too; to be asked before the session ends."""
        tokens = self.store.person_sessions.tokens_of(session.begun_by)
        url = self.provider.sign_out_url(tokens.get("id_token") or "")
        begin_answer_limit_anew()
        return url

    def ended_by_provider(self, logout_token: str, now: datetime) -> int:
        """Ends what the provider says has ended; returns how many sessions. Raises SignInRefused and
        ProviderAway."""
        subject, session = self.provider.logged_out(logout_token, now)
        begin_answer_limit_anew()
        person = None if subject is None else person_name(self.settings.oidc_issuer, subject)
        sessions = self.store.person_sessions
        found = sessions.any_of_provider(person, session)
        if found is None:
            return sessions.close_of_provider(person, session)
        ended = with_line(
            self.store,
            "signed out everywhere" if session is None else "signed out",
            found,
            lambda: sessions.close_of_provider(person, session) or None,
            is_own=False,
            why="the provider has ended it",
        )
        return ended or 0

    def let_in_by_code(self, session: PersonSession, challenge: str, now: datetime) -> str:
        """The code that a browser brings to a command line on the same machine. Raises Conflict."""
        code = new_code()
        self._let_in(code, session, challenge, now)
        return code

    def let_in_typed(self, session: PersonSession, typed: str, now: datetime) -> None:
        """Lets the command line in that shows this code. Raises Conflict."""
        self._let_in(typed, session, None, now)

    def redeem_verifier(
        self, verifier: str, code: str | None, address: str, now: datetime
    ) -> tuple[PersonSession, str]:
        """The session of a command line that was let in, and its token. Raises NotFound where it was not let
        in, or not yet."""
        sessions, challenge = self.store.person_sessions, challenge_of(verifier)
        secret = typed_code_of(challenge) if code is None else code
        grant = sessions.take_grant(secret, now, with_challenge=code is not None)
        browser = None
        if grant is not None and hmac.compare_digest(grant[1] or challenge, challenge):
            browser = self._going_on(sessions.get(grant[0]), now)
        if browser is None:
            raise NotFound("nobody has let this command line in, or no longer")
        token = new_token()
        session = replace(browser, id=token_digest(token), begun_by=browser.id, checked_at=now)
        self._begin(session, {}, address)
        if sessions.get(browser.id) is None:
            # It ended meanwhile, and perhaps before this one was there to end with it.
            self.end(session, address)
            raise NotFound("the sign-in that let this command line in has ended")
        return session, token

    def _begin(self, session: PersonSession, kept: Mapping[str, str | None], address: str) -> None:
        sessions = self.store.person_sessions
        with_line(self.store, "signed in", session, lambda: sessions.open(session, kept), address=address)

    def _let_in(self, secret: str, session: PersonSession, challenge: str | None, now: datetime) -> None:
        if not self.store.person_sessions.let_in(secret, session, challenge, now):
            raise Conflict("too many command lines wait to be let in: try again in ten minutes")

    def _going_on(self, session: PersonSession | None, now: datetime) -> PersonSession | None:
        """The session as it is after the check that may be due; None if it is over."""
        if session is None or not self.is_offered or session.expires_at <= now:
            return None
        if not hmac.compare_digest(session.setup, self.setup):
            return None
        if (now - session.checked_at).total_seconds() >= CHECK_SECONDS:
            return self._checked(session, now)
        return session

    def _checked(self, session: PersonSession, now: datetime) -> PersonSession | None:
        """The session as the provider lets it go on; None where it does not."""
        sessions = self.store.person_sessions
        browser = session if session.is_browsers else sessions.get(session.begun_by)
        if browser is None:
            sessions.close(session)
            return None
        if not sessions.begin_check(browser, now, every_seconds=CHECK_SECONDS):
            return session
        tokens = sessions.tokens_of(browser.id)
        if not (refresh_token := tokens.get("refresh_token")):
            return session

        def is_same(subject: str) -> bool:
            return person_name(self.settings.oidc_issuer, subject) == session.person

        try:
            found = self.provider.refresh(refresh_token, is_same, now)
            grant = self._grant(found.claims) if found.claims else session.grant
        except ProviderAway as error:
            log.warning(
                "oidc.away",
                message="The sign-in provider does not answer: sessions last on",
                error=str(error),
            )
            return session
        except (SignInRefused, NotAuthorized) as error:
            with_line(
                self.store,
                "signed out",
                browser,
                lambda: sessions.close(browser),
                is_own=False,
                why=str(error),
            )
            return None
        finally:
            begin_answer_limit_anew()
        kept = {"id_token": found.id_token or tokens.get("id_token")}
        kept["refresh_token"] = found.refresh_token or refresh_token

        def went_on() -> bool:
            if grant != browser.grant:
                self.store.people.given(session.person, grant)
            return sessions.went_on(browser, grant, kept)

        role_given(self.store, browser, grant, went_on)
        return replace(session, grant=grant, checked_at=now)

    def _grant(self, claims: Mapping[str, Any]) -> Grant:
        """Raises NotAuthorized."""
        grant = granted(self.roles, claims)
        if grant is None:
            called = _text(claims, "email") or _text(claims, "name") or str(claims.get("sub", ""))[:MAX_NAME]
            raise NotAuthorized(f"no line of OIDC_ROLES gives the account {called} anything")
        if grant.tenant not in (None, TENANT):
            tenant = self.store.tenants.get(grant.tenant)
            if tenant is None or tenant.state is not TenantState.ACTIVE:
                raise NotAuthorized(
                    f"the tenant {grant.tenant} of this account is suspended, or is not there"
                )
        return grant

    def _person(self, claims: Mapping[str, Any], grant: Grant, address: str, now: datetime) -> Person:
        subject = str(claims["sub"])
        return Person(
            id=whole_id(grant.tenant or TENANT, person_name(self.settings.oidc_issuer, subject)),
            subject=subject[:MAX_NAME],
            scopes=grant.scopes,
            first_seen_at=now,
            last_seen_at=now,
            last_seen_from=address,
            name=_text(claims, "name") or _text(claims, "preferred_username"),
            mail=_text(claims, "email"),
            is_installations=grant.tenant is None,
        )


@dataclass(frozen=True)
class PersonService:
    """What administrators see and do of the people who have signed in."""

    store: Store

    def all(self, tenant: str, caller: Caller) -> list[Person]:
        """A tenant's, who was seen last first; those of the installation for its own callers alone."""
        return [each for each in self.store.people.of(tenant) if _may_see(caller, each)]

    def find(self, person_id: WholeId, caller: Caller) -> Person:
        """Raises NotFound."""
        found = self.store.people.get(person_id)
        if found is None or not _may_see(caller, found):
            raise NotFound(f"there is no person {name_of(person_id)[:64]}")
        return found

    def end_sessions(self, person_id: WholeId, caller: Caller, address: str) -> int:
        """Ends every session of a person, in browsers and on command lines; returns how many there were.
        Raises NotFound."""
        person = self.find(person_id, caller)
        ended = with_line(
            self.store,
            "signed out everywhere",
            person,
            lambda: self.store.person_sessions.close_all(name_of(person.id)) or None,
            is_own=False,
            address=address,
            why=f"ended by {caller.name or 'a key'}",
        )
        return ended or 0


def _may_see(caller: Caller, person: Person) -> bool:
    return caller.tenant is None or not person.is_installations


def _session_of(claims: Mapping[str, Any]) -> str | None:
    sid = claims.get("sid")
    return sid if isinstance(sid, str) and 0 < len(sid) <= MAX_SESSION_NAME else None


def _text(claims: Mapping[str, Any], name: str) -> str | None:
    """A claim that is to be shown: in one line, not too long."""
    value = claims.get(name)
    if not isinstance(value, str):
        return None
    return "".join(each for each in value if each.isprintable())[:MAX_NAME].strip() or None

"""A real mail server on loopback, which keeps what it gets and treats a mailbox as its name says."""

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword

#: What the server answers to a mailbox whose local part begins so; to all others 250.
REFUSALS = {"later": "451 Try again later", "nobody": "550 No such mailbox"}


@dataclass
class Mail:
    """One mail as it arrived."""

    sender: str
    receiver: str
    message: EmailMessage

    @property
    def text(self) -> str:
        return str(self.message.get_content())


@dataclass
class MailReceiver:
    """`tls` for connections that begin with TLS, `starttls` for those that ask for it; `login` is the one
    that has to be shown."""

    tls: ssl.SSLContext | None = None
    starttls: ssl.SSLContext | None = None
    login: tuple[str, str] | None = None
    mails: list[Mail] = field(default_factory=list)
    answer: Callable[[str], str | None] = lambda mailbox: None
    """What to answer to a mailbox, where its name does not say it."""

    def __post_init__(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._server = self._loop.run_until_complete(
            self._loop.create_server(self._session, sock=listener, ssl=self.tls)
        )
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _session(self) -> SMTP:
        return SMTP(
            self,
            hostname="mail.example.com",
            loop=self._loop,
            tls_context=self.starttls,
            authenticator=self._judge if self.login else None,
            auth_require_tls=False,
            auth_required=self.login is not None,
        )

    def _judge(self, server: Any, session: Any, envelope: Any, mechanism: str, given: Any) -> AuthResult:
        assert isinstance(given, LoginPassword)
        return AuthResult(
            handled=False, success=(given.login.decode(), given.password.decode()) == self.login
        )

    async def handle_RCPT(
        self, server: Any, session: Any, envelope: Envelope, address: str, options: Any
    ) -> str:
        local = address.partition("@")[0]
        if local.startswith("hangs"):
            await asyncio.sleep(3_600)
        for beginning, refusal in REFUSALS.items():
            if local.startswith(beginning):
                return refusal
        if (said := self.answer(address)) is not None:
            return said
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Envelope) -> str:
        content = envelope.content
        assert isinstance(content, bytes)
        made = message_from_bytes(content, policy=policy.default)
        assert isinstance(made, EmailMessage)
        self.mails += [Mail(str(envelope.mail_from), each, made) for each in envelope.rcpt_tos]
        return "250 OK"

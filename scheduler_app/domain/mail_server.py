"""The mail server that SMTP_URL names: where it is, how it is spoken to, and from whom mail comes."""

import ipaddress
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

#: A mailbox: no display name, no quotes, no comment, so that it is one address wherever it is read.
_MAILBOX: Final = re.compile(
    r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}"
    r"@[A-Za-z0-9](?:[A-Za-z0-9-]{0,62})(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,62}))*"
)
MAX_MAILBOX: Final = 254


def is_mailbox(text: str) -> bool:
    """Whether mail can be sent to it: `ops@example.com`, and nothing around that."""
    return len(text) <= MAX_MAILBOX and _MAILBOX.fullmatch(text) is not None


class MailSecurity(StrEnum):
    TLS = "tls"
    """From the first byte on."""
    STARTTLS = "starttls"
    """Begun in the clear; without TLS nothing is sent."""
    PLAIN = "plain"


_PORTS: Final = {"smtps": 465, "smtp": 587}


@dataclass(frozen=True, slots=True)
class MailServer:
    """A mail server; its repr shows no password."""

    host: str
    port: int
    security: MailSecurity
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str) -> "MailServer":
        """Reads SMTP_URL. Raises ValueError, whose text shows nothing of the URL: it has a password."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise ValueError(
                "must have a number as its port; in user and password write / as %2F, # as %23, ? as %3F,"
                " @ as %40"
            ) from None
        if parts.scheme not in _PORTS or not parts.hostname or parts.path not in ("", "/") or parts.fragment:
            raise ValueError("must be smtps://user:password@host or smtp://user:password@host")
        query = parse_qs(parts.query, keep_blank_values=True)
        user = unquote(parts.username or "")
        sender = query.pop("from", [user])[0]
        if query:
            raise ValueError("has a parameter that is not known; it may have ?from=alerts@example.com alone")
        if not is_mailbox(sender):
            raise ValueError("must say from whom mail comes: add ?from=alerts@example.com")
        security = MailSecurity.TLS
        if parts.scheme == "smtp":
            security = MailSecurity.PLAIN if _is_loopback(parts.hostname) else MailSecurity.STARTTLS
        return cls(
            *(parts.hostname, port or _PORTS[parts.scheme], security, sender),
            user=user,
            password=unquote(parts.password or ""),
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"

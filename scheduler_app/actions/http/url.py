"""What a callback's URL must look like."""

import re
from ipaddress import AddressValueError, IPv6Address

from scheduler_app.domain.errors import InvalidField

MAX_URL = 8000
"""Characters; RFC 9110 §4.1 asks every party to support at least this."""

_UNSEEN = re.compile(r"[\x00-\x20\x7f-\x9f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_.-])?")


def check_url(url: str) -> None:
    """Refuse what no callback's URL can be; names and addresses are judged when the socket is opened.

    Raises InvalidField("callback_url", …). The rules are stricter than RFC 3986 wherever two parsers are
    known to disagree about the host, so that what a person reads is what libcurl connects to. A path or
    query may hold characters beyond ASCII; they are percent-encoded when sent.
    """
    if len(url) > MAX_URL:
        raise _invalid(f"must be at most {MAX_URL} characters")
    if _UNSEEN.search(url):
        raise _invalid("must not contain spaces or control characters; write a space as %20")
    scheme = _SCHEME.match(url)
    if scheme is None or not url.startswith("//", scheme.end()):
        raise _invalid("must be an absolute URL such as https://example.com/hook")
    if scheme[1].lower() not in ("http", "https"):
        raise _invalid(f"the scheme must be http or https, not {scheme[1]}")
    authority = re.split(r"[/?#]", url[scheme.end() + 2 :], maxsplit=1)[0]
    if "@" in authority:
        raise _invalid("must not contain a user or password; use an Authorization header")
    _check_authority(authority)


def port_of(url: str) -> int:
    """The port of a URL that `check_url` has passed."""
    scheme, _, rest = url.partition("://")
    port = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("]")[2].partition(":")[2]
    return int(port) if port else 443 if scheme.lower() == "https" else 80


def _check_authority(authority: str) -> None:
    if authority.startswith("["):
        literal, closed, rest = authority[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise _invalid("the IPv6 address must be closed by ]")
        try:
            IPv6Address(literal)
        except AddressValueError:
            raise _invalid(f"[{literal}] is not an IPv6 address") from None
        if "%" in literal:
            raise _invalid("an IPv6 address must not have a zone")
        _check_port(rest)
        return
    host, colon, port = authority.partition(":")
    if not host:
        raise _invalid("a host is missing")
    if not host.isascii():
        raise _invalid(_ascii_remedy(host))
    if len(host) > 253 or not _HOST.fullmatch(host):
        raise _invalid(f"{host[:64]!r} is not a host name")
    _check_port(colon + port)


def _check_port(text: str) -> None:
    """`text` is "" or ":" and what follows it."""
    if text and not (
        text[1:].isascii() and text[1:].isdigit() and len(text) <= 6 and 1 <= int(text[1:]) <= 65535
    ):
        raise _invalid("the port must be a number from 1 to 65535")


def _ascii_remedy(host: str) -> str:
    try:
        return f"write the host in its ASCII form, {host.encode('idna').decode()}"
    except UnicodeError:
        return "write the host in its ASCII form (xn--…)"


def _invalid(message: str) -> InvalidField:
    return InvalidField("callback_url", message)

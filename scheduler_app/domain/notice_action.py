"""The value of the action kind `notice`: a text for people, by mail or by a service that Apprise reaches.

Messages of notifications alone have it; no schedule or message of a person's own can.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Final

from scheduler_app.domain.action import Action
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.mail_server import is_mailbox
from scheduler_app.domain.masking import control_in

NOTICE: Final = "notice"
MAX_APPRISE_URL: Final = 2_000
#: How long sending one may take, the start of its process included.
TIMEOUT_SECONDS: Final = 30.0


class ChannelKind(StrEnum):
    WEBHOOK = "webhook"
    EMAIL = "email"
    APPRISE = "apprise"


#: The services of Apprise that are called by https alone, at a host of their own.
SERVICES: Final = frozenset(
    (
        *("betterstack", "discord", "gchat", "ilert", "incidentio", "opsgenie", "pagerduty", "pbul", "pover"),
        *("signl4", "slack", "splunk", "squadcast", "tgram", "webex", "wxteams", "zulip"),
    )
)
#: Those that are called by https at the host that the URL names.
SELF_HOSTED: Final = frozenset(
    (
        *("goalerts", "gotifys", "hassios", "jsons", "matrixs", "mmosts", "nctalks", "ntfys", "rockets"),
        *("signals", "workflows"),
    )
)
#: Parameters that would have Apprise trust any certificate, or read a file of the machine.
_REFUSED_PARAMETERS: Final = re.compile(r"[?&](verify|template|attach|config)=", re.IGNORECASE)
_SCHEME: Final = re.compile(r"([a-z0-9]+)://([^/?#]+)")


@dataclass(frozen=True, slots=True)
class NoticeAction:
    """A text and whom it goes to. Its repr shows neither."""

    channel: ChannelKind
    receiver: str
    """The isolation key, which shows no part of the address that may be secret."""
    address: str = field(repr=False)
    """A mailbox, or a URL of Apprise's, in which there is a secret."""
    subject: str = field(repr=False)
    text: str = field(repr=False)

    @classmethod
    def to(cls, channel: ChannelKind, address: str, subject: str, text: str) -> "NoticeAction":
        return cls(channel, _receiver(channel, address), address, subject, text)

    @property
    def kind(self) -> str:
        return NOTICE

    @property
    def isolation_key(self) -> str:
        return self.receiver

    @property
    def destination(self) -> None:
        return None

    def unmasked(self, old: Action | None) -> "NoticeAction":
        """The action itself: nobody is shown one to edit."""
        return self

    @property
    def completion_problem(self) -> str:
        return "a notice is for people, who report nothing"


def _receiver(channel: ChannelKind, address: str) -> str:
    """One mail server takes all mail. Services are told apart by what their URL says before its path, and
    that may be a secret."""
    if channel is ChannelKind.EMAIL:
        return "email"
    found = _SCHEME.match(address)
    service, place = (found[1], found[2]) if found else ("unknown", address)
    return f"apprise {service[:20]} #{sha256(place.encode()).hexdigest()[:8]}"


def check_mailbox(address: str) -> None:
    """Raises InvalidField("address")."""
    if not is_mailbox(address):
        raise InvalidField(
            "address", "must be one mail address, as ops@example.com, without a name around it"
        )


def apprise_service(url: str) -> str:
    """Returns the scheme of a URL of Apprise's that is allowed. Raises InvalidField("url")."""
    found = _SCHEME.match(url)
    if found is None or found[1] not in SERVICES | SELF_HOSTED:
        known = ", ".join(sorted(SERVICES | SELF_HOSTED))
        raise InvalidField("url", f"must be a URL of Apprise's that begins with one of {known}, and ://")
    if control_in(url) or not url.isascii() or " " in url:
        raise InvalidField("url", "must be printable ASCII without spaces: percent-encode all else")
    if refused := _REFUSED_PARAMETERS.search(url):
        raise InvalidField("url", f"may not have the parameter {refused[1]}: leave it out")
    return found[1]

"""Which services notifications may call, and what is shown of an address."""

import re

import pytest

from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.mail_server import MailServer
from scheduler_app.domain.notice_action import (
    SELF_HOSTED,
    SERVICES,
    ChannelKind,
    NoticeAction,
    apprise_service,
)
from scheduler_app.domain.notification_rule import NotificationChannel
from tests.unit.docs.manual import tables


@pytest.mark.parametrize(
    "url",
    [
        *("json://h/", "ntfy://h/t", "mailto://u:p@h", "file:///etc/passwd", "dbus://", "syslog://"),
        *("slack:///x", "SLACK://a", "slack", "slack://", "slack://a b", "slack://a\n", "slack://é"),
        *("jsons://h/?verify=no", "slack://a/b/c?x=1&Template=/etc/passwd", "jsons://h?attach=file:///etc"),
    ],
)
def test_what_is_not_by_tls_or_would_read_files_is_refused(url: str) -> None:
    with pytest.raises(InvalidField) as refused:
        apprise_service(url)
    assert refused.value.field == "url"


def test_every_service_of_the_list_is_known_to_apprise_as_one_by_tls() -> None:
    import apprise

    known: set[str] = set()
    for plugin in apprise.Apprise().details()["schemas"]:
        known |= set(plugin["secure_protocols"] or ())
    assert known >= SERVICES | SELF_HOSTED


def test_the_manual_lists_every_service() -> None:
    (table,) = [each for each in tables() if each.head == "| service | its URL begins with |"]
    named = re.findall("`([a-z0-9]+)`", " ".join(row[1] for row in table.rows))
    assert sorted(named) == sorted(SERVICES | SELF_HOSTED)


def test_nothing_of_a_services_address_is_shown() -> None:
    url = "slack://T0secret1/B0secret2/s3cret"
    action = NoticeAction.to(ChannelKind.APPRISE, url, "subject", "text")
    other = NoticeAction.to(ChannelKind.APPRISE, url.replace("T0", "T1"), "subject", "text")
    assert action.isolation_key.startswith("apprise slack #")
    assert action.isolation_key != other.isolation_key
    assert "secret" not in repr(action) + action.isolation_key
    channel = NotificationChannel(ChannelKind.APPRISE, url)
    assert channel.shown == "slack://********"
    masked = NotificationChannel(ChannelKind.APPRISE, channel.shown)
    assert masked.is_masked
    assert masked.unmasked(channel) == channel
    assert masked.unmasked(NotificationChannel(ChannelKind.APPRISE, "tgram://x/y")) is None
    assert masked.unmasked(NotificationChannel(ChannelKind.EMAIL, "a@b.c")) is None


def test_all_mail_shares_a_receiver() -> None:
    made = [NoticeAction.to(ChannelKind.EMAIL, each, "s", "t") for each in ("a@b.c", "d@e.f")]
    assert {each.isolation_key for each in made} == {"email"}
    assert MailServer.parse("smtp://localhost?from=a@b.c").sender == "a@b.c"

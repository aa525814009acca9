"""Notices reach people by a real mail server, and services by Apprise; what may go wrong with either."""

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from scheduler_app.actions.kind import Executor, Outcome, Verdict
from scheduler_app.actions.notice import executor as notice_executor
from scheduler_app.actions.notice.kind import NoticeKind
from scheduler_app.actions.notice.mail import deliver, mail_of
from scheduler_app.config import Settings
from scheduler_app.domain.errors import InvalidField
from scheduler_app.domain.mail_server import MailSecurity, MailServer
from scheduler_app.domain.notice_action import ChannelKind, NoticeAction
from tests.authority import Authority
from tests.builders import event, schedule
from tests.integration.actions.receiver import Receiver, says
from tests.mail_server import MailReceiver
from tests.processes import wait_until

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
LOOPBACK = "127.0.0.0/8,::1"
Receive = Callable[..., Receiver]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"), "trusted")


def executor_of(stack: ExitStack, **settings: Any) -> Executor:
    return stack.enter_context(closing(NoticeKind().executor(Settings(**settings), lambda: None)))


def send(executor: Executor, action: NoticeAction, *, event_id: str = "", seconds: float = 60.0) -> Verdict:
    made = event(NOON)
    if event_id:
        made = made._replace(id=event_id)
    executor.start(made, replace(schedule(NOON), action=action, timeout_seconds=seconds), NOON)
    found: list[Verdict] = []
    while not found:
        found += executor.wait(1.0)
    return found[0]


def mail(address: str = "ops@example.com", subject: str = "Failing: it", text: str = "Why") -> NoticeAction:
    return NoticeAction.to(ChannelKind.EMAIL, address, subject, text)


def url_of(server: MailReceiver, scheme: str = "smtp", login: str = "") -> str:
    host = "localhost" if scheme == "smtps" else "127.0.0.1"
    return f"{scheme}://{login}{host}:{server.port}?from=scheduler@example.com"


# -- mail ------------------------------------------------------------------------------------------------


def test_a_mail_arrives_whole_and_one_that_is_sent_again_has_the_same_id(stack: ExitStack) -> None:
    server = stack.enter_context(closing(MailReceiver()))
    executor = executor_of(stack, smtp_url=url_of(server))
    text = "Zürich fails – since noon\n\n.\nhttps://scheduler.example.com/" + "x" * 500
    for _ in range(2):
        verdict = send(executor, mail(text=text), event_id="acme:msg_ops-1-begin-on-notice-0")
        assert (verdict.outcome, verdict.error) == (Outcome.SUCCESS, None)
    first, second = server.mails
    assert (first.sender, first.receiver) == ("scheduler@example.com", "ops@example.com")
    assert first.message["Subject"] == "Failing: it"
    assert first.message["From"] == "RRule Scheduler <scheduler@example.com>"
    assert first.message["Auto-Submitted"] == "auto-generated"
    assert first.message["Date"] == "Mon, 02 Mar 2026 12:00:00 +0000"
    assert first.text.strip().replace("\r\n", "\n") == text
    assert first.message["Message-ID"] == "<acme.msg_ops-1-begin-on-notice-0@example.com>"
    assert first.message["Message-ID"] == second.message["Message-ID"]


def test_a_name_adds_no_header_and_no_receiver(stack: ExitStack) -> None:
    server = stack.enter_context(closing(MailReceiver()))
    executor = executor_of(stack, smtp_url=url_of(server))
    bent = "Failing: it\r\nBcc: others@example.com\r\n\r\nbody " + "ü" * 500
    assert send(executor, mail(subject=bent)).outcome is Outcome.SUCCESS
    (arrived,) = server.mails
    assert "Bcc" not in arrived.message
    assert arrived.receiver == "ops@example.com"
    assert arrived.text.strip() == "Why"


def test_mail_by_tls_is_sent_to_the_server_whose_certificate_is_right(
    stack: ExitStack, authority: Authority, tmp_path: Path
) -> None:
    login = ("alerts@example.com", "p/w")
    server = MailReceiver(tls=authority.server("localhost"), login=login)
    stack.enter_context(closing(server))
    url = url_of(server, "smtps", "alerts%40example.com:p%2Fw@")
    executor = executor_of(stack, smtp_url=url, callback_ca_bundle=str(authority.bundle))
    assert send(executor, mail()).outcome is Outcome.SUCCESS
    assert len(server.mails) == 1
    unknown = executor_of(stack, smtp_url=url)
    refused = send(unknown, mail())
    assert refused.outcome is Outcome.RETRY
    assert "certificate" in refused.reason
    assert len(server.mails) == 1


def test_a_wrong_password_may_be_set_right_and_is_not_shown(stack: ExitStack) -> None:
    server = stack.enter_context(closing(MailReceiver(login=("alerts@example.com", "right"))))
    verdict = send(
        executor_of(stack, smtp_url=url_of(server, login="alerts%40example.com:wr0ng-pass@")), mail()
    )
    assert (verdict.outcome, verdict.status_code) == (Outcome.RETRY, 535)
    assert "wr0ng-pass" not in repr(verdict)
    assert server.mails == []


def test_without_starttls_nothing_is_sent_in_the_clear(stack: ExitStack, authority: Authority) -> None:
    plain = stack.enter_context(closing(MailReceiver()))
    tls = stack.enter_context(closing(MailReceiver(starttls=authority.server("localhost"))))
    wanted = {
        "smtp_url": "smtp://localhost?from=a@example.com",
        "address": "ops@example.com",
        "subject": "s",
        "text": "t",
        "event_id": "e",
        "now": "2026-03-02T12:00:00+00:00",
    }
    for server, outcome in ((plain, "RETRY"), (tls, "SUCCESS")):
        asked = MailServer("localhost", server.port, MailSecurity.STARTTLS, "a@example.com")
        answer = deliver(
            asked, "ops@example.com", mail_of(wanted), seconds=30, ca_bundle=str(authority.bundle)
        )
        assert answer.outcome == outcome, answer
    assert plain.mails == []
    assert len(tls.mails) == 1


def test_a_worker_without_a_mail_server_leaves_it_to_another_one(stack: ExitStack) -> None:
    verdict = send(executor_of(stack), mail())
    assert verdict.outcome is Outcome.RETRY
    assert "SMTP_URL" in verdict.reason


def test_there_is_a_bound_to_what_a_worker_holds(stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notice_executor, "MAX_HELD", 2)
    hangs = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0))))
    executor = executor_of(stack, callback_allowed_networks=LOOPBACK)
    for number in range(2):
        made = event(NOON, f"s{number}")
        executor.start(made, replace(schedule(NOON), action=service(f"jsons://{place(hangs)}/")), NOON)
    (verdict,) = executor.wait(30.0)
    assert verdict.event_id.startswith("s1")
    assert (verdict.outcome, "this tenant" in verdict.reason) == (Outcome.RETRY, True)


def test_receivers_that_hang_keep_no_process_from_another_tenant_or_mail(
    stack: ExitStack, receive: Receive, authority: Authority
) -> None:
    hangs = stack.enter_context(closing(socket.create_server(("127.0.0.1", 0), backlog=50)))
    server = stack.enter_context(closing(MailReceiver()))
    works = receive(tls=authority.server("localhost"))
    executor = executor_of(
        stack,
        smtp_url=url_of(server),
        callback_allowed_networks=LOOPBACK,
        callback_ca_bundle=str(authority.bundle),
    )
    for number in range(40):
        url = f"jsons://user{number}@{place(hangs)}/"
        executor.start(event(NOON, f"s{number}"), replace(schedule(NOON), action=service(url)), NOON)
    assert len(_senders()) <= notice_executor.MAX_PROCESSES
    others = [mail(), service(f"jsons://localhost:{works.port}/")]
    for number, action in enumerate(others):
        executor.start(event(NOON, f"acme:s{number}"), replace(schedule(NOON), action=action), NOON)
    found: list[Verdict] = []
    while len(found) < len(others):
        found += executor.wait(1.0)
    assert {each.event_id.partition(":")[0] for each in found} == {"acme"}
    assert {each.outcome for each in found} == {Outcome.SUCCESS}


def place(hangs: socket.socket) -> str:
    return f"127.0.0.1:{hangs.getsockname()[1]}"


def test_a_process_ends_with_its_worker(stack: ExitStack) -> None:
    server = stack.enter_context(closing(MailReceiver()))
    executor = executor_of(stack, smtp_url=url_of(server))
    executor.start(event(NOON), replace(schedule(NOON), action=mail("hangs@example.com")), NOON)
    wait_until(lambda: bool(_senders()), "the process that sends it")
    (sender,) = _senders()
    executor.interrupt()
    wait_until(lambda: not sender.is_running() or sender.status() == "zombie", "its end")


def _senders() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.Error):  # another one, which has ended
            if "scheduler_app.actions.notice.sending" in child.cmdline():
                found.append(child)
    return found


# -- services --------------------------------------------------------------------------------------------


def service(url: str) -> NoticeAction:
    return NoticeAction.to(ChannelKind.APPRISE, url, "Failing: it", "Since an hour.")


def test_a_service_is_called_by_apprise(stack: ExitStack, receive: Receive, authority: Authority) -> None:
    receiver = receive(tls=authority.server("localhost"))
    executor = executor_of(
        stack, callback_allowed_networks=LOOPBACK, callback_ca_bundle=str(authority.bundle)
    )
    verdict = send(executor, service(f"jsons://localhost:{receiver.port}/hook/"))
    assert (verdict.outcome, verdict.error) == (Outcome.SUCCESS, None), verdict
    (seen,) = receiver.seen
    assert (seen.method, seen.path) == ("POST", "/hook/")
    assert b"Failing: it" in seen.body
    assert b"Since an hour." in seen.body


def test_a_service_that_refuses_may_be_tried_again_and_its_url_is_not_shown(
    stack: ExitStack, receive: Receive, authority: Authority
) -> None:
    receiver = receive(says("500 Oh No"), tls=authority.server("localhost"))
    executor = executor_of(
        stack, callback_allowed_networks=LOOPBACK, callback_ca_bundle=str(authority.bundle)
    )
    verdict = send(executor, service(f"jsons://localhost:{receiver.port}/s3cret-path/"))
    assert verdict.outcome is Outcome.RETRY
    assert "500" in verdict.snippet
    assert "s3cret-path" not in repr(verdict)


def test_a_service_at_a_private_address_or_a_denied_port_is_not_connected_to(
    stack: ExitStack, receive: Receive, authority: Authority
) -> None:
    receiver = receive(tls=authority.server("localhost"))
    bundle = str(authority.bundle)
    for settings in (
        {"callback_ca_bundle": bundle},
        {
            "callback_ca_bundle": bundle,
            "callback_allowed_networks": LOOPBACK,
            "callback_denied_ports": str(receiver.port),
        },
    ):
        verdict = send(executor_of(stack, **settings), service(f"jsons://localhost:{receiver.port}/"))
        assert verdict.outcome is Outcome.PERMANENT, verdict
        assert "CALLBACK_ALLOWED_NETWORKS" in verdict.reason
        assert "127.0.0.1" not in verdict.reason
    assert receiver.connections == 0


def test_a_service_with_an_unknown_certificate_is_told_nothing(
    stack: ExitStack, receive: Receive, tmp_path: Path
) -> None:
    unknown = Authority(tmp_path, "unknown")
    receiver = receive(tls=unknown.server("localhost"))
    executor = executor_of(stack, callback_allowed_networks=LOOPBACK)
    assert send(executor, service(f"jsons://localhost:{receiver.port}/")).outcome is Outcome.RETRY
    assert receiver.seen == []


def test_a_url_that_apprise_does_not_understand_is_not_tried_again(stack: ExitStack) -> None:
    verdict = send(executor_of(stack), service("pagerduty://x"))
    assert verdict.outcome is Outcome.PERMANENT
    assert "does not understand" in verdict.reason


#: What a plugin may try, each with whether it may.
TRIES = """
import http.client, os, socket, sqlite3, subprocess, sys, zoneinfo
from scheduler_app.actions.http.guard import Guard, parse_networks
from scheduler_app.actions.notice.services import PluginWatch
port, scratch, kept = int(sys.argv[1]), sys.argv[2], sys.argv[3]
sys.addaudithook(PluginWatch(Guard(parse_networks("127.0.0.1/32")), ()))
def tried(name, attempt):
    try:
        attempt()
    except PermissionError:
        print(name, "refused")
    else:
        print(name, "allowed")
tried("allowed network", lambda: socket.create_connection(("127.0.0.1", port)))
tried("own code", lambda: open(http.client.__file__).close())
tried("other address", lambda: socket.create_connection(("127.0.0.2", port)))
tried("unix socket", lambda: socket.socket(socket.AF_UNIX).connect("/run/docker.sock"))
tried("datagram", lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.2", port)))
tried("message", lambda: socket.socket(type=socket.SOCK_DGRAM).sendmsg([b"x"], [], 0, ("127.0.0.2", port)))
tried("removing", lambda: os.remove(kept))
tried("renaming", lambda: os.rename(kept, scratch))
tried("linking", lambda: os.symlink(kept, scratch))
tried("cutting", lambda: os.truncate(kept, 0))
tried("folder", lambda: os.mkdir(scratch))
tried("database", lambda: sqlite3.connect(scratch))
tried("signal", lambda: os.kill(os.getppid(), 0))
tried("reading", lambda: open("/etc/hostname"))
tried("climbing", lambda: open(http.client.__file__ + "/../../../../../../etc/hostname"))
tried("writing", lambda: open(scratch, "w"))
tried("program", lambda: subprocess.run(["true"]))
"""


def test_a_plugin_can_open_and_start_nothing_and_connects_where_callbacks_may(
    receive: Receive, tmp_path: Path
) -> None:
    scratch, kept = tmp_path / "written", tmp_path / "kept"
    kept.write_text("kept")
    command = [sys.executable, "-I", "-c", TRIES, str(receive().port), str(scratch), str(kept)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    found = dict(line.rsplit(" ", 1) for line in ran.stdout.splitlines())
    assert len(found) == 17, ran
    allowed = {name for name, answer in found.items() if answer == "allowed"}
    assert allowed == {"allowed network", "own code"}
    assert not scratch.exists()
    assert kept.read_text() == "kept"


def test_what_a_channel_may_name_is_judged_when_it_is_set() -> None:
    check = NoticeKind().checker(Settings(smtp_url="smtp://localhost?from=a@b.c"))
    check(mail())
    check(service("slack://T1JJ3T3L2/A1BRTD4JD/TIiajkdnlazkcOXrIdevi7FQ"))
    check(service("ntfys://ntfy.example.com/topic"))
    for action in (
        mail("Ops <ops@example.com>"),
        service("ntfys://10.0.0.1/topic"),
        service("ntfys://localhost/topic"),
        service("jsons://[::1]/"),
        service("json://example.com/"),
        service("slack://" + "x" * 3_000),
    ):
        with pytest.raises(InvalidField):
            check(action)
    with pytest.raises(InvalidField, match="SMTP_URL"):
        NoticeKind().checker(Settings())(mail())

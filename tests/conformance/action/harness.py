"""What the suite needs to know of each kind of action: how to make receivers that do as they are told."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any

import psutil

from scheduler_app.actions.registry import KINDS
from scheduler_app.config import Settings
from scheduler_app.domain.action import Action
from scheduler_app.domain.celery_task_action import CeleryTaskAction
from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.http_action import HttpAction, RequestBody
from scheduler_app.domain.notice_action import ChannelKind, NoticeAction
from tests.celery_application import BROKER, CeleryApplication
from tests.integration.actions.receiver import Behaviour, Receiver, hangs, says
from tests.mail_server import MailReceiver

SECRET = "s3cret-of-the-action"


class Harness(ABC):
    """One kind against real receivers, which `stack` closes."""

    #: The name of the kind.
    name: str

    def __init__(self, stack: ExitStack, fixture: Callable[[str], Any]) -> None:
        """`fixture` returns one of pytest's by its name: receivers that take long to start are shared."""
        self.stack = stack
        self.fixture = fixture

    def settings(self, **changes: Any) -> Settings:
        """Settings with which an executor reaches the receivers."""
        return Settings(callback_allowed_networks="127.0.0.0/8", **changes)

    @abstractmethod
    def succeeds(self) -> Action:
        """An action that succeeds at once."""

    @abstractmethod
    def fails(self) -> Action:
        """One that fails at once, and may succeed another time."""

    @abstractmethod
    def fails_for(self, seconds: int) -> Action | None:
        """The same, asking not to be tried again for so long; None where receivers cannot ask for that."""

    @abstractmethod
    def fails_for_good(self) -> Action:
        """One that no retry can mend."""

    @abstractmethod
    def hangs(self) -> Action:
        """One that never ends by itself."""

    @abstractmethod
    def broken(self) -> Action:
        """A value that no validation lets pass, as a corrupt document may bring it."""

    @abstractmethod
    def echoes_secret(self) -> Action:
        """One that contains SECRET in a secret part, and whose receiver sends it back."""

    @abstractmethod
    def refused(self) -> Action:
        """One that this deployment's settings refuse when it is created."""


class HttpHarness(Harness):
    name = "http"

    def _at(self, behave: Behaviour, **fields: Any) -> HttpAction:
        receiver = self.stack.enter_context(closing(Receiver(behave)))
        return HttpAction(f"http://127.0.0.1:{receiver.port}/", **fields)

    def succeeds(self) -> Action:
        return self._at(says())

    def fails(self) -> Action:
        return self._at(says("503 Service Unavailable"))

    def fails_for(self, seconds: int) -> Action:
        return self._at(says("503 Service Unavailable", f"Retry-After: {seconds}"))

    def fails_for_good(self) -> Action:
        return self._at(says("404 Not Found"))

    def hangs(self) -> Action:
        return self._at(hangs)

    def broken(self) -> Action:
        return HttpAction("http://127.0.0.1:1/", headers=(("X-Broken\r\nInjected", "1"),))

    def echoes_secret(self) -> Action:
        return self._at(
            says("500 Internal Server Error", body=f"you sent {SECRET}".encode()),
            method="POST",
            headers=(("Authorization", f"Bearer {SECRET}"),),
            body=RequestBody.from_json({"password": SECRET}),
        )

    def refused(self) -> Action:
        return HttpAction("http://10.0.0.1/")


class CommandHarness(Harness):
    name = "command"

    def settings(self, **changes: Any) -> Settings:
        return Settings(
            allowed_commands=("true", "false", "sleep *", "PASSWORD= sh -c *", "/bin/\0"), **changes
        )

    def succeeds(self) -> Action:
        return CommandAction(("true",))

    def fails(self) -> Action:
        return CommandAction(("false",))

    def fails_for(self, seconds: int) -> Action | None:
        return None

    def fails_for_good(self) -> Action:
        return CommandAction(("sh", "-c", "exit 4"), retry_exit_codes=(1, 2))

    def hangs(self) -> Action:
        return CommandAction(("sleep", "1000"))

    def broken(self) -> Action:
        return CommandAction(("/bin/\0",))

    def echoes_secret(self) -> Action:
        line = 'echo "you sent $PASSWORD"; exit 1'
        return CommandAction(("sh", "-c", line), env=(("PASSWORD", SECRET),))

    def refused(self) -> Action:
        return CommandAction(("rm", "-rf", "/"))


class CeleryTaskHarness(Harness):
    name = "celery_task"

    def __init__(self, stack: ExitStack, fixture: Callable[[str], Any]) -> None:
        super().__init__(stack, fixture)
        self._shop: CeleryApplication = fixture("shop")
        # Outside of tests no two events have the same id.
        self._shop.forget_results()

    def settings(self, **changes: Any) -> Settings:
        return Settings(
            celery_brokers=((BROKER, self._shop.broker),),
            celery_tasks=(f"{BROKER}:*@*",),
            celery_result_backends=((BROKER, self._shop.results),),
            **changes,
        )

    def succeeds(self) -> Action:
        return self._shop.task("ok")

    def fails(self) -> Action:
        return self._shop.task("fail")

    def fails_for(self, seconds: int) -> Action | None:
        return None

    def fails_for_good(self) -> Action:
        return self._shop.task("refuse")

    def hangs(self) -> Action:
        return self._shop.task("ok", queue="nobody-takes-from-it")

    def broken(self) -> Action:
        return self._shop.task("ok", args="no JSON")

    def echoes_secret(self) -> Action:
        return self._shop.task("fail", kwargs=f'{{"password": "{SECRET}"}}', headers=(("x-key", SECRET),))

    def refused(self) -> Action:
        return CeleryTaskAction("shop.ok", "somewhere-else")


class NoticeHarness(Harness):
    name = "notice"

    def __init__(self, stack: ExitStack, fixture: Callable[[str], Any]) -> None:
        super().__init__(stack, fixture)
        self._server = stack.enter_context(closing(MailReceiver(answer=_echo)))

    def settings(self, **changes: Any) -> Settings:
        url = f"smtp://127.0.0.1:{self._server.port}?from=scheduler@example.com"
        return super().settings(smtp_url=url, **changes)

    def _to(self, mailbox: str) -> NoticeAction:
        return NoticeAction.to(ChannelKind.EMAIL, mailbox, "Failing: it", "Since an hour.")

    def succeeds(self) -> Action:
        return self._to("ops@example.com")

    def fails(self) -> Action:
        return self._to("later@example.com")

    def fails_for(self, seconds: int) -> Action | None:
        return None

    def fails_for_good(self) -> Action:
        return self._to("nobody@example.com")

    def hangs(self) -> Action:
        return self._to("hangs@example.com")

    def broken(self) -> Action:
        return self._to("two@example.com\r\nBcc: others@example.com")

    def echoes_secret(self) -> Action:
        return self._to(f"{SECRET}@example.com")

    def refused(self) -> Action:
        return self._to("Ops <ops@example.com>")


def _echo(mailbox: str) -> str | None:
    return f"451 you sent {mailbox}" if mailbox.startswith(SECRET) else None


HARNESSES: dict[str, Callable[[ExitStack, Callable[[str], Any]], Harness]] = {
    harness.name: harness for harness in (HttpHarness, CommandHarness, CeleryTaskHarness, NoticeHarness)
}


def missing() -> set[str]:
    """The registered kinds that have no harness."""
    return set(KINDS) - set(HARNESSES)


def resources() -> tuple[int, int, int]:
    """Open files, threads and children of this process."""
    process = psutil.Process()
    return process.num_fds(), process.num_threads(), len(process.children(recursive=True))

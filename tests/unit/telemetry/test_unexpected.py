"""Errors that nobody expected: each is counted, and each kind is logged once an hour."""

from prometheus_client import CollectorRegistry, Counter
from structlog.testing import capture_logs

from scheduler_app.telemetry.logs import LOG_EVERY_SECONDS, MAX_KINDS, UnexpectedErrors


class Trouble:
    """Notes errors at times that a test chooses."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.registry = CollectorRegistry()
        counter = Counter("failures", "Failures", ["step"], registry=self.registry)
        self.errors = UnexpectedErrors(counter, "thread.failed", "It goes on", monotonic=lambda: self.now)

    def note(self, step: str, error: Exception, times: int = 1) -> list[tuple[str, object]]:
        """The step, and what was only counted, of each line that was logged."""
        with capture_logs() as lines:
            for _ in range(times):
                self.errors.note(step, error, schedule_id="s1")
        assert all((each["event"], each["schedule_id"]) == ("thread.failed", "s1") for each in lines)
        return [(each["step"], each.get("only_counted")) for each in lines]

    def counted(self, step: str) -> float | None:
        return self.registry.get_sample_value("failures_total", {"step": step})


def test_a_kind_is_logged_once_an_hour_with_what_was_only_counted_since() -> None:
    trouble = Trouble()
    assert trouble.note("write", ValueError("first"), times=3) == [("write", None)]
    trouble.now += LOG_EVERY_SECONDS - 1
    assert trouble.note("write", ValueError("again")) == []
    trouble.now += 1
    assert trouble.note("write", ValueError("an hour later"), times=2) == [("write", 3)]
    trouble.now += LOG_EVERY_SECONDS
    assert trouble.note("write", ValueError("another hour")) == [("write", 1)]
    assert trouble.counted("write") == 7


def test_steps_and_classes_of_errors_are_kinds_of_their_own() -> None:
    trouble = Trouble()
    assert trouble.note("write", ValueError()) == [("write", None)]
    assert trouble.note("read", ValueError()) == [("read", None)]
    assert trouble.note("write", KeyError()) == [("write", None)]


def test_kinds_beyond_the_first_share_an_hour() -> None:
    trouble = Trouble()
    for number in range(MAX_KINDS):
        assert trouble.note(f"step {number}", ValueError()) == [(f"step {number}", None)]
    assert trouble.note("one more", ValueError()) == [("one more", None)]
    assert trouble.note("and another", KeyError()) == []
    assert trouble.note("step 0", ValueError()) == []
    assert len(trouble.errors._logged_at) == MAX_KINDS + 1
    trouble.now += LOG_EVERY_SECONDS
    assert trouble.note("one more", ValueError()) == [("one more", 1)]

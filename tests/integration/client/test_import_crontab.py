"""`scheduler import-crontab`: the lines of a crontab become schedules of a real API."""

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from scheduler_app.cli import main
from scheduler_app.client import Schedule, Scheduler
from tests.integration.client.conftest import KEY

CRONTAB = """\
# m h dom mon dow command
MAILTO=ops@example.com
REGION=eu
30 2 * * 1-5  /opt/jobs/{tag} --daily
@reboot       /opt/jobs/{tag} --start
61 * * * *    /opt/jobs/{tag} --never
@hourly       cd /tmp && ./{tag} > log
"""


class Crontab:
    def __init__(self, url: str, file: Path, tag: str) -> None:
        self._environment = {"SCHEDULER_URL": url, "SCHEDULER_API_KEY": KEY}
        self.file, self.tag = file, tag

    def run(self, *options: str, status: int = 1) -> Result:
        words = ("import-crontab", str(self.file), "--timezone", "Europe/Zurich", "--id-prefix", self.tag)
        done = CliRunner().invoke(main, [*words, *options], env=self._environment, catch_exceptions=False)
        assert done.exit_code == status, done.output
        return done

    def made(self, scheduler: Scheduler) -> list[Schedule]:
        found = [each for each in scheduler.list(tag="crontab") if each["id"].startswith(f"{self.tag}-")]
        return sorted(found, key=lambda each: str(each["cron"]))


@pytest.fixture
def crontab(url: str, tmp_path: Path, tag: str) -> Crontab:
    file = tmp_path / "crontab"
    file.write_text(CRONTAB.format(tag=tag))
    return Crontab(url, file, tag)


def test_each_line_becomes_a_schedule_or_is_named_with_the_reason(
    crontab: Crontab, scheduler: Scheduler
) -> None:
    tried = crontab.run("--dry-run")
    assert tried.stdout.endswith("dry run: created 2, changed 0, unchanged 0, differs 0, refused 2\n")
    assert f"REGION= /opt/jobs/{crontab.tag} --daily" in tried.stderr
    assert crontab.made(scheduler) == []
    done = crontab.run()
    assert done.stdout == "created 2, changed 0, unchanged 0, differs 0, refused 2\n"
    assert "line 5: cannot be taken over: @reboot" in done.stderr
    assert "line 6: cannot be taken over: cron" in done.stderr
    assert "line 4: nothing is mailed to ops@example.com" in done.stderr
    daily, hourly = crontab.made(scheduler)
    assert (daily["cron"], daily["timezone"], daily["name"]) == (
        "30 2 * * 1-5",
        "Europe/Zurich",
        f"/opt/jobs/{crontab.tag} --daily",
    )
    assert daily["action"]["command"] == [f"/opt/jobs/{crontab.tag}", "--daily"]
    assert list(daily["action"]["env"]) == ["REGION"]
    assert (hourly["cron"], hourly["action"]["shell"], hourly["timeout_seconds"]) == ("@hourly", True, 300)


def test_a_repeat_changes_nothing_and_an_edited_line_only_where_it_is_told_to(
    crontab: Crontab, scheduler: Scheduler
) -> None:
    crontab.run()
    assert crontab.run().stdout.startswith("created 0, changed 0, unchanged 2,")
    crontab.file.write_text(crontab.file.read_text().replace("30 2", "# above\n45 3"))
    assert "differs; --update changes it" in crontab.run().stderr
    assert crontab.run("--update").stdout.startswith("created 0, changed 1, unchanged 1,")
    assert crontab.made(scheduler)[0]["cron"] == "45 3 * * 1-5"

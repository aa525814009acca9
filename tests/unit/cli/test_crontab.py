"""A crontab's lines as schedules: what cron does with them is done here, or they are refused by name."""

from typing import Any

import pytest

from scheduler_app.cli.commands import import_crontab
from scheduler_app.cli.commands.import_crontab import (
    CrontabLine,
    action_of,
    pattern_of,
    read_crontab,
    schedule_of,
)
from scheduler_app.cli.entry_import import RefusedEntry
from scheduler_app.domain.command_action import AllowedCommands, CommandAction

ZURICH = "Europe/Zurich"


def read(text: str, *, user_column: bool = False) -> list[CrontabLine | RefusedEntry]:
    return list(read_crontab(text.splitlines(keepends=True), ZURICH, user_column=user_column))


def taken(text: str, **options: bool) -> CrontabLine:
    (line,) = read(text, **options)
    assert isinstance(line, CrontabLine), line
    return line


def refused(text: str, **options: bool) -> str:
    (line,) = read(text, **options)
    assert isinstance(line, RefusedEntry), line
    return line.reason


def test_five_fields_and_a_command_become_a_schedule_that_is_tried_once() -> None:
    line = taken("# nightly\n\n  5  4 * * sun\t/opt/jobs/report --daily\n")
    assert schedule_of(line, timeout_seconds=60) == {
        "name": "/opt/jobs/report --daily",
        "tags": ["crontab"],
        "action": {"type": "command", "command": ["/opt/jobs/report", "--daily"]},
        "max_retries": 0,
        "timeout_seconds": 60,
        "cron": "5 4 * * sun",
        "timezone": ZURICH,
    }


def test_a_shorthand_is_a_time_and_reboot_is_refused_by_name() -> None:
    assert taken("@Daily /opt/x").trigger["cron"] == "@daily"
    assert "@reboot" in refused("@reboot /opt/x")


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("/opt/x 'a b' c", {"command": ["/opt/x", "a b", "c"]}),
        ("cd /tmp && ./x > log 2>&1", {"command": "cd /tmp && ./x > log 2>&1", "shell": True}),
        ("DAY=1 /opt/x", {"command": "DAY=1 /opt/x", "shell": True}),
        ("exit 3", {"command": "exit 3", "shell": True}),
        ("/opt/x $HOME", {"command": "/opt/x $HOME", "shell": True}),
        ("/opt/x 'open", {"command": "/opt/x 'open", "shell": True}),
        (r"date +\%F", {"command": ["date", "+%F"]}),
    ],
)
def test_a_command_is_words_unless_it_needs_a_shell(text: str, action: dict[str, Any]) -> None:
    assert taken(f"* * * * * {text}").action == {"type": "command", **action}


def test_the_crontab_s_own_shell_runs_what_needs_one() -> None:
    lines = "SHELL=/bin/bash\n* * * * * [[ -f /x ]] && /opt/x\n"
    assert taken(lines).action["command"] == ["/bin/bash", "-c", "[[ -f /x ]] && /opt/x"]


def test_environment_lines_hold_for_the_commands_below_them() -> None:
    first, second = read("""A=1\n* * * * * /opt/x\n'B' = " two  words "\n A=3\n* * * * * /opt/y\n""")
    assert isinstance(first, CrontabLine)
    assert isinstance(second, CrontabLine)
    assert first.action["env"] == {"A": "1"}
    assert second.action["env"] == {"A": "3", "B": " two  words "}


def test_variables_that_speak_to_cron_are_no_command_s_and_what_is_lost_is_said() -> None:
    line = taken("MAILTO=ops@example.com\nPATH=/opt/bin\nRANDOM_DELAY=5\n* * * * * /opt/x\n")
    assert "env" not in line.action
    said = "\n".join(line.notes)
    for each in ("ops@example.com", "PATH", "RANDOM_DELAY"):
        assert each in said
    assert taken('MAILTO=""\n* * * * * /opt/x\n').notes == ()


def test_a_zone_of_the_crontab_goes_before_and_a_wrong_one_harms_the_lines_below_it_alone() -> None:
    above, wrong, right = read(
        "* * * * * a\nCRON_TZ=Europe/Nowhere\n* * * * * b\nCRON_TZ=Asia/Tokyo\n* * * * * c\n"
    )
    assert isinstance(above, CrontabLine)
    assert above.trigger["timezone"] == ZURICH
    assert isinstance(wrong, RefusedEntry)
    assert "Europe/Nowhere" in wrong.reason
    assert isinstance(right, CrontabLine)
    assert right.trigger["timezone"] == "Asia/Tokyo"


def test_standard_input_after_a_percent_sign_is_refused() -> None:
    assert "standard input" in refused("0 9 * * 1 mail -s hello ops%Good morning%")


def test_the_column_of_users_is_no_part_of_the_command() -> None:
    line = taken("17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly\n", user_column=True)
    assert line.action["command"] == "cd / && run-parts --report /etc/cron.hourly"
    assert any("root" in note for note in line.notes)
    assert "user" in refused("* * * * * root", user_column=True)


def test_one_wrong_line_harms_only_itself() -> None:
    first, wrong, last = read("* * * * * a\nwhat is this\n* * * * * b\n")
    assert isinstance(wrong, RefusedEntry)
    assert wrong.name == "line 2"
    assert isinstance(first, CrontabLine)
    assert isinstance(last, CrontabLine)


def test_lines_are_known_by_their_commands_wherever_they_stand() -> None:
    def keys(text: str) -> list[str]:
        return [line.key for line in read(text) if isinstance(line, CrontabLine)]

    assert keys("0 1 * * * a\n0 2 * * * b\n") == keys("# new\n0 1 * * * a\n30 2 * * * b\n")
    assert len(set(keys("0 1 * * * a\n0 2 * * * a\n"))) == 2


def test_a_crontab_has_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_crontab, "MAX_LINES", 2)
    *_, last = read("* * * * * a\n" * 4)
    assert isinstance(last, RefusedEntry)
    assert last.name == "line 3"
    assert len(read("* * * * * a\n" * 4)) == 3


@pytest.mark.parametrize(
    "text", ["/opt/x 'a b'", "cd / && ./x", "/opt/x $A", "date +%F", 'echo "it\'s"', "X=1 y", "a;b"]
)
@pytest.mark.parametrize("env", [{}, {"B": "1", "A": "2"}])
@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/bash"])
def test_the_pattern_that_is_shown_allows_the_command(text: str, env: dict[str, str], shell: str) -> None:
    action = action_of(text, shell, env)
    pattern = pattern_of(action)
    assert pattern is not None
    words = (action["command"],) if action.get("shell") else tuple(action["command"])
    variables = tuple(action.get("env", {}).items())
    made = CommandAction(
        command=words, shell=action.get("shell", False), env=variables, retry_exit_codes=None
    )
    assert AllowedCommands.parse([pattern]).allow(made)
    assert pattern_of(action_of("rm /tmp/*", "/bin/sh", {})) is None

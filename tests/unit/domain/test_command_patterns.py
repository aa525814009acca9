"""Which commands ALLOWED_COMMANDS allow: the whole command, word by word."""

import shlex

import pytest

from scheduler_app.domain.command_action import CommandAction
from scheduler_app.domain.command_patterns import AllowedCommands, parse_patterns

ALLOWED = AllowedCommands.parse(
    (
        "echo *",
        "sleep *",
        "/opt/jobs/*",
        "tar -c * -f -",
        "shell:/opt/jobs/*",
        "shell:echo *",
        "shell:date | cat",
    )
)


def program(line: str) -> CommandAction:
    return CommandAction(tuple(shlex.split(line)))


def shell(line: str) -> CommandAction:
    return CommandAction((line,), shell=True)


@pytest.mark.parametrize(
    "line",
    [
        "echo hello",
        "echo hello wide world",
        'echo "a b"',
        "echo ; rm -rf /",  # words for echo: no shell reads them
        "echo $(reboot)",
        "sleep 1",
        "/opt/jobs/report",
        "/opt/jobs/report-2.sh",
        "tar -c a b c -f -",
    ],
)
def test_what_matches_a_pattern_is_allowed(line: str) -> None:
    assert ALLOWED.allow(program(line))


@pytest.mark.parametrize("line", ["/opt/jobs/report", "echo hello world", "echo 'two words'", "date | cat"])
def test_what_matches_a_pattern_of_the_shell_is_allowed_to_the_shell(line: str) -> None:
    assert ALLOWED.allow(shell(line))


@pytest.mark.parametrize(
    "line",
    [
        "echo",  # a star is one word at least
        "sleep",
        "rm -rf /",
        "ECHO hello",
        "Echo hello",
        "./echo hello",
        "/bin/echo hello",
        "../echo hello",
        "echo\\ hello",
        "'echo hello'",
        "echoes hello",
        "xecho hello",
        "env echo hello",
        "sudo echo hello",
        "/opt/jobs",
        "/opt/jobs/",
        "/opt/jobs/..",
        "/opt/jobs/../../bin/sh",
        "/opt/jobs/a/../b",
        "/opt/jobs/sub/report",
        "/opt/jobs/./report",
        "//opt/jobs/report",
        "/opt//jobs/report",
        "/opt/jobs/report --now",
        "/OPT/jobs/report",
        "opt/jobs/report",
        "/opt/jobs/re\\ port",
        "'/opt/jobs/re\nport'",
        "tar -c -f -",
        "tar -c a -f - -x",
        "tar -c a -f",
        "tar -x a -f -",
        "date | cat",
        "sh -c 'echo hello'",
        "bash",
        "\u00e9cho hello",
        "\uff45cho hello",
        "echo\u00a0hello",
        "''",
    ],
)
def test_what_matches_none_is_not_allowed(line: str) -> None:
    assert not ALLOWED.allow(program(line))


@pytest.mark.parametrize(
    "line",
    [
        "echo a; reboot",
        "echo a && reboot",
        "echo a | sh",
        "echo a > /etc/passwd",
        "echo $(reboot)",
        "echo `reboot`",
        "echo $PASSWORD",
        "echo a & reboot",
        "echo a\nreboot",
        "echo a\rreboot",
        "echo a\treboot",
        "echo {a,b}",
        "echo ~root",
        "echo *",
        "echo a #b",
        "echo a\\;b",
        'echo "$(reboot)"',
        "echo 'a",
        "/opt/jobs/x;reboot",
        "/opt/jobs/$IFS",
        "/opt/jobs/../sh",
        "/opt/jobs/x y",
        "date | cat ; reboot",
        "date|cat",
        " ",
        "sleep 1",
    ],
)
def test_a_shell_is_given_nothing_beyond_the_words_of_a_pattern(line: str) -> None:
    assert not ALLOWED.allow(shell(line))


def test_without_patterns_nothing_is_allowed() -> None:
    nothing = AllowedCommands.parse(())
    assert not nothing
    assert not nothing.allow(program("true"))


def test_a_star_alone_allows_every_program_and_no_shell() -> None:
    programs = AllowedCommands.parse(("*",))
    assert programs.allow(program("rm -rf /"))
    assert not programs.allow(shell("rm -rf /"))
    assert AllowedCommands.parse(("shell:*",)).allow(shell("a | b > c"))


def test_the_setting_is_text_with_commas_or_a_json_list() -> None:
    assert parse_patterns(" echo *, sleep 1 ,") == ("echo *", "sleep 1")
    assert parse_patterns('["echo a,b", "sleep 1"]') == ("echo a,b", "sleep 1")
    assert parse_patterns("") == ()


@pytest.mark.parametrize("value", ["shell:", "echo 'a", "[1]", "[", ",".join(["a"] * 201), '["  "]'])
def test_a_wrong_setting_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="must"):
        parse_patterns(value)


def test_many_stars_cost_little() -> None:
    pattern = AllowedCommands.parse((" ".join(["a", *["*", "a"] * 100]),))
    assert not pattern.allow(CommandAction(("a",) * 255 + ("b",)))

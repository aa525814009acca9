"""Which commands ALLOWED_COMMANDS allow: the whole command, word by word."""

import shlex

import pytest

from scheduler_app.domain.command_action import (
    AllowedCommands,
    CommandAction,
    opening_patterns,
    parse_patterns,
)

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


def with_variables(line: str, *names: str) -> CommandAction:
    return CommandAction(tuple(shlex.split(line)), env=tuple((name, "x") for name in names))


def test_a_pattern_names_the_variables_that_a_schedule_may_set() -> None:
    allowed = AllowedCommands.parse(("MONTH= REGION= make report *", "make clean", "TRACE= make clean"))
    assert allowed.allow(with_variables("make report eu", "REGION", "MONTH"))
    assert allowed.allow(with_variables("make report eu"))
    assert allowed.allow(with_variables("make clean", "TRACE"))
    assert not allowed.allow(with_variables("make report eu", "MONTH", "GNUMAKEFLAGS"))
    assert not allowed.allow(with_variables("make clean", "MONTH")), "another pattern names it"


def test_the_refusal_of_a_variable_names_it_and_the_pattern_that_would_do() -> None:
    allowed = AllowedCommands.parse(("make report *", "MONTH= make report *", "shell:date | wc"))
    said = allowed.refusal(with_variables("make report eu", "MONTH", "GNUMAKEFLAGS")) or ""
    assert "names GNUMAKEFLAGS;" in said
    assert said.endswith("the pattern MONTH= GNUMAKEFLAGS= make report *")
    line = CommandAction(("date | wc",), shell=True, env=(("TZ", "x"),))
    assert (allowed.refusal(line) or "").endswith("the pattern shell:TZ= date | wc")
    assert AllowedCommands.parse(("shell:TZ= date | wc",)).allow(line)
    assert "ask the operator for a pattern" in (allowed.refusal(program("reboot")) or "")
    assert allowed.refusal(program("make report eu")) is None


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "*",
            "* *",
            "* x",
            "shell:*",
            "shell: *",
            "shell:* ",
            "shell:* *",
            "**",
            "*** *",
            "shell:'*'",
            "'*' x",
        ),
        *(
            "A= *",
            "shell:A= B= *",
            "/bin/* *",
            "/*/* *",
            "/usr/bin/s* *",
            "s* -c *",
            "shell:/bin/* *",
            "*h *",
        ),
    ],
)
def test_a_pattern_that_allows_any_program_is_recognized(pattern: str) -> None:
    assert opening_patterns(["echo *", pattern]) == [pattern]


@pytest.mark.parametrize(
    "pattern",
    [
        "echo *",
        "/opt/jobs/*",
        "/opt/jobs/* *",
        "/bin/*",
        "report-* *",
        "shell:/opt/jobs/* *",
        "A= echo *",
        "a '*'",
    ],
)
def test_a_pattern_that_names_programs_or_their_folder_is_no_such_pattern(pattern: str) -> None:
    assert opening_patterns([pattern]) == []


@pytest.mark.parametrize(
    "pattern", ["PATH= make", "SCHEDULER_EVENT_ID= make", "MONTH=", "shell:MONTH= ", "MONTH= shell:make"]
)
def test_a_pattern_with_a_variable_of_ours_or_without_a_command_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="must be patterns"):
        parse_patterns(pattern)

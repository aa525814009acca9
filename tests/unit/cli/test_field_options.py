"""The options of `scheduler create` follow from the client's types."""

from typing import get_type_hints

import click
from click.testing import CliRunner

from scheduler_app.cli.field_options import field_options, given_fields
from scheduler_app.client import ScheduleFields

found: dict[str, object] = {}


@click.command()
@field_options(ScheduleFields, without=("id",))
def command(**options: object) -> None:
    found.clear()
    found.update(given_fields(options))


def run(*arguments: str) -> dict[str, object]:
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    return dict(found)


def test_every_field_has_an_option_but_those_without() -> None:
    assert {option.name for option in command.params} == get_type_hints(ScheduleFields).keys() - {"id"}
    assert all(isinstance(each, click.Option) and each.help for each in command.params)


def test_values_have_the_types_that_the_api_takes() -> None:
    given = run("--max-retries", "0", "--timeout-seconds", "2.5", "--no-signing", "--method", "post")
    assert given == {"max_retries": 0, "timeout_seconds": 2.5, "signing": False, "method": "POST"}
    assert run("--tag", "a", "--tag", "b", "--retry-code", "5xx") == {
        "tags": ["a", "b"],
        "retry_codes": ["5xx"],
    }


def test_names_and_values_are_given_one_by_one() -> None:
    assert run("--header", "X-Team: billing", "--header", "X-At:10:30") == {
        "headers": {"X-Team": "billing", "X-At": "10:30"}
    }
    done = CliRunner().invoke(command, ["--header", "letmein"])
    assert done.exit_code == 2
    assert "is not NAME: VALUE" in done.output


def test_what_is_expected_is_given_as_durations() -> None:
    given = run("--expect", "success_within_seconds: 26h", "--expect", "max_runtime_seconds: 90")
    assert given == {"expect": {"success_within_seconds": 93_600, "max_runtime_seconds": 90}}
    done = CliRunner().invoke(command, ["--expect", "max_runtime_seconds: soon"])
    assert done.exit_code == 2
    assert "10m" in done.output


def test_a_field_that_may_only_be_true_is_a_flag() -> None:
    assert run("--on-demand") == {"on_demand": True}
    assert CliRunner().invoke(command, ["--no-on-demand"]).exit_code == 2


def test_what_was_not_given_is_left_out() -> None:
    assert run() == {}


def test_a_word_that_is_none_of_the_choices_is_refused() -> None:
    done = CliRunner().invoke(command, ["--gap", "sideways"])
    assert done.exit_code == 2
    assert "shift" in done.output


def test_a_trigger_has_a_short_option_beside_the_name_of_its_field() -> None:
    assert run("--every", "1h30m") == run("--every-seconds", "5400") == {"every_seconds": 5_400}
    assert run("--in", "10m") == run("--delay-seconds", "600") == {"delay_seconds": 600}
    assert run("--at", "2040-01-01T00:00:00Z") == {"run_at": "2040-01-01T00:00:00Z"}
    assert run("--cron", "0 9 * * *") == {"cron": "0 9 * * *"}
    assert run("--phrase", "every monday at noon") == {"phrase": "every monday at noon"}


def test_a_duration_that_is_none_is_refused_with_examples() -> None:
    done = CliRunner().invoke(command, ["--in", "soon"])
    assert done.exit_code == 2
    assert "10m" in done.output

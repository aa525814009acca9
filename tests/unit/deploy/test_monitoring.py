"""The alarms and the board speak of metrics that exist, in words that Prometheus understands.

promtool, which checks the rules and runs their tests, is a step of `make containers`, which installs it.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import promql_parser
import pytest
import yaml

from scheduler_app.telemetry import metrics
from tests.unit.deploy.commands import ROOT

RULES = ROOT / "deploy" / "prometheus" / "rules.yml"
RULES_TEST = ROOT / "deploy" / "prometheus" / "rules_test.yml"
BOARD = json.loads((ROOT / "deploy" / "grafana" / "board.json").read_text())
#: What Grafana puts there is an interval.
VARIABLES = {"$__rate_interval": "5m"}
#: Prometheus makes these of every target and of every rule.
ITS_OWN = {"up"}


def alarms() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in BOARD["panels"] if panel["type"] != "row"]


def queries() -> list[str]:
    return [alarm["expr"] for alarm in alarms()] + [
        target["expr"] for panel in panels() for target in panel["targets"]
    ]


def existing() -> set[str]:
    """The series that our processes show."""
    suffixes = {"counter": [""], "gauge": [""], "histogram": ["_bucket", "_sum", "_count"]}
    return {each.name + suffix for each in metrics.DEFINITIONS for suffix in suffixes[each.kind]}


def selected(node: Any) -> Iterator[promql_parser.VectorSelector]:
    """Every selector of a parsed query."""
    if isinstance(node, promql_parser.VectorSelector):
        yield node
    for part in ("lhs", "rhs", "expr", "vector_selector", "vs"):
        if (child := getattr(node, part, None)) is not None:
            yield from selected(child)
    for child in getattr(node, "args", None) or []:
        yield from selected(child)


def parsed(query: str) -> Any:
    for name, value in VARIABLES.items():
        query = query.replace(name, value)
    return promql_parser.parse(query)


@pytest.mark.parametrize("query", queries())
def test_a_query_parses_and_names_metrics_that_exist(query: str) -> None:
    names = {selector.name for selector in selected(parsed(query))}
    assert names
    assert names <= existing() | ITS_OWN


@pytest.mark.parametrize("alarm", alarms(), ids=lambda alarm: str(alarm["alert"]))
def test_an_alarm_says_what_it_means_and_what_to_do(alarm: dict[str, Any]) -> None:
    assert set(alarm["annotations"]) == {"summary", "meaning", "action"}
    assert all(len(text) > 15 for text in alarm["annotations"].values())
    assert alarm["labels"]["severity"] in ("page", "ticket")


def test_every_alarm_is_tried_both_quiet_and_firing() -> None:
    quiet, *others = yaml.safe_load(RULES_TEST.read_text())["tests"]
    fires = "".join(
        sample["labels"]
        for test in others
        for tried in test["promql_expr_test"]
        for sample in tried["exp_samples"]
    )
    names = {alarm["alert"] for alarm in alarms()}
    assert {test["alertname"] for test in quiet["alert_rule_test"]} == names
    assert set(re.findall(r'alertname="(\w+)"', fires)) == names


def test_alarms_are_tried_as_often_as_prometheus_looks_at_them() -> None:
    config = yaml.safe_load(RULES.with_name("prometheus.yml").read_text())
    tried = yaml.safe_load(RULES_TEST.read_text())
    assert config["global"]["evaluation_interval"] == tried["evaluation_interval"]


def test_the_jobs_that_alarms_name_are_scraped() -> None:
    config = yaml.safe_load(RULES.with_name("prometheus.yml").read_text())
    named = set(re.findall(r'job="([\w-]+)"', RULES.read_text()))
    assert named <= {job["job_name"] for job in config["scrape_configs"]}


def test_no_panel_covers_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in BOARD["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])

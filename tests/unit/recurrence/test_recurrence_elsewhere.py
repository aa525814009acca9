"""What other projects' tests state of rules: `facts_elsewhere.txt` holds the facts, and why ours differ."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from scheduler_app.domain.recurrence import InvalidRecurrence, Recurrence

CREATED = datetime(2026, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 30, tzinfo=UTC)
LINES = Path(__file__).with_name("facts_elsewhere.txt").read_text(encoding="utf-8").splitlines()
FACTS = [[field.strip() for field in line.split("|")] for line in LINES if not line.startswith("#")]


def occurrences(listed: str, start: str) -> list[str]:
    """The local times of a list in the form of the table."""
    found: list[str] = []
    for value in listed.split():
        day, _, time = value.partition("T")
        day = found[-1][: 8 - len(day)] + day if found else day
        found.append(f"{day}T{time or start[9:] or '000000'}")
    return found


@pytest.mark.parametrize("project", sorted({fact[0] for fact in FACTS}))
def test_the_facts_of_other_projects_hold_but_where_a_rule_says_why(project: str) -> None:
    for _, zone, start, rule, listed, *differs in (fact for fact in FACTS if fact[0] == project):
        ours = differs[0].partition(" ")[2] if differs else listed
        text = f"DTSTART:{start}\nRRULE:{rule}"
        if ours == "refused":
            with pytest.raises(InvalidRecurrence):
                Recurrence.parse(text, created_at=CREATED, timezone=zone)
            continue
        expected = [] if ours == "none" else occurrences(ours, start)
        found = Recurrence.parse(text, created_at=CREATED, timezone=zone)
        # One more than listed, to see that a rule with an end has ended.
        more = int(not differs and ("COUNT" in rule or "UNTIL" in rule))
        instants = found.between(found.dtstart - timedelta(days=3), LATEST, len(expected) + more)
        local = [f"{instant.astimezone(found.dtstart.tzinfo):%Y%m%dT%H%M%S}" for instant in instants]
        assert local == expected, f"{rule} from {start} in {zone}"


def test_the_counts_in_the_head_of_the_table_are_those_of_its_rows() -> None:
    facts, agree = (
        Counter(fact[0] for fact in FACTS),
        Counter(fact[0] for fact in FACTS if len(fact) == 5),
    )
    for project in facts:
        row = next(line.split() for line in LINES if line.startswith(f"#   {project} "))
        assert row[2:4] == [str(facts[project]), str(agree[project])], project
    assert len(FACTS) > 500

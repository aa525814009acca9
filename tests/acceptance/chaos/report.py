"""The table of a run, and the breaks that it found, by name."""

from rich.console import Console
from rich.table import Table

from tests.acceptance.chaos.suite import Row

NAMED = 12
COLUMNS = (
    "fault", "seed", "occurrences", "requests", "lost", "sent twice", "permitted", "not owed", "early",
    "stuck", "histories", "overlaps", "withheld", "exited", "late s", "took s",
)  # fmt: skip


def table(rows: list[Row]) -> Table:
    made = Table(title="What was broken, and what became of it")
    for column in COLUMNS:
        made.add_column(column, justify="left" if column == "fault" else "right")
    for row in rows:
        found = row.findings
        lists = (
            found.lost, found.repeated, found.permitted, found.not_owed, found.early, found.stuck,
            found.histories, found.overlaps, found.withheld, found.exited,
        )  # fmt: skip
        made.add_row(
            row.fault,
            str(row.seed),
            f"{found.occurrences:,}",
            f"{found.requests:,}",
            *(str(len(each)) for each in lists),
            str(row.late_seconds),
            str(row.seconds),
            style="red" if found.broken else None,
        )
    return made


def show_breaks(console: Console, row: Row) -> None:
    """The first of each kind, so that a failing run tells what to look at."""
    found = row.findings
    for kind in (
        "lost", "repeated", "not_owed", "early", "stuck", "histories", "overlaps", "withheld", "exited",
    ):  # fmt: skip
        names = getattr(found, kind)
        for name in names[:NAMED]:
            console.print(f"  {kind}: {name}", highlight=False)
        if len(names) > NAMED:
            console.print(f"  {kind}: … and {len(names) - NAMED} more")

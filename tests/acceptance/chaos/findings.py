"""What an audit has found."""

from dataclasses import dataclass, field


@dataclass
class Findings:
    """What an audit saw; every list but `permitted` names breaks of the promise."""

    occurrences: int = 0
    requests: int = 0
    lost: list[str] = field(default_factory=list)
    not_owed: list[str] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    permitted: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    histories: list[str] = field(default_factory=list)
    overlaps: list[str] = field(default_factory=list)
    withheld: list[str] = field(default_factory=list)
    """Called, though a kill switch or a blackout stopped it."""
    exited: list[str] = field(default_factory=list)
    last_late_at: float = 0.0

    @property
    def broken(self) -> bool:
        return bool(
            self.lost
            or self.not_owed
            or self.repeated
            or self.stuck
            or self.early
            or self.histories
            or self.overlaps
            or self.withheld
            or self.exited
        )

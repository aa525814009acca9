"""Checks the processes by their own reports: beats tick, workers consume, clocks agree."""

from collections.abc import Sequence

from scheduler_app.clock import WARN_OFFSET_SECONDS
from scheduler_app.health.check import Check, fine, unknown, wrong
from scheduler_app.store.processes import ProcessRecord

#: A tick takes the ticker interval (60 s at most) and some time for a large backlog.
TICK_SECONDS = 90
#: How many processes a sentence names.
NAMED = 5


def check_fleet(nodes: Sequence[ProcessRecord] | None) -> list[Check]:
    """Checks `beat`, `worker` and `clocks`; `nodes` is None when MongoDB did not answer."""
    if nodes is None:
        return [unknown(name, "MongoDB does not answer") for name in ("beat", "worker", "clocks")]
    return [_beats(nodes), _workers(nodes), _clocks(nodes)]


def named(nodes: Sequence[ProcessRecord]) -> str:
    """Returns the names of the first few processes."""
    more = f" and {len(nodes) - NAMED} more" if len(nodes) > NAMED else ""
    return ", ".join(node.name or node.id for node in nodes[:NAMED]) + more


def _beats(nodes: Sequence[ProcessRecord]) -> Check:
    alive = [node for node in nodes if node.role == "beat"]
    ticking = [node for node in alive if _tick_age(node) < TICK_SECONDS]
    if ticking:
        return fine("beat", f"{len(ticking)} alive: {named(ticking)}", alive=len(ticking))
    if alive:
        return wrong(
            "beat",
            f"alive, but no tick has ended for {min(map(_tick_age, alive)):.0f} s: {named(alive)}",
            "read its log for what the tick waits for, and restart it",
            alive=0,
        )
    return wrong("beat", "no beat has reported", "start one: celery -A scheduler_app beat", alive=0)


def _tick_age(node: ProcessRecord) -> float:
    """Returns the seconds since the last tick ended, by mongod's clock; 0 before the first tick has ended."""
    ended = node.last_tick_at
    if ended is None:
        return 0.0
    # After a jump of mongod's clock beat reports monotonic time, while `seen_at` is mongod's.
    return float(node.age_seconds + (node.seen_at - ended).total_seconds()) - _jump(node)


def _workers(nodes: Sequence[ProcessRecord]) -> Check:
    alive = [node for node in nodes if node.role == "worker"]
    consuming = [node for node in alive if node.consuming]
    if consuming:
        return fine("worker", f"{len(consuming)} alive: {named(consuming)}", alive=len(consuming))
    if alive:
        return wrong(
            "worker",
            f"alive, but not consuming: {named(alive)}",
            "their clocks are too far off (see clocks); they continue by themselves once the clocks are set",
            alive=0,
        )
    return wrong(
        "worker",
        "no worker has reported",
        "start one: celery -A scheduler_app worker --pool threads --without-gossip --without-mingle",
        alive=0,
    )


def _clocks(nodes: Sequence[ProcessRecord]) -> Check:
    jumped = [node for node in nodes if _jump(node)]
    if jumped:
        jump = max(map(_jump, jumped), key=abs)
        side = "ahead of" if jump > 0 else "behind"
        return wrong(
            "clocks",
            f"mongod's clock has jumped: it is {abs(jump):.1f} s {side} the monotonic time that"
            f" {len(jumped)} of {len(nodes)} processes follow: {named(jumped)}",
            "set the clock of MongoDB's host by NTP; if it is right, set those of these processes' hosts:"
            " they follow it then",
            jump_seconds=jump,
        )
    offsets = {node.id: node.clock_offset_seconds for node in nodes}
    off = [node for node in nodes if abs(offsets[node.id]) > WARN_OFFSET_SECONDS]
    largest = max(offsets.values(), key=abs, default=0.0)
    if not off:
        return fine(
            "clocks",
            f"{len(nodes)} processes, at most {abs(largest):.3f} s off mongod's clock",
            largest_offset_seconds=largest,
        )
    those = ", ".join(
        f"{node.role} {node.name or node.id} on {node.host} is {_off(offsets[node.id])}"
        for node in off[:NAMED]
    )
    return wrong(
        "clocks",
        those,
        "set the clocks of these hosts and of MongoDB's by NTP (chrony or systemd-timesyncd)",
        largest_offset_seconds=largest,
    )


def _jump(node: ProcessRecord) -> float:
    return node.clock_jump_seconds


def _off(offset: float) -> str:
    """`offset` is mongod's clock minus the process's own, in seconds."""
    return f"{abs(offset):.1f} s {'behind' if offset > 0 else 'ahead of'} mongod"

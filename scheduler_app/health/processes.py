"""Checks the processes by their own reports.

Beats tick, workers consume, clocks agree; all run with the same settings, and none is of an older release
that ignores policies which this one obeys; receivers keep up.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from scheduler_app.clock import WARN_OFFSET_SECONDS
from scheduler_app.health.check import NAMED, Check, fine, first_few, note, wrong
from scheduler_app.store.processes import ProcessRecord

#: A tick takes the ticker interval (60 s at most) and some time for a large backlog.
TICK_SECONDS = 90


def check_fleet(nodes: Sequence[ProcessRecord]) -> list[Check]:
    """Checks `beat`, `worker` and `clocks`."""
    return [_beats(nodes), _workers(nodes), _clocks(nodes)]


def process_names(nodes: Sequence[ProcessRecord]) -> str:
    """Returns the names of the first few processes."""
    return first_few(node.name or node.id for node in nodes)


def _role(
    nodes: Sequence[ProcessRecord],
    role: str,
    works: Callable[[ProcessRecord], bool],
    idle: Callable[[Sequence[ProcessRecord]], str],
    remedy: str,
    start: str,
) -> Check:
    """Whether a process of a role works; `idle` says what those that are alive do not do."""
    alive = [node for node in nodes if node.role == role]
    working = [node for node in alive if works(node)]
    if working:
        return fine(role, f"{len(working)} alive: {process_names(working)}", alive=len(working))
    if alive:
        return wrong(role, f"alive, but {idle(alive)}: {process_names(alive)}", remedy, alive=0)
    return wrong(role, f"no {role} has reported", f"start one: celery -A scheduler_app {start}", alive=0)


def _beats(nodes: Sequence[ProcessRecord]) -> Check:
    return _role(
        nodes,
        "beat",
        lambda node: _tick_age(node) < TICK_SECONDS,
        lambda alive: f"no tick has ended for {min(map(_tick_age, alive)):.0f} s",
        "read its log for what the tick waits for, and restart it",
        "beat",
    )


def _tick_age(node: ProcessRecord) -> float:
    """Returns the seconds since the last tick ended, by mongod's clock; 0 before the first tick has ended."""
    ended = node.last_tick_at
    if ended is None:
        return 0.0
    # After a jump of mongod's clock beat reports monotonic time, while `seen_at` is mongod's.
    return float(node.age_seconds + (node.seen_at - ended).total_seconds()) - node.clock_jump_seconds


def _workers(nodes: Sequence[ProcessRecord]) -> Check:
    return _role(
        nodes,
        "worker",
        lambda node: node.consuming,
        lambda _: "not consuming",
        "their clocks are too far off (see clocks); they continue by themselves once the clocks are set",
        "worker --pool threads --without-gossip --without-mingle",
    )


def _clocks(nodes: Sequence[ProcessRecord]) -> Check:
    jumped = [node for node in nodes if node.clock_jump_seconds]
    if jumped:
        jump = max((node.clock_jump_seconds for node in jumped), key=abs)
        side = "ahead of" if jump > 0 else "behind"
        return wrong(
            "clocks",
            f"mongod's clock has jumped: it is {abs(jump):.1f} s {side} the monotonic time that"
            f" {len(jumped)} of {len(nodes)} processes follow: {process_names(jumped)}",
            "set the clock of MongoDB's host by NTP; if it is right, set those of these processes' hosts:"
            " they follow it then",
            jump_seconds=jump,
        )
    off = [node for node in nodes if abs(node.clock_offset_seconds) > WARN_OFFSET_SECONDS]
    largest = max((node.clock_offset_seconds for node in nodes), key=abs, default=0.0)
    if not off:
        return fine(
            "clocks",
            f"{len(nodes)} processes, at most {abs(largest):.3f} s off mongod's clock",
            largest_offset_seconds=largest,
        )
    those = ", ".join(
        f"{node.role} {node.name or node.id} on {node.host} is {_offset_text(node.clock_offset_seconds)}"
        for node in off[:NAMED]
    )
    return wrong(
        "clocks",
        those,
        "set the clocks of these hosts and of MongoDB's by NTP (chrony or systemd-timesyncd)",
        largest_offset_seconds=largest,
    )


def _offset_text(offset: float) -> str:
    """`offset` is mongod's clock minus the process's own, in seconds."""
    return f"{abs(offset):.1f} s {'behind' if offset > 0 else 'ahead of'} mongod"


SETTINGS = "settings"
#: The roles that use each setting: a difference elsewhere does not matter.
_USED_BY: dict[str, tuple[str, ...]] = {
    "CALLBACK_ALLOWED_NETWORKS": ("api", "worker"),
    "CALLBACK_DENIED_PORTS": ("api", "worker"),
    "DISPATCH_HORIZON_SECONDS": ("api", "beat", "worker"),
    "PREQUEUER_EVENT_TIMEFRAME_MINUTES": ("api", "beat"),
    "RETENTION_DAYS": ("api", "beat", "worker"),
    "SECRETS_KEY": ("api", "beat", "worker"),
}
_AGREEMENT_REMEDY = "give every process the same environment, and restart those that differ"


def check_settings(nodes: Sequence[ProcessRecord], own: Mapping[str, object], version: str) -> Check:
    """`own` are this process's settings, by name; nodes of an older release report none.

    A difference among the processes is wrong; a difference to this process only, or of versions, is a note.
    """
    differing = [sentence for name in _USED_BY for sentence in _differing(name, nodes)]
    if differing:
        return wrong(SETTINGS, "; ".join(differing), _AGREEMENT_REMEDY)
    apart = [
        f"{name} is {_shown_value(own[name])} here and {_shown_value(values[0])} in all that use it"
        for name in _USED_BY
        if (values := [value for _, value in _reported(name, nodes)]) and values[0] != own[name]
    ]
    if apart:
        return note(SETTINGS, "; ".join(apart), "run this command with the environment of the processes")
    versions = Counter(node.version for node in nodes if node.version) | Counter([version])
    if len(versions) > 1:
        return note(SETTINGS, f"several versions run: {', '.join(sorted(versions))}", "finish the upgrade")
    return fine(SETTINGS, f"{len(nodes)} processes agree, and this command with them")


def _reported(name: str, nodes: Sequence[ProcessRecord]) -> list[tuple[ProcessRecord, object]]:
    return [
        (node, node.settings[name]) for node in nodes if node.role in _USED_BY[name] and name in node.settings
    ]


def _differing(name: str, nodes: Sequence[ProcessRecord]) -> Iterator[str]:
    """Yields a sentence if there are several values: the most common one, and the processes with another."""
    reported = _reported(name, nodes)
    most = Counter(_shown_value(value) for _, value in reported).most_common()
    if len(most) < 2:
        return
    (usual, _), *others = most
    those = ", ".join(
        f"{other} in {process_names([node for node, value in reported if _shown_value(value) == other])}"
        for other, _ in others[:NAMED]
    )
    yield f"{name} is {usual} in most, but {those}"


def _shown_value(value: object) -> str:
    return "empty" if value == "" else str(value)


RELEASES = "releases"
#: The roles that send, dispatch or expand; an API does the last two.
_ROLES = ("api", "beat", "worker")


def check_releases(nodes: Sequence[ProcessRecord], level: int) -> Check:
    """`level` is the POLICY_LEVEL of this release."""
    older = [node for node in nodes if node.role in _ROLES and node.policy_level < level]
    if not older:
        return fine(RELEASES, "every process obeys all policies of this release", older=[])
    names = first_few(f"{node.role} {node.name or node.id}" for node in older)
    return note(
        RELEASES,
        f"of an older release: {names}; they ignore kill switches, blackouts, run_overlap and"
        " completion, or some of these",
        "finish the upgrade before you use these: end the old workers, then the old beats and APIs",
        older=[node.name or node.id for node in older],
    )


RECEIVERS = "receivers"
#: A receiver that is at its limit for a shorter time only gets a burst.
FULL_SECONDS = 5.0


def check_receivers(nodes: Sequence[ProcessRecord]) -> Check:
    """Names the origins that hang and the workers that are nearly full. The result is a note at most:
    callbacks to all other origins go on."""
    workers = [node for node in nodes if node.role == "worker"]
    origins = _load_by_origin(workers)
    full = [
        node for node in workers if node.events_limit is not None and node.events > 0.8 * node.events_limit
    ]
    if not origins and not full:
        return fine(RECEIVERS, "none is at its limit")
    crowded = [
        f"{name} has {load['in_flight']} requests in flight, {load['waiting']} waiting and"
        f" {load['postponed']} postponed"
        for name, load in list(origins.items())[:NAMED]
    ]
    if len(origins) > NAMED:
        crowded.append(f"{len(origins) - NAMED} more are at their limit")
    if full:
        crowded.append(f"over 80 % of WORKER_MAX_EVENTS are held by {process_names(full)}")
    return note(
        RECEIVERS,
        "; ".join(crowded),
        "see why it does not answer; shorten timeout_seconds, pause its schedules, or raise"
        " CALLBACK_ORIGIN_CONCURRENCY; all other callbacks continue",
        origins=list(origins),
    )


def _load_by_origin(workers: Sequence[ProcessRecord]) -> dict[str, dict[str, int]]:
    """Returns the load of each origin, summed over all workers, the busiest first."""
    loads: dict[str, dict[str, int]] = {}
    for node in workers:
        for load in node.origins:
            if load.postponed or load.full_seconds >= FULL_SECONDS:
                of_all = loads.setdefault(load.origin, {"in_flight": 0, "waiting": 0, "postponed": 0})
                for name in of_all:
                    of_all[name] += getattr(load, name)
    return dict(sorted(loads.items(), key=lambda each: sum(each[1].values()), reverse=True))

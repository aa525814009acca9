"""Checks whether all processes run with the same settings, which each process reports."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from scheduler_app.health.check import Check, fine, note, unknown, wrong
from scheduler_app.health.fleet import NAMED, named
from scheduler_app.store.processes import ProcessRecord

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
_REMEDY = "give every process the same environment, and restart those that differ"


def check_settings(nodes: Sequence[ProcessRecord] | None, own: Mapping[str, object], version: str) -> Check:
    """`own` are this process's settings, by name; nodes of an older release report none.

    A difference among the processes is wrong; a difference to this process only, or of versions, is a note.
    """
    if nodes is None:
        return unknown(SETTINGS, "MongoDB does not answer")
    differing = [sentence for name in _USED_BY for sentence in _differing(name, nodes)]
    if differing:
        return wrong(SETTINGS, "; ".join(differing), _REMEDY)
    apart = [
        f"{name} is {_shown(own[name])} here and {_shown(values[0])} in all that use it"
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
    most = Counter(_shown(value) for _, value in reported).most_common()
    if len(most) < 2:
        return
    (usual, _), *others = most
    those = ", ".join(
        f"{other} in {named([node for node, value in reported if _shown(value) == other])}"
        for other, _ in others[:NAMED]
    )
    yield f"{name} is {usual} in most, but {those}"


def _shown(value: object) -> str:
    return "empty" if value == "" else str(value)

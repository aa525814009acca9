"""Names processes of an older release that ignore policies which this one obeys."""

from collections.abc import Sequence

from scheduler_app.health.check import Check, fine, note, unknown
from scheduler_app.health.fleet import NAMED
from scheduler_app.store.processes import ProcessRecord

NAME = "releases"
#: The roles that send, dispatch or expand; an API does the last two.
_ROLES = ("api", "beat", "worker")


def check_releases(nodes: Sequence[ProcessRecord] | None, level: int) -> Check:
    """`nodes` is None when MongoDB did not answer; `level` is the POLICY_LEVEL of this release."""
    if nodes is None:
        return unknown(NAME, "MongoDB does not answer")
    older = [node for node in nodes if node.role in _ROLES and node.policy_level < level]
    if not older:
        return fine(NAME, "every process obeys all policies of this release", older=[])
    names = ", ".join(f"{node.role} {node.name or node.id}" for node in older[:NAMED])
    more = f" and {len(older) - NAMED} more" if len(older) > NAMED else ""
    return note(
        NAME,
        f"of an older release: {names}{more}; they ignore kill switches, blackouts, run_overlap and"
        " completion, or some of these",
        "finish the upgrade before you use these: end the old workers, then the old beats and APIs",
        older=[node.name or node.id for node in older],
    )

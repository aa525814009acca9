"""What a kill switch stops, in words."""

from scheduler_app.client import KillSwitch


def kill_switch_name(found: KillSwitch) -> str:
    return next((f"{name} {found[name]}" for name in ("tag", "destination") if name in found), "everything")

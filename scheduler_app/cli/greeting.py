"""What is printed when everything is ready: where it all is, and a line to try it with."""

import json
from collections.abc import Mapping

from scheduler_app.cli.addresses import api_url
from scheduler_app.config import Settings


def greeting(addresses: Mapping[str, str], settings: Settings) -> str:
    """The text, some lines long; `addresses` by their names."""
    api = api_url(settings)
    width = max(map(len, addresses))
    rows = [f"  {name.ljust(width)}  {address}" for name, address in addresses.items()]
    key = ' -H "Authorization: Bearer $API_KEY"' if settings.api_keys else ""
    schedule = json.dumps(
        {"name": "Every 2 seconds", "rrule": "FREQ=SECONDLY;INTERVAL=2", "callback_url": f"{api}/health"}
    )
    return "\n".join(
        [
            "Everything is ready. Ctrl-C ends it.",
            "",
            *rows,
            "",
            "A schedule that calls back every 2 seconds:",
            "",
            f"  curl {api}/api/schedules{key} -H 'Content-Type: application/json' -d '{schedule}'",
        ]
    )

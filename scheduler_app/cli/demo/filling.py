"""Fills a deployment that runs: what there is by its API, what was by its database."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import click
import requests

from scheduler_app.cli.demo.contents import DESTINATIONS, MESSAGES, SAMPLES, TAG, Sample
from scheduler_app.cli.demo.history import past_of
from scheduler_app.clock import clock
from scheduler_app.domain.event import State
from scheduler_app.domain.schedule import Schedule
from scheduler_app.domain.tenants import TENANT
from scheduler_app.store import Store
from scheduler_app.store.events.past_events import PastEvent, PastEvents
from scheduler_app.store.schedules.last_runs import Run

TIMEOUT_SECONDS = 30


@dataclass(frozen=True)
class Api:
    """The API of a deployment, and what its schedules of a demonstration call."""

    url: str
    session: requests.Session

    @property
    def receiver(self) -> str:
        """The built-in receiver."""
        return f"{self.url}/echo"

    def send(self, method: str, path: str, body: Any) -> Any:
        """The answer's JSON. Raises ClickException with the API's own words where it refuses."""
        answer = self.session.request(method, f"{self.url}/api/v1{path}", json=body, timeout=TIMEOUT_SECONDS)
        if not answer.ok:
            raise click.ClickException(f"{method} {path} was refused: {answer.text[:300]}")
        return answer.json()


def fill(api: Api, store: Store, *, days: int, seed: int, say: Callable[[str], None]) -> None:
    """Makes everything. Raises ClickException where there are schedules already, or no receiver."""
    found = api.session.get(f"{api.url}/api/v1/schedules", params={"limit": 1}, timeout=TIMEOUT_SECONDS)
    if found.status_code != requests.codes.ok:
        raise click.ClickException(f"the API at {api.url} refuses to list schedules: {found.text[:300]}")
    if found.json()["schedules"]:
        raise click.ClickException(
            "there are schedules already: a demonstration is made in an empty deployment alone"
        )
    if api.session.get(api.receiver, timeout=TIMEOUT_SECONDS).status_code != requests.codes.ok:
        raise click.ClickException(
            f"{api.receiver} does not answer: set CALLBACK_ALLOWED_NETWORKS=127.0.0.0/8, as `scheduler up`"
            " does"
        )
    for name, fields in DESTINATIONS.items():
        given = {key: value for key, value in fields.items() if key != "path"}
        api.send("PUT", f"/destinations/{name}", given | {"url": api.receiver + fields["path"]})
    made = api.send("POST", "/schedules/bulk", {"schedules": [_fields(each, api) for each in SAMPLES]})
    ids = [result["id"] for result in made["results"]]
    say(f"Made {len(DESTINATIONS)} destinations and {len(ids)} schedules.")
    count = _write_past(store, dict(zip(ids, SAMPLES, strict=True)), days, seed)
    say(f"Made up {count} events of the last {days} days.")
    messages = [
        {"event_name": MESSAGES[each % len(MESSAGES)], "callback_url": api.receiver,
         "payload": {"number": each}, "delay_seconds": each * 20}
        for each in range(60)
    ]  # fmt: skip
    api.send("POST", "/messages/bulk", {"messages": messages})
    say(f"Made {len(messages)} messages for the next {len(messages) * 20 // 60} minutes.")


def _fields(sample: Sample, api: Api) -> dict[str, Any]:
    fields: dict[str, Any] = {"name": sample.name, "tags": [TAG, *sample.tags], **sample.when}
    if not {"on_demand", "every_seconds"} & sample.when.keys():
        fields["timezone"] = sample.timezone
    if sample.destination:
        return fields | {"destination": sample.destination}
    return fields | {"callback_url": api.receiver + sample.path, "max_retries": 3}


def _write_past(store: Store, samples: dict[str, Sample], days: int, seed: int) -> int:
    store.synchronize(clock)
    now, count, past_events = clock.now(), 0, PastEvents(store.mongo)
    for schedule_id, sample in samples.items():
        schedule = store.schedules.get(schedule_id, tenant=TENANT)
        if isinstance(schedule, Schedule) and schedule.trigger.fires_by_itself:
            past = list(past_of(schedule, sample, now, days, seed))
            past_events.insert(past)
            if past:
                past_events.note_last(_run(past[-1]))
            count += len(past)
    return count


def _run(past: PastEvent) -> Run:
    event = past.event
    return Run(event.schedule_id, event.run_time, State(past.state), event.id, past.ended_at)

"""The history of a schedule: a scatter over time, a part of which may be chosen, and its table."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from flask import url_for

from scheduler_app.api.auth import PAGES
from scheduler_app.api.json_types import Loaded, View
from scheduler_app.api.pages.charts import Dot, on_log_scale
from scheduler_app.api.pages.words import instant
from scheduler_app.api.services import services
from scheduler_app.api.tenancy import tenant
from scheduler_app.domain.event import FINAL
from scheduler_app.store.events.figures import Outcome
from scheduler_app.store.paging import Window

ROWS = 20
#: Events in the scatter.
DOTS = 300
CHART = (600.0, 110.0)
#: Where the dots begin, right of the scale, and where they end.
LEFT, RIGHT = 40.0, 596.0
#: The scale of the scatter, milliseconds.
LEAST_MS, MOST_MS = 1.0, 100_000.0
LINES = ((1.0, "1 ms"), (10.0, "10 ms"), (100.0, "100 ms"), (1_000.0, "1 s"), (10_000.0, "10 s"))
EVER = timedelta(days=36_500)


def history(schedule_id: str, query: Loaded, now: datetime) -> View:
    """What `history.html` shows of a schedule, within `since` and `until` of the query where they are given;
    a time without an offset is one of UTC."""
    store, since, until = services().store, _in_utc(query.get("since")), _in_utc(query.get("until"))
    outcomes = store.event_figures.of_schedule(
        schedule_id, since or now - EVER, until or now, tenant=tenant(), most=DOTS
    )
    newest, oldest = (outcomes[0].run_time, outcomes[-1].run_time) if outcomes else (now, now)
    begin, end = since or oldest, until or newest
    window = Window(limit=ROWS, after=query.get("cursor"), since=since, until=until)
    found = store.event_lists.page(window, tenant=tenant(), schedule_id=schedule_id, states=FINAL)
    chosen = {
        name: _written(moment) for name, moment in (("from", since), ("to", until)) if moment is not None
    }
    return {
        "history": found,
        "of": query["of"],
        "dots": dots(outcomes, query["of"], begin, end),
        "omitted": len(outcomes) == DOTS,
        "lines": [(round(CHART[1] - _height(value), 1), text) for value, text in LINES],
        "chart": CHART,
        "plot": (LEFT, RIGHT),
        "first": begin,
        "last": end,
        "chosen": chosen,
        "all_events": f"{url_for(f'{PAGES}.events')}?{urlencode({'schedule_id': schedule_id} | chosen)}",
    }


def dots(outcomes: list[Outcome], of: str, begin: datetime, end: datetime) -> list[Dot]:
    """Events over time, from `begin` to `end`, by their lag or their duration, on a logarithmic scale."""
    span, found = (end - begin).total_seconds() or 1.0, []
    for each in outcomes:
        value = each.lag_ms if of == "lag" else each.duration_ms
        if value is None:
            continue
        x = (each.run_time - begin).total_seconds() / span * (RIGHT - LEFT) + LEFT
        title = f"{instant(each.run_time)}: {each.state.value}, {of} {value:.0f} ms"
        link = url_for(f"{PAGES}.event", event_id=each.id)
        found.append(Dot(round(x, 1), round(CHART[1] - _height(value), 1), each.state.value, title, link))
    return found


def _height(milliseconds: float) -> float:
    return 4 + on_log_scale(milliseconds, LEAST_MS, MOST_MS, CHART[1] - 8)


def _in_utc(moment: datetime | None) -> datetime | None:
    return moment.replace(tzinfo=UTC) if moment is not None and moment.tzinfo is None else moment


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")

"""One run in a strip of a schedule's last runs: height and shape tell the outcome, not colour alone."""

from markupsafe import Markup, escape

from scheduler_app.api.pages.formatting import state_words
from scheduler_app.api.pages.times import precise
from scheduler_app.domain.states import State
from scheduler_app.store.events.figures import EventSummary


def run_mark(run: EventSummary, x: float, width: float, done: float, whole: float) -> Markup:
    """As tall as `done` where it is done, as the `whole` picture where it failed. A list has a thousand of
    them: a macro takes five times as long."""
    kind = "rect"
    if run.state is State.COMPLETED and run.tries > 1:
        kind = "path"
        form = f'class="f-warn" d="M{x} {whole}v-{done}l{width / 2}-4 {width / 2} 4v{done}z"'
    elif run.state is State.COMPLETED:
        form = f'class="f-ok" x="{x}" y="{whole - done}" width="{width}" height="{done}" rx="1"'
    elif run.state is State.ERROR:
        form = f'class="f-bad" x="{x}" y="0" width="{width}" height="{whole}" rx="1"'
    elif run.state in (State.RETRYING, State.RUNNING):
        form = f'class="f-warn" x="{x}" y="{whole / 2}" width="{width}" height="{whole / 2}" rx="1"'
    else:
        form = f'class="f-off" x="{x}" y="{whole - 3}" width="{width}" height="2.5"'
    title = escape(f"{precise(run.run_time)}: {state_words(run.state).lower()}")
    # Numbers, and a title that is escaped.
    return Markup(f"<{kind} {form}><title>{title}</title></{kind}>")  # noqa: S704

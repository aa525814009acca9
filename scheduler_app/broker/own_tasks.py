"""Tasks of a user's own on this application: `celery -A scheduler_app worker -I my_tasks -Q tasks`.

They have queues and workers of their own, so that none of them holds a thread that callbacks need.
"""

from celery import Celery

from scheduler_app.broker.queues import DELIVER, OWN_QUEUE, QUEUE
from scheduler_app.config import InvalidSetting
from scheduler_app.domain.queues import COMMANDS, is_queue
from scheduler_app.telemetry import get_logger

log = get_logger(__name__)


def delivers_callbacks(app: Celery) -> bool:
    """Whether the worker that starts in this process is one for callbacks; the other kind runs tasks of a
    user's own. Raises InvalidSetting where its queues (-Q) do not go together."""
    queues = sorted(app.amqp.queues.consume_from)
    own = sorted(name for name in app.tasks if name != DELIVER and not name.startswith("celery."))
    if queues == [QUEUE]:
        if own:
            log.warning(
                "worker.own_tasks",
                message=f"Your tasks do not come to this worker: start another with -Q {OWN_QUEUE}",
                tasks=own,
            )
        return True
    if COMMANDS in queues and len(queues) > 1:
        raise InvalidSetting(
            f"-Q {','.join(queues)}: commands need workers of their own; start one worker with -Q {COMMANDS},"
            " and one for the others"
        )
    if own and not {QUEUE, COMMANDS}.isdisjoint(queues):
        raise InvalidSetting(
            f"-Q {','.join(queues)}: callbacks need workers of their own, or a slow task would hold them up;"
            f" start one worker with -Q {QUEUE}, and one for the others"
        )
    if own:
        log.info("worker.own_tasks", message="This worker runs tasks of your own", queues=queues, tasks=own)
        return False
    if impossible := [name for name in queues if not is_queue(name)]:
        raise InvalidSetting(
            f"-Q {','.join(queues)}: no schedule can name {', '.join(impossible)}; callbacks come by {QUEUE},"
            " which is the default, and for tasks of your own name their module by -I"
        )
    log.info("worker.queues", message="This worker serves queues that schedules name", queues=queues)
    return True

"""Celery's settings, and why each differs from its default."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from kombu.entity import Exchange, Queue
from redis.backoff import NoBackoff
from redis.retry import Retry

from scheduler_app.config import VISIBILITY_TIMEOUT_SECONDS, Settings, is_redis
from scheduler_app.domain.lane import Lane

QUEUE = "callbacks"
#: Where tasks of a user's own on this application go, unless they name another queue.
OWN_QUEUE = "tasks"
#: The name of the task that a batch's message starts.
DELIVER = "scheduler_app.tasks.deliver"


def key_prefix(database: str) -> str:
    """What every key and channel of a deployment begins with in Redis, which others may use as well: each
    has a database of its own. Quoted, because a channel's name is read as a pattern."""
    return f"{quote(database, safe='')}:"


#: Celery's numbers for the lanes: with Redis the least is the first, and each is a list of its own.
PRIORITIES = {Lane.URGENT: 0, Lane.FRESH: 3, Lane.LATE: 6}


def route_task(name: str, args: Any, kwargs: Any, options: Mapping[str, Any], **_: Any) -> Any:
    """The queue of a task, in Celery's form; None for what Celery itself would choose.

    Raises ValueError for a task of a user's own that names the queue of callbacks.
    """
    if name == DELIVER:
        return {"queue": QUEUE}
    if getattr(options.get("queue"), "name", None) == QUEUE:
        raise ValueError(
            f"the queue {QUEUE} is for callbacks alone, and {name} would wait behind them: leave queue= out,"
            f" and start a worker with -Q {OWN_QUEUE}"
        )
    return None


def celery_settings(settings: Settings) -> dict[str, Any]:
    return {
        "broker_url": settings.broker,
        "broker_connection_retry_on_startup": True,
        # For ever: a worker that gives up after 100 tries is one that a long outage of Redis has ended.
        "broker_connection_max_retries": None,
        # A Redis that refuses a command (it is full, or still loading) is waited for like one that is away.
        "broker_channel_error_retry": True,
        "broker_transport_options": _transport_options(settings),
        # The nameless exchange: others keep their bindings in Redis, where a FLUSHALL takes them.
        "task_queues": [Queue(QUEUE, Exchange(""), routing_key=QUEUE)],
        # Tasks of a user's own have queues of their own: see `own_tasks`.
        "task_routes": (route_task,),
        "task_default_queue": OWN_QUEUE,
        "task_default_exchange": "",
        "task_default_routing_key": OWN_QUEUE,
        "task_create_missing_queues": True,
        "task_serializer": "json",
        "accept_content": ["json"],
        "task_ignore_result": True,
        # A message is acknowledged when its outcomes are written. What a crash leaves comes again, harmless.
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "task_acks_on_failure_or_timeout": True,
        # The next tick of beat is the retry; a publish that blocks would hold up everything else that is due.
        "task_publish_retry": False,
        "task_send_sent_event": True,
        # What a worker has fetched no other worker can take, and nothing that comes later can overtake. (What
        # has an eta does not count.)
        "worker_prefetch_multiplier": 1,
        # Nothing that is put into the queue ends the worker.
        "worker_consumer": "scheduler_app.broker.worker_steps:TolerantConsumer",
        # The only pool that shares one claim, one courier and one recorder. It is also checked at the start.
        "worker_pool": "threads",
        # Bounds what a worker holds; the horizon keeps it far from that.
        "worker_eta_task_limit": 5000,
        "worker_disable_rate_limits": True,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_concurrency": settings.worker_concurrency,
        "enable_utc": True,
        "timezone": "UTC",
        "beat_scheduler": "beat.scheduler:MongoScheduler",
        "beat_max_loop_interval": settings.prequeuer_ticker_interval_seconds,
    }


def _sentinel_options(settings: Settings) -> dict[str, Any]:
    if not settings.broker.startswith("sentinel:"):
        return {}
    return {
        "master_name": settings.broker_sentinel_master,
        # They are asked one after the other at each connection, and one that is gone must not be waited for:
        # by default redis-py asks it four times, over 7 s.
        "sentinel_kwargs": {
            "socket_timeout": 2,
            "socket_connect_timeout": 2,
            "retry": Retry(NoBackoff(), 0),
        },
    }


def _transport_options(settings: Settings) -> dict[str, Any]:
    if not is_redis(settings.broker):
        return {}
    return _sentinel_options(settings) | {
        # Two deployments on one Redis would take each other's messages, and obey each other's commands.
        "global_keyprefix": key_prefix(settings.mongo_database),
        # Longer than the horizon and the longest callback together, so that what is held is not doubled.
        "visibility_timeout": VISIBILITY_TIMEOUT_SECONDS,
        # By default what a dead worker held is looked for about every 100 s, and a worker killed in the
        # middle of that stops all others from looking for 300 s.
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 30,
        "health_check_interval": 10,
        "socket_timeout": 30,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "priority_steps": sorted(PRIORITIES.values()),
        # Publishing to a Redis that is away: one more try at once, and not 6 s of them, which an API call
        # would wait for. (The worker's own connection is tried for ever, see above.)
        "max_retries": 1,
        "interval_start": 0,
        "interval_step": 0,
        "interval_max": 0,
    }

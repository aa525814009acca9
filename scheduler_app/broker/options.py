"""Celery's settings, and why each differs from its default."""

from typing import Any

from scheduler_app.broker.backends import backend_of
from scheduler_app.broker.queues import OWN_QUEUE, QUEUE, delivery_queue, route_task
from scheduler_app.config import Settings


def celery_settings(settings: Settings) -> dict[str, Any]:
    """Returns the configuration of a Celery application. Raises InvalidSetting for an unusable BROKER_URL."""
    return {
        "broker_url": settings.broker,
        "broker_use_ssl": settings.broker_tls.options(settings.broker),
        "broker_connection_retry_on_startup": True,
        # For ever: a worker that gives up after 100 tries is one that a long outage of Redis has ended.
        "broker_connection_max_retries": None,
        # A Redis that refuses a command (it is full, or still loading) is waited for like one that is away.
        "broker_channel_error_retry": True,
        # Where a broker has heartbeats (Redis has not): a line that is cut is noticed in 20 s, not 240.
        "broker_heartbeat": 10,
        "broker_transport_options": backend_of(settings.broker).transport_options(settings),
        "task_queues": [delivery_queue(QUEUE)],
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
        "worker_consumer": "scheduler_app.broker.consumer:TolerantConsumer",
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
        "beat_scheduler": "scheduler_app.beat.scheduler:MongoScheduler",
        "beat_max_loop_interval": settings.prequeuer_ticker_interval_seconds,
    }

"""`python plan.py PEER < instants`: schedules a call for each line "key seconds" (Unix time), and ends."""

import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

Plan = Sequence[tuple[str, datetime]]


def celery_eta(plan: Plan) -> None:
    from celery_app import app, call

    with app.producer_pool.acquire(block=True) as producer:
        for key, at in plan:
            call.apply_async((key, at.isoformat()), eta=at, producer=producer)


def redbeat(plan: Plan) -> None:
    """Recurring by a rule, of which there is one occurrence."""
    from celery_app import app
    from redbeat import RedBeatSchedulerEntry
    from redbeat.schedules import rrule

    for key, at in plan:
        once = rrule("SECONDLY", dtstart=at, count=1, app=app)
        RedBeatSchedulerEntry(key, "call", once, args=[key, at.isoformat()], app=app).save()


def django_celery_beat(plan: Plan) -> None:
    import celery_app  # noqa: F401  (it sets up Django)
    from django_celery_beat.models import ClockedSchedule, PeriodicTask, PeriodicTasks

    instants = {at: ClockedSchedule(clocked_time=at) for _, at in plan}
    ClockedSchedule.objects.bulk_create(instants.values())
    PeriodicTask.objects.bulk_create(
        PeriodicTask(
            name=key,
            task="call",
            clocked=instants[at],
            one_off=True,
            args=f'["{key}", "{at.isoformat()}"]',
        )
        for key, at in plan
    )
    PeriodicTasks.update_changed()


def django_database(_: Plan) -> None:
    import celery_app  # noqa: F401
    from django.core.management import call_command

    call_command("migrate", verbosity=0)


def apscheduler(plan: Plan) -> None:
    """The running scheduler reads them from a list in Redis, as APScheduler 3 has no door of its own."""
    from redis import Redis

    with Redis.from_url(os.environ["PEER_REDIS"], socket_timeout=None) as client, client.pipeline() as pipe:
        for key, at in plan:
            pipe.rpush("plan", f"{key} {at.isoformat()}")
        pipe.execute()
        while client.llen("plan") or client.exists("taking"):
            client.blpop("taken", timeout=1)


def main(peer: str) -> None:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    rows = [line.split() for line in sys.stdin]
    plan = [(key, epoch + timedelta(seconds=float(seconds))) for key, seconds in rows]
    PLANS[peer](plan)


PLANS = {
    each.__name__: each for each in (celery_eta, redbeat, django_celery_beat, django_database, apscheduler)
}

if __name__ == "__main__":
    main(sys.argv[1])

"""A Celery application whose task makes a callback, as an application of a user's own would.

`PEER_REDIS` is its broker, `PEER_URL` what it calls. It is for Celery's own eta, for RedBeat, and for
django-celery-beat, whose database is a file of SQLite in `PEER_FOLDER`.
"""

import os
import threading

import requests
from celery import Celery

app = Celery("peer", broker=os.environ["PEER_REDIS"])
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    worker_prefetch_multiplier=0,  # what has an eta waits in the worker: a limit would hold up what follows
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 4 * 3600},
    redbeat_redis_url=os.environ["PEER_REDIS"],
    beat_max_loop_interval=1,
    redbeat_lock_timeout=60,  # by default five intervals: beat ends where a busy machine makes it late
    enable_utc=True,
)
_of_thread = threading.local()


@app.task(name="call")
def call(key: str, run_time: str) -> None:
    session = getattr(_of_thread, "session", None)
    if session is None:
        session = _of_thread.session = requests.Session()
        session.trust_env = False
    headers = {"webhook-id": key, "X-Scheduler-Run-Time": run_time}
    session.post(os.environ["PEER_URL"], headers=headers, timeout=30).raise_for_status()


def use_django() -> None:
    """Lets django-celery-beat find its database."""
    import django
    from django.conf import settings

    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": os.environ["PEER_FOLDER"] + "/django.sqlite3"}
    settings.configure(
        DATABASES={"default": database | {"OPTIONS": {"timeout": 30}}},
        INSTALLED_APPS=["django_celery_beat"],
        DEFAULT_AUTO_FIELD="django.db.models.AutoField",
        USE_TZ=True,
    )
    django.setup()


if os.environ.get("PEER_DJANGO"):
    use_django()

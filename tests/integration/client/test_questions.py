"""Questions about the whole in the clients."""

import asyncio
from datetime import UTC, datetime

from scheduler_app.client import AsyncScheduler, Scheduler
from tests.integration.client.conftest import KEY

HOURLY = "DTSTART:20440305T000000Z\nRRULE:FREQ=HOURLY;COUNT=3"
AFTER, UNTIL = datetime(2044, 3, 5, tzinfo=UTC), "2044-03-06T00:00:00Z"


def test_the_clients_ask_for_words_tags_and_runs(scheduler: Scheduler, url: str, tag: str) -> None:
    made = scheduler.schedule("http://questions.example/", rrule=HOURLY, tags=[tag])

    async def ask() -> list[object]:
        async with AsyncScheduler(url, KEY) as client:
            found = await client.search(tag)
            return [each["id"] for each in found["schedules"]]

    assert asyncio.run(ask()) == [made.id]
    assert scheduler.search(tag, limit=1)["tags"] == [{"tag": tag, "schedules": 1}]
    assert scheduler.tags(tag[:-1], limit=5)["tags"] == [{"tag": tag, "schedules": 1}]
    assert scheduler.tags(tag, after=tag)["tags"] == []
    (day,) = scheduler.tag_summary(tag, timezone="UTC", after=AFTER, until=UNTIL)["days"]
    assert day["to_come"] == 3
    asked = scheduler.run_calendar(
        tag=tag, schedule_id=made.id, bucket_seconds=86_400, after=AFTER, until=UNTIL
    )
    assert [part["to_come"] for part in asked["buckets"]] == [3]
    assert [each["schedule_id"] for each in asked["rare"]] == [made.id]


def test_the_clients_list_the_edits_of_all_schedules(scheduler: Scheduler, tag: str) -> None:
    made = scheduler.schedule("http://questions.example/", rrule=HOURLY, tags=[tag])
    scheduler.update(made.id, name="renamed")
    (edit,) = [each for each in scheduler.all_edits() if each["schedule_id"] == made.id]
    assert (edit["what"], edit["after"]) == ("edited", {"name": "renamed"})

"""Messages that wait for a time that is far away cost those who work beside them nothing."""

from collections.abc import Callable
from datetime import timedelta

from scheduler_app.assembly import assemble
from scheduler_app.beat.duties import duties
from scheduler_app.beat.scheduler import Tick
from scheduler_app.broker.app import make_app
from scheduler_app.clock import clock
from scheduler_app.config import Settings
from scheduler_app.domain.ids import TENANT
from scheduler_app.domain.message import Timing
from scheduler_app.domain.message_draft import MessageDraft
from scheduler_app.domain.schedule_draft import ScheduleDraft
from scheduler_app.store import Store
from scheduler_app.store.paging import PageRequest
from tests.builders import message

FAR = timedelta(days=3_650)
#: mongod keeps what a moment's operations have examined in a collection of so many bytes.
PROFILE_BYTES = 4 * 2**20


def fill(store: Store, numbers: range) -> None:
    now = clock.now()
    far = now + FAR
    store.messages.insert_many([message(far, f"w{number}", event_name="waiting") for number in numbers], now)


def examined(store: Store, work: Callable[[], object]) -> tuple[int, int]:
    """How many index keys and documents mongod has examined for `work`."""
    database = store.mongo.db
    database.drop_collection("system.profile")
    database.create_collection("system.profile", capped=True, size=PROFILE_BYTES)
    database.command("profile", 2)
    try:
        work()
    finally:
        database.command("profile", 0)
    rows = list(database["system.profile"].find({"ns": {"$regex": r"(?<!system\.profile)$"}}))
    assert rows
    keys, documents = (
        sum(int(row.get(name, 0)) for row in rows) for name in ("keysExamined", "docsExamined")
    )
    return keys, documents


def test_more_messages_that_wait_cost_a_tick_a_creation_a_list_and_a_cancellation_no_more(
    store: Store, settings: Settings
) -> None:
    parts = assemble(settings, make_app(settings))
    each_tick = [duty for duty in duties(parts) if not duty.period]
    tick = Tick(each_tick, now=clock.now, stopping=lambda: False, unavailable=())
    draft = MessageDraft(draft=ScheduleDraft(url="http://127.0.0.1:9/"), timing=Timing(clock.now() + FAR))
    made: list[str] = []

    def create() -> None:
        made.append(parts.messages.schedule(TENANT, draft, clock.now()).record.event.id)

    def cancel() -> None:
        parts.messages.cancel(made.pop(), clock.now())

    def a_page() -> None:
        assert len(store.messages.page(TENANT, PageRequest(limit=50), event_name="waiting").rows) == 50

    steps: tuple[Callable[[], object], ...] = (tick.run, create, a_page, cancel)
    fill(store, range(100))
    few = [examined(store, step) for step in steps]
    fill(store, range(100, 5_000))
    many = [examined(store, step) for step in steps]
    assert many == few

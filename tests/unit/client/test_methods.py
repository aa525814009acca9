"""Each operation is described once: both clients get its method, with the types of their own."""

import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator
from types import NoneType
from typing import assert_type, get_origin, get_type_hints
from unittest.mock import AsyncMock, create_autospec

import pytest

from scheduler_app.client import AsyncScheduler, Destination, EditResult, Event, Schedule, Scheduler
from scheduler_app.client.calendars import AsyncCalendars, Calendars
from scheduler_app.client.destinations import AsyncDestinations, Destinations
from scheduler_app.client.messages import AsyncMessages, Messages

TWINS = [
    (AsyncScheduler, Scheduler),
    (AsyncMessages, Messages),
    (AsyncDestinations, Destinations),
    (AsyncCalendars, Calendars),
]


def methods(kind: type) -> dict[str, Callable[..., object]]:
    found = inspect.getmembers(kind, inspect.isfunction)
    return {name.replace("__a", "__"): each for name, each in found if not re.match(r"_[a-z]", name)}


@pytest.mark.parametrize("twins", TWINS)
def test_both_clients_have_the_same_methods_with_the_same_arguments_and_results(
    twins: tuple[type, type],
) -> None:
    own, theirs = map(methods, twins)
    assert own.keys() == theirs.keys()
    for name, method in theirs.items():
        if name == "__init__" and Scheduler not in twins:
            continue  # each is made by its own scheduler
        twin = own[name]
        assert inspect.signature(twin).parameters == inspect.signature(method).parameters, name
        result, twin_result = (get_type_hints(each).get("return") for each in (method, twin))
        if get_origin(result) is Iterator:
            assert get_origin(twin_result) is AsyncIterator, name
            assert twin_result.__args__ == result.__args__, name  # type: ignore[union-attr]
        else:
            assert twin_result == result, name
            assert inspect.iscoroutinefunction(twin) or name == "__init__", name
        shown = inspect.signature(method).return_annotation
        assert shown == (None if result is NoneType else result), name
        assert method.__doc__ == twin.__doc__, name
        assert method.__doc__ or name.startswith("__"), name


def test_programs_can_replace_a_client_in_their_tests() -> None:
    scheduler, twin = (create_autospec(each, instance=True) for each in (Scheduler, AsyncScheduler))
    scheduler.get("s")
    with pytest.raises(TypeError, match="missing a required argument"):
        scheduler.get()
    assert isinstance(twin.get, AsyncMock)


def results_of(scheduler: Scheduler) -> None:
    """Read by the type checker alone, like the next one."""
    assert_type(scheduler.get("s"), Schedule)
    assert_type(scheduler.find("s"), Schedule | None)
    assert_type(scheduler.cancel("s"), None)
    assert_type(scheduler.history("s"), Iterator[Event])
    assert_type(scheduler.pause_many(all=True), EditResult)
    assert_type(scheduler.destinations.put("d", url="https://example.com"), Destination)
    scheduler.schedule("https://example.com", rrule="FREQ=DAILY", tags=["a"])
    scheduler.schedule("https://example.com", rule="FREQ=DAILY")  # type: ignore[call-arg]
    scheduler.update("s", max_retries="3")  # type: ignore[arg-type]
    scheduler.messages.get()  # type: ignore[call-arg]


async def awaited_results_of(scheduler: AsyncScheduler) -> None:
    assert_type(await scheduler.get("s"), Schedule)
    assert_type(await scheduler.find("s"), Schedule | None)
    assert_type(scheduler.history("s"), AsyncIterator[Event])
    assert_type(await scheduler.pause_many(all=True), EditResult)
    assert_type(await scheduler.destinations.put("d", url="https://example.com"), Destination)
    await scheduler.schedule("https://example.com", rule="FREQ=DAILY")  # type: ignore[call-arg]
    scheduler.get("s")  # type: ignore[unused-coroutine]

"""How an operation, described once, becomes a method of both clients.

The description is a function that returns a request as a value. `operation` and `listing` make a method of
it: in a `SyncClient` one that sends the request and returns its result, in an `AsyncClient` one that is
awaited. Type checkers and editors see the function's arguments, and the result of the client at hand.
"""

import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from inspect import getattr_static, signature
from types import NoneType
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast, get_args, overload

from scheduler_app.client.calls import Call, Listing, Steps

P = ParamSpec("P")
T = TypeVar("T")
Function = Callable[..., Any]


class Sender(Protocol):
    """Sends calls; `lines` yields the lines of an answer as they come."""

    def send(self, call: Call[T], /) -> T: ...
    def lines(self, call: Call[Any], /) -> Iterator[str]: ...


class AsyncSender(Protocol):
    """The same for asyncio."""

    async def send(self, call: Call[T], /) -> T: ...
    def lines(self, call: Call[Any], /) -> AsyncIterator[str]: ...


class SyncClient:
    """Something with operations whose methods wait for the results."""

    def __init__(self, http: Sender) -> None:
        self._http = http

    def __init_subclass__(cls) -> None:
        for name, each in _operations(cls):
            setattr(cls, name, each.sync_method())

    def _result(self, request: Call[T] | Steps[T]) -> T:
        if isinstance(request, Call):
            return self._http.send(request)
        try:
            call = next(request)
            while True:
                call = request.send(self._http.send(call))
        except StopIteration as end:
            return cast(T, end.value)

    def _rows(self, request: Listing[T] | Call[T]) -> Iterator[T]:
        if isinstance(request, Call):
            yield from map(request.read, map(json.loads, self._http.lines(request)))
            return
        cursor: str | None = None
        while True:
            rows, cursor = self._http.send(request.page(cursor))
            yield from rows
            if not cursor:
                return


class AsyncClient:
    """Something with operations whose methods are awaited."""

    def __init__(self, http: AsyncSender) -> None:
        self._http = http

    def __init_subclass__(cls) -> None:
        for name, each in _operations(cls):
            setattr(cls, name, each.async_method())

    async def _result(self, request: Call[T] | Steps[T]) -> T:
        if isinstance(request, Call):
            return await self._http.send(request)
        try:
            call = next(request)
            while True:
                call = request.send(await self._http.send(call))
        except StopIteration as end:
            return cast(T, end.value)

    async def _rows(self, request: Listing[T] | Call[T]) -> AsyncIterator[T]:
        if isinstance(request, Call):
            async for line in self._http.lines(request):
                yield request.read(json.loads(line))
            return
        cursor: str | None = None
        while True:
            rows, cursor = await self._http.send(request.page(cursor))
            for row in rows:
                yield row
            if not cursor:
                return


class operation(Generic[P, T]):
    """Makes a method that sends the function's call, or its steps one after the other, and returns the
    result."""

    def __init__(self, request: Callable[Concatenate[Any, P], Call[T] | Steps[T]]) -> None:
        self._request = request

    def sync_method(self) -> Function:
        def method(client: Any, /, *args: Any, **kwargs: Any) -> Any:
            return client._result(self._request(client, *args, **kwargs))

        return _described(method, self._request)

    def async_method(self) -> Function:
        async def method(client: Any, /, *args: Any, **kwargs: Any) -> Any:
            return await client._result(self._request(client, *args, **kwargs))

        return _described(method, self._request)

    # For type checkers: clients have functions of their own.
    @overload
    def __get__(self, client: SyncClient, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Function: ...
    def __get__(self, client: object, owner: type) -> Any:
        return self._request


class listing(Generic[P, T]):
    """Makes a method that yields the rows of what the function returns: a listing, whose pages are requested
    as needed, or one call whose answer has a row in each line."""

    def __init__(self, request: Callable[Concatenate[Any, P], Listing[T] | Call[T]]) -> None:
        self._request = request

    def sync_method(self, iterator: Any = Iterator) -> Function:
        def method(client: Any, /, *args: Any, **kwargs: Any) -> Any:
            return client._rows(self._request(client, *args, **kwargs))

        return _described(method, self._request, iterator)

    def async_method(self) -> Function:
        return self.sync_method(AsyncIterator)

    # For type checkers, as above.
    @overload
    def __get__(self, client: SyncClient, owner: type) -> Callable[P, Iterator[T]]: ...
    @overload
    def __get__(self, client: AsyncClient, owner: type) -> Callable[P, AsyncIterator[T]]: ...
    @overload
    def __get__(self, client: None, owner: type) -> Function: ...
    def __get__(self, client: object, owner: type) -> Any:
        return self._request


def _operations(client: type) -> Iterator[tuple[str, operation[Any, Any] | listing[Any, Any]]]:
    """Those that the bases of a client describe, with their names."""
    described = ((name, getattr_static(base, name)) for base in client.__bases__ for name in dir(base))
    return ((name, each) for name, each in described if isinstance(each, operation | listing))


def _described(method: Function, request: Function, iterator: Any = None) -> Function:
    """Gives `method` the name, the text and the arguments of `request`, and as its result what the request is
    for: `help` and `inspect` show them."""
    update_wrapper(method, request)
    result = get_args(request.__annotations__["return"])[-1]
    returns = iterator[result] if iterator else None if result is NoneType else result
    method.__annotations__ = {**request.__annotations__, "return": returns}
    method.__signature__ = signature(request).replace(return_annotation=returns)  # type: ignore[attr-defined]
    return method

"""Clients of one mongod, lent to one store after another: to make one and to connect it takes longer than
many a test's commands. And what listens to the commands of stores that are made later."""

from abc import abstractmethod
from typing import Any, TypeVar

from pymongo import MongoClient, monitoring

Document = dict[str, Any]


class StartedCommands(monitoring.CommandListener):
    """Hears each command when it is sent, and nothing of what becomes of it."""

    @abstractmethod
    def started(self, event: monitoring.CommandStartedEvent) -> None: ...

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None: ...

    def failed(self, event: monitoring.CommandFailedEvent) -> None: ...


Listener = TypeVar("Listener", bound=StartedCommands)


class LentClients:
    """Makes the clients of stores. One of `uri`, the tests' own mongod, is kept when its store closes it."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        #: By their identity: clients of the same server are equal.
        self._idle: dict[int, _Lent] = {}
        #: Only clients of this one are lent again.
        self._generation = 0

    def make(self, uri: str, **options: Any) -> MongoClient[Document]:
        if uri != self._uri:
            return MongoClient(uri, **options)
        for key, client in self._idle.items():
            if client.options_given == options:
                return self._idle.pop(key)
        return _Lent(self, self._generation, uri, options)

    def takes_back(self, client: "_Lent") -> bool:
        """Whether it is kept for the next store."""
        if client.generation != self._generation:
            return False
        self._idle[id(client)] = client
        return True

    def renew(self) -> None:
        """Lends no client again that was made until now: pymongo's listeners are for those made later."""
        self._generation += 1
        for client in self._idle.values():
            client.close()
        self._idle.clear()

    def heard_by(self, listener: Listener) -> Listener:
        """Lets it hear the commands of all stores that are made from now on."""
        monitoring.register(listener)
        self.renew()
        return listener


class _Lent(MongoClient[Document]):
    def __init__(self, lender: LentClients, generation: int, uri: str, options: dict[str, Any]) -> None:
        super().__init__(uri, **options)
        self.options_given = options
        self.generation = generation
        self._lender = lender

    def close(self) -> None:
        if not self._lender.takes_back(self):
            super().close()

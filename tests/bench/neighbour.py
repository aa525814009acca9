"""What is done to the victims of `neighbours`."""

from datetime import datetime

from tests.bench.ground import Ground
from tests.bench.receiver import Receiver
from tests.bench.report import Row


class Neighbour:
    """What is done to the victims, and what is told of it. The methods are called in this order."""

    #: How many ports its receiver listens on, and how many API processes it wants.
    origins = 1
    apis = 0
    #: How long `disturb` takes, at most: no victim is due in it.
    gap_seconds = 0

    def events(self, seconds: float) -> int:
        """How many events `prepare` plants."""
        return 0

    def prepare(self, made: Ground, receiver: Receiver, begin: datetime, seconds: float) -> None:
        """Plants what falls due from `begin` on for so many seconds."""

    def watch(self) -> None:
        """Begins what goes on in the undisturbed phase too."""

    def disturb(self) -> None:
        """Called at `begin`; what takes long goes on in threads."""

    def stop(self) -> None:
        """Ends what it has begun, whatever happened; also without `watch` and `disturb`."""

    def figures(self, begin: datetime) -> Row:
        """What it saw itself."""
        return {}

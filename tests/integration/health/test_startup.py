"""What a process makes of a MongoDB that refuses or delays its first question."""

import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from scheduler_app.config import InvalidSetting, Settings
from scheduler_app.health.startup import check_replica_set
from scheduler_app.store import Store
from tests.fail_points import MongodWithFailPoints

UNAUTHORIZED, TIME_LIMIT, NO_SUCH_COMMAND = 13, 50, 59


@pytest.fixture(scope="module")
def mongod() -> Iterator[MongodWithFailPoints]:
    with (
        tempfile.TemporaryDirectory(prefix="refusing-") as folder,
        MongodWithFailPoints(Path(folder)) as made,
    ):
        yield made


@pytest.fixture
def asking(mongod: MongodWithFailPoints, lent_clients: object) -> Iterator[Store]:
    """A store that is connected already, so that its next question is the one that fails: nothing but the
    test asks, as the driver would by itself, with the same command, to measure how long answers take."""
    silent = "serverMonitoringMode=poll&heartbeatFrequencyMS=3600000"
    with closing(Store(Settings(mongo_uri=f"{mongod.uri}&{silent}"))) as made:
        made.mongo.client.admin.command("ping")
        yield made


@pytest.mark.parametrize("code", [UNAUTHORIZED, TIME_LIMIT])
def test_a_mongodb_that_is_slow_or_lets_nobody_in_yet_is_waited_for(
    mongod: MongodWithFailPoints, asking: Store, code: int
) -> None:
    mongod.refuse("hello", code)
    check_replica_set(asking)


def test_what_is_no_mongodb_of_ours_is_one_sentence_that_names_the_setting(
    mongod: MongodWithFailPoints, asking: Store
) -> None:
    mongod.refuse("hello", NO_SUCH_COMMAND)
    with pytest.raises(InvalidSetting, match=r"^MONGO_URI leads to a server that refuses"):
        check_replica_set(asking)

"""The tables of docs/developing.md name each source file that a request and an occurrence enter, in order;
and there are not too many of them."""

import pytest

from docs.reference.ways import PAGE, faults
from scheduler_app.embedded import Mongod, Redis
from tests.traced.ways import Trace, traced

#: Who adds a file to a way looks for another one on it that can be folded into its neighbour.
MOST_FILES = {"POST": (78, 75), "occurrence": (80,)}


@pytest.fixture(scope="module", params=MOST_FILES)
def gone(
    request: pytest.FixtureRequest, mongod_server: Mongod, redis_server: Redis
) -> tuple[str, list[Trace]]:
    way: str = request.param
    return way, traced(way, mongod_server.uri, redis_server.url)


def test_the_page_names_each_file_of_a_way_in_order(gone: tuple[str, list[Trace]]) -> None:
    way, (first, *_) = gone
    found = faults(PAGE.read_text(), way, first)
    assert not found, "\n".join(["`make docs` writes the table anew, people write the sentences:", *found])


def test_a_way_enters_not_too_many_files(gone: tuple[str, list[Trace]]) -> None:
    way, traces = gone
    counts = [len(trace.files) for trace in traces]
    assert all(count <= most for count, most in zip(counts, MOST_FILES[way], strict=True)), counts

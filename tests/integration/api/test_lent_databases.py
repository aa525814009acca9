"""Databases go from test to test: to make one with all its indexes takes longer than most tests."""

from scheduler_app.clock import clock
from scheduler_app.store import Store
from scheduler_app.usecases.duties.expansion import Expansion
from tests.integration.api.test_isolation import World, app, client, world
from tests.prepared_databases import PreparedDatabases

__all__ = ["app", "client", "world"]  # fixtures


def test_one_in_which_everything_was_made_is_lent_again(
    world: World, store: Store, database_name: str, prepared_databases: PreparedDatabases
) -> None:
    """Else each test would make one: where a new index has a list, `_LISTS` has to name its field."""
    Expansion(store, timeframe_seconds=60).expand_page(clock.now())
    assert prepared_databases.changed(database_name) == []

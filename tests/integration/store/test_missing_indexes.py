"""A query that names an index which is not there yet is asked again, and is not taken for a broken one."""

import pytest

from scheduler_app.domain.ids import TENANT
from scheduler_app.store import STORE_FAULTS, Store
from scheduler_app.store.faults import IndexMissing
from scheduler_app.store.paging import PageRequest


def test_a_list_before_the_indexes_are_built_is_a_fault_that_passes(store: Store) -> None:
    store.schedules.page(TENANT, PageRequest(limit=10))
    store.mongo.collection("schedules").drop_index("list_v1")
    assert issubclass(IndexMissing, STORE_FAULTS)
    with pytest.raises(IndexMissing, match="an index is missing"):
        store.schedules.page(TENANT, PageRequest(limit=10))

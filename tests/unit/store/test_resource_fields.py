"""What is kept of the delivery fields that documents have in common."""

from typing import Any

import pytest

from scheduler_app.domain.retry import SUCCESS_CODES, Codes, RetryPolicy
from scheduler_app.domain.stored_fields import Corrupt
from scheduler_app.store import resource_fields
from scheduler_app.store.resource_fields import MOST_READ, delivery_document, read_delivery


def document(**changes: Any) -> dict[str, Any]:
    made = dict(delivery_document(RetryPolicy(max_retries=1), 10.0, SUCCESS_CODES))
    return made | {"retry": made["retry"] | changes}


def test_documents_with_the_same_fields_share_what_was_read() -> None:
    first, second = read_delivery(document()), read_delivery(document())
    assert first is second
    assert first.retry == RetryPolicy(max_retries=1)


@pytest.mark.parametrize("wrong", [True, "1"])
def test_a_value_of_another_type_is_not_taken_for_one_that_was_read(wrong: object) -> None:
    read_delivery(document())
    with pytest.raises(Corrupt):
        read_delivery(document(max_retries=wrong))


def test_what_is_kept_has_a_bound() -> None:
    for seconds in range(1, 2 * MOST_READ):
        read_delivery(document(backoff_max_seconds=float(seconds)))
        assert len(resource_fields._read) <= MOST_READ
    many = list(map(str, range(100, 600)))
    before = len(resource_fields._read)
    assert read_delivery(document() | {"success": many}).success == Codes(tuple(many))
    assert len(resource_fields._read) == before

import pytest
from pymongo.errors import AutoReconnect, BulkWriteError, ExecutionTimeout, OperationFailure, WTimeoutError

from scheduler_app.store.faults import REJECTED, STORE_FAULTS, Unavailable, classified, only_duplicates


def failure(code: int, *labels: str) -> OperationFailure:
    return OperationFailure("no", code, {"errorLabels": list(labels)})


@pytest.mark.parametrize("code", [262, 14031, 11601, 112, 91, 134])
def test_what_mongodb_cannot_do_now_is_tried_again(code: int) -> None:
    assert isinstance(classified(failure(code)), STORE_FAULTS)


def test_a_label_says_that_a_retry_helps() -> None:
    assert isinstance(classified(failure(999, "RetryableWriteError")), Unavailable)


@pytest.mark.parametrize("error", [ExecutionTimeout("slow", 50), WTimeoutError("slow", 64)])
def test_what_took_too_long_is_tried_again(error: OperationFailure) -> None:
    assert isinstance(classified(error), Unavailable)


@pytest.mark.parametrize("code", [13, 18])
def test_a_process_that_is_not_let_in_says_so_and_tries_again(code: int) -> None:
    told = classified(failure(code))
    assert isinstance(told, STORE_FAULTS)
    assert "MONGO_URI" in str(told)


@pytest.mark.parametrize("code", [2, 14, 121, 16554, 17124, 10334])
def test_what_mongodb_never_does_is_rejected(code: int) -> None:
    error = failure(code)
    assert classified(error) is error


def test_nothing_is_both_rejected_and_tried_again() -> None:
    assert not any(issubclass(fault, REJECTED) for fault in (*STORE_FAULTS, AutoReconnect))


@pytest.mark.parametrize(
    ("codes", "concerns", "transient"),
    [
        ([11000], [], False),
        ([11000, 121], [], False),
        ([11000, 14031], [], True),
        ([], [{"code": 100}], True),
    ],
)
def test_a_bulk_write_is_judged_by_all_its_parts(
    codes: list[int], concerns: list[dict[str, int]], transient: bool
) -> None:
    errors = [{"index": number, "code": code, "errmsg": "no"} for number, code in enumerate(codes)]
    error = BulkWriteError({"writeErrors": errors, "writeConcernErrors": concerns})
    assert isinstance(classified(error), Unavailable) is transient


def test_duplicates_alone_are_no_fault() -> None:
    assert only_duplicates(BulkWriteError({"writeErrors": [{"index": 0, "code": 11000}]}))
    assert not only_duplicates(BulkWriteError({"writeErrors": [{"index": 0, "code": 121}]}))

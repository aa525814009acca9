import bson
from bson.codec_options import CodecOptions

from scheduler_app.store.mongo import MAX_CACHED_BYTES, DecodedCache

OPTIONS: CodecOptions[dict[str, object]] = CodecOptions()


def counting() -> tuple[DecodedCache[object], list[object]]:
    """DecodedCache of `value`, and what was decoded for them."""
    decoded: list[object] = []

    def read(row: dict[str, object]) -> object:
        decoded.append(row["value"])
        return row["value"]

    return DecodedCache(read, OPTIONS), decoded


def test_a_document_that_did_not_change_is_decoded_once() -> None:
    readings, decoded = counting()
    raw = bson.encode({"_id": "s1", "value": 1})
    assert [readings.of(raw), readings.of(bytes(bytearray(raw)))] == [1, 1]
    assert decoded == [1]


def test_a_changed_document_is_read_anew() -> None:
    readings, _ = counting()
    assert [readings.of(bson.encode({"_id": "s1", "value": value})) for value in (1, 2, 1)] == [1, 2, 1]


def test_a_large_document_is_not_kept() -> None:
    readings, decoded = counting()
    raw = bson.encode({"_id": "s1", "value": "x" * MAX_CACHED_BYTES})
    readings.of(raw)
    readings.of(raw)
    assert len(decoded) == 2

"""What a destination's document keeps."""

from datetime import UTC, datetime

from scheduler_app.domain.destination import DestinationDraft
from scheduler_app.store.destinations import read_destination, to_destination_document
from scheduler_app.store.encryption import SecretBox

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_a_note_is_stored_and_read() -> None:
    made = DestinationDraft(url="https://example.com/", note="the receiver of invoices").destination("a", NOW)
    document = to_destination_document(made, SecretBox(""))
    assert document["note"] == "the receiver of invoices"
    assert read_destination(document, SecretBox("")) == made

"""The documents that the recorded run leaves in MongoDB, as another process finds them there; and what is
made of documents that were recorded once."""

import pytest

from tests.golden.conftest import Ran
from tests.golden.golden_files import MOST_LINES, compare, diff

pytestmark = pytest.mark.long


def test_every_document_is_as_recorded(ran: Ran) -> None:
    compare("documents", ran.documents)


def test_without_a_key_every_document_is_as_recorded(opened: Ran) -> None:
    compare("documents-unsealed", opened.documents)


def test_documents_of_the_golden_files_read_as_those_of_this_run(ran: Ran, over_documents: Ran) -> None:
    """A codec that changed on both sides would still fail here: these documents it did not write."""
    name = "everything.txt"
    difference = diff(ran.answers[name], over_documents.answers[name], name)
    assert not difference, "\n".join(["over the documents of the golden files:", *difference[:MOST_LINES]])


def test_what_the_golden_files_hold_is_edited_and_sent(over_documents: Ran) -> None:
    compare(
        "over-documents",
        {"answers.txt": over_documents.answers["sent-again.txt"], "callbacks.txt": over_documents.callbacks},
    )


def test_documents_of_older_releases_are_read_sent_and_edited(over_older_documents: Ran) -> None:
    ran = over_older_documents
    compare(
        "older-documents",
        {"answers.txt": ran.answers["older.txt"], "callbacks.txt": ran.callbacks, **ran.documents},
    )


def test_documents_of_newer_releases_are_left_alone(over_newer_documents: Ran) -> None:
    compare("newer-documents", {"answers.txt": over_newer_documents.answers["everything.txt"]})

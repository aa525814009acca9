"""What `make mutants` reads beside the code follows when files and lines of it move."""

from tests.mutants.__main__ import equivalents
from tests.mutants.acceptance import TESTS_OF_PROCESSES
from tests.mutants.faults import faults_of
from tests.mutants.places import ROOT, sources


def test_every_equivalent_is_a_fault_that_can_be_put_into_the_code() -> None:
    # Those of the other files are not made: it takes a quarter of a minute.
    texts = {key.file: (ROOT / key.file).read_bytes() for key in equivalents()}
    known = {fault.key(texts[path]) for path in texts for fault in faults_of(path, texts[path])}
    assert sorted(equivalents().keys() - known) == []
    assert sorted(texts.keys() - set(sources())) == []


def test_every_file_that_is_named_with_tests_of_processes_gets_faults() -> None:
    assert sorted(TESTS_OF_PROCESSES.keys() - set(sources())) == []
    named = {name.partition("::")[0] for names in TESTS_OF_PROCESSES.values() for name in names}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []

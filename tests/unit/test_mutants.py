"""What `make mutants` reads beside the code follows when files and lines of it move."""

from tests.mutants import reached
from tests.mutants.__main__ import equivalents
from tests.mutants.acceptance import TESTS_OF_PROCESSES
from tests.mutants.faults import faults_of
from tests.mutants.moved import lines_now
from tests.mutants.places import ROOT, sources
from tests.mutants.trial import ALL_SECONDS, in_parts, reaching


def test_every_equivalent_is_a_fault_that_can_be_put_into_the_code() -> None:
    # Those of other functions are not made: it takes minutes.
    listed = equivalents().keys()
    texts = {key.file: (ROOT / key.file).read_bytes() for key in listed}
    known = {
        fault.key(text)
        for path, text in texts.items()
        for fault in faults_of(path, text, {key.function for key in listed if key.file == path})
    }
    assert sorted(listed - known) == []
    assert sorted(texts.keys() - set(sources())) == []


def test_what_only_logs_or_counts_and_which_of_two_checks_comes_first_is_left_alone() -> None:
    source = b"""
def f(self, rows):
    require(rows, "a")
    require(rows.ok, "b")
    if rows:
        for each in rows:
            metrics.rows.inc()
    elif rows is None:
        log.warning("none")
    self._unexpected.note("rows", rows)
    yield metrics.rows.family(rows)
    yield metrics.others.family(rows)
"""
    found = [fault.key(source) for fault in faults_of("a.py", source)]
    assert [(each.was, each.becomes) for each in found] == [
        ('require(rows, "a")', "pass"),
        ('require(rows.ok, "b")', "pass"),
        ("yield metrics.rows.family(rows)", "pass"),
        ("yield metrics.others.family(rows)", "pass"),
    ]


def test_every_file_that_is_named_with_tests_of_processes_gets_faults() -> None:
    assert sorted(TESTS_OF_PROCESSES.keys() - set(sources())) == []
    named = {name.partition("::")[0] for names in TESTS_OF_PROCESSES.values() for name in names}
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_lines_that_tests_reached_are_known_after_an_edit() -> None:
    def now(old: str, new: str) -> list[list[int]]:
        found = lines_now({"a.py": old}, {"a.py": new})
        return [[number for _, number in found.get(("a.py", at), [])] for at in range(1, old.count("\n") + 2)]

    assert now("a\nb\nc", "a\nb\nc") == [[1], [2], [3]]
    # A line in front, another one for two of them, and one more behind the last.
    assert now("a\nb\nc\nd\ne", "new\na\nx\nd\ne\nbehind") == [[2], [3], [3], [4], [5, 6]]
    assert now("a\nb", "a\nx\ny\nb") == [[1, 2, 3], [4]]
    assert now("a\nb", "b") == [[], [1]]


def test_lines_that_went_to_another_file_are_found_there() -> None:
    moved, stays = "    return self.a + 1", "    self.begin(at_once)"
    old = {"a.py": f"{moved}\n{stays}", "gone.py": f"pass\n{moved}2"}
    found = lines_now(old, {"a.py": stays, "b.py": f"pass\n  {moved}2\n{moved}"})
    assert found["a.py", 1] == [("b.py", 3)]
    assert found["a.py", 2] == [("a.py", 1)]
    assert found["gone.py", 2] == [("b.py", 2)]
    assert not found["gone.py", 1]


SOURCE = b"""class A:
    def __init__(self, b):
        self.b = b
        self.c = 2

    def d(self):
        return self.b
"""


def test_what_is_set_is_tried_by_those_who_use_it_first_and_then_by_those_who_set_it() -> None:
    tests = {"sets": reached.Test(1.0, {"a.py": [3, 4]}), "uses": reached.Test(2.0, {"a.py": [3, 4, 7]})}
    tests["other"] = reached.Test(1.0, {"a.py": [9]})
    (of_b, *_) = [each for each in faults_of("a.py", SOURCE) if each.line == 3]
    assert reaching(of_b, SOURCE, tests) == [["uses"], ["sets"]]
    (of_c, *_) = [each for each in faults_of("a.py", SOURCE) if each.line == 4]
    assert reaching(of_c, SOURCE, tests) == [["sets", "uses"]]


def test_of_a_file_that_runs_at_its_import_alone_those_of_the_files_beside_it_are_tried() -> None:
    tests = {"beside": reached.Test(1.0, {"d/b.py": [1]}), "elsewhere": reached.Test(1.0, {"e/b.py": [1]})}
    fault, *_ = faults_of("d/a.py", SOURCE)
    assert reaching(fault, SOURCE, tests) == [["beside"]]


def test_tests_of_little_else_are_among_those_that_are_tried() -> None:
    quick = {
        f"q{number}": reached.Test(0.5, {"a.py": [1], "b.py": list(range(500))}) for number in range(1_000)
    }
    close = {"close": reached.Test(30.0, {"a.py": [1, 2, 3], "b.py": [1]})}
    tests = quick | close
    parts = in_parts([list(tests)], tests, "a.py")
    assert any("close" in names for names, _ in parts)
    assert sum(seconds for _, seconds in parts) <= ALL_SECONDS

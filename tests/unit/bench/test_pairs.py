"""What benchmarks make of pairs: of other schedulers and this one, of two commits."""

from tests.bench.peers import COUNTS
from tests.bench.report import compared, figures


def row(throughput: int, p99: float, **counts: int) -> dict[str, float]:
    return {"throughput_per_s": throughput, "p99_ms": p99, "missing": 0} | counts


def test_sides_have_medians_and_ratios_are_of_pairs() -> None:
    pairs = [(row(300, 10), row(100, 10)), (row(200, 20), row(100, 10)), (row(900, 30), row(300, 60))]
    assert compared(pairs, but=COUNTS) == {
        "ours": {"throughput_per_s": 300, "p99_ms": 20, "missing": 0},
        "theirs": {"throughput_per_s": 100, "p99_ms": 10, "missing": 0},
        "ratio": {"throughput_per_s": [3.0, 2.0, 3.0], "p99_ms": [1.0, 0.5, 2.0]},
    }


def test_where_nothing_arrived_there_is_no_ratio_and_the_count_says_so() -> None:
    assert compared([(row(300, 10), {"missing": 7})], but=COUNTS) == {
        "ours": {"missing": 0},
        "theirs": {"missing": 7},
        "ratio": {},
    }


def test_figures_are_the_numbers_of_a_row_by_their_whole_names() -> None:
    made = {"bench": "spread", "lag_ms": {"p50": 1.5}, "cpu": {"all": {"worker": 3}}, "kept": True, "n": None}
    assert figures(made) == {"lag_ms.p50": 1.5, "cpu.all.worker": 3}

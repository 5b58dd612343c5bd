"""Rules name no cause by counts alone: imported studies of a model whose causes are known, a few cases of each kind.

benchmarks/group_commit.py --simulate has the figures of many.
"""

import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from group_commit import simulate
from simulated_commits import FALSE_KINDS, Load, draw_cases

#: Kind with something to find -> the rule that finds it.
TRUE = {
    "group_flush": "flush",
    "units": "io_size",
    "one_at_a_time": "io_parallelism",
    "order_for_nothing": "io_sequentiality",
}


@cache
def judged(kind: str) -> list[dict[str, Any]]:
    return [row for row in simulate(kind, 2, 0.03, seed=21) if row["truth"] is not None]


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=() if kind in ("group_cpu", "same_size") else pytest.mark.long) for kind in FALSE_KINDS],
)
def test_what_costs_cpu_alone_is_not_blamed_on_the_device(kind: str) -> None:
    found = {(row["device"], row["value"], row["rule"]): row for row in judged(kind) if not row["truth"]}
    assert found
    assert [key for key, row in found.items() if row["verdict"] == "mismatch"] == []


@pytest.mark.long
@pytest.mark.parametrize(("kind", "rule"), TRUE.items())
def test_a_true_cause_is_found_where_counts_and_time_allow_it(kind: str, rule: str) -> None:
    true = [row for row in judged(kind) if row["rule"] == rule and row["truth"]]
    missed = [row for row in true if row["verdict"] != "mismatch"]
    assert len(missed) < len(true)
    # The model spends more CPU time on some requests in order than the rule takes such work to need.
    assert {row["obstacle"] for row in missed if row["decidable"]} <= {"much_work"}
    assert all(row["verdict"] == "insufficient" for row in missed)


@pytest.mark.slow
def test_flushes_that_only_rise_per_operation_are_left_to_waits() -> None:
    """A naive rule blames each of these values."""
    rows = [row for row in judged("group_cpu") if row["rule"] == "flush"]
    assert all(row["naive"] for row in rows)
    assert all("`watch: [waits]`" in row["sentence"] for row in rows if row["verdict"] == "insufficient")
    assert any(row["obstacle"] == "same_rate" for row in rows)


def test_the_model_of_a_group_commit_shares_flushes() -> None:
    import numpy as np

    def run(clients: int, cpu_us: float) -> tuple[float, float, float]:
        return Load(clients, cpu_us, 1000.0).run(np.random.default_rng(0))

    (alone_us, alone, _), (_, shared, busy), (_, computing, _) = run(1, 100), run(8, 100), run(8, 4000)
    assert alone_us == pytest.approx(1100, rel=0.03)
    assert alone == pytest.approx(1, abs=0.01)
    assert shared < 0.4 < computing
    assert busy > 0.95


def test_the_truth_of_a_case_is_the_model_without_the_cost() -> None:
    (cpu, *_), (flush, *_) = draw_cases("group_cpu", 1, 21), draw_cases("group_flush", 1, 21)
    assert all(cpu.share("flush", value) < 0.3 for value in range(3))
    assert all(flush.share("flush", value) > 0.9 for value in range(2))

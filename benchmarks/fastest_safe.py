"""Does the fastest safe configuration that a report shows stay fast? It is measured again, in runs of another seed.

Run `python benchmarks/fastest_safe.py [--seed 2] [--pairs 8] [--studies redis-quick ...]` from the checkout, as the
user who runs studies, on an idle machine. A study without results is run first. Then its fastest safe configuration and
the default one run in new pairs, on data that is loaded anew; its gain in these pairs is compared with the published
one. A gain is the ratio of throughput to the default, less 1. Published figures come from pairs of their own, so that
they owe nothing to having been picked; what they still owe to the hour of that study is what this benchmark shows.
"""

import argparse
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
from verdicts import ratios_again, run_study

from knobscope.specs import load_study
from knobscope.stages.remeasure.experiment import ITSELF, Bench, measure_pairs
from knobscope.stages.remeasure.questions import ask_fastest
from knobscope.stages.remeasure.shares import Amount, amount_of
from knobscope.text.formats import describe_effect

ROOT = Path(__file__).resolve().parents[1]
DBMS = (
    *("redis", "rocksdb", "sqlite", "wiredtiger", "duckdb", "valkey"),
    *("postgresql", "postgresql18", "mariadb", "mysql", "cassandra"),
)
#: Part of the published gain that has to be there again, and of how many configurations.
KEPT, OF_ALL = 0.9, 0.95
#: As in the report: over three looks.
_SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class Again:
    """A configuration that was measured again; ratios are natural logarithms."""

    study: str
    changes: str
    published: tuple[float, float, float]  # ratio, and its interval
    ratio: Amount

    @property
    def kept(self) -> float:
        """The part of the published gain that is there again."""
        return math.expm1(self.ratio.mean) / math.expm1(self.published[0])


def measure_again(study: str, seed: int, pairs: int) -> Iterator[Again]:
    """Yield the fastest safe configurations of a finished study whose gain it publishes, with their new gain."""
    results = Path("results") / study
    specs = load_study(ROOT / f"specs/studies/{study}.yaml", ROOT)
    specs = replace(specs, study=specs.study.model_copy(update={"seed": seed}))
    profiles = {path.stem: path for path in (results / "devices").glob("*.json")}
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        questions = [question for question in ask_fastest(specs, connection) if question.risk == "none"]
        published = {
            (dbms, device, workload): figures
            for dbms, device, workload, *figures in connection.execute(
                "SELECT dbms, device, workload, again, again_low, again_high FROM fastest "
                "WHERE risk = 'none' AND again_low > 0"
            ).fetchall()
        }
    for question in questions:
        case = question.case
        if (figures := published.get((case.dbms, case.device, case.workload))) is None:
            print(f"{study}: {case}: no gain is published")
            continue
        with tempfile.TemporaryDirectory(prefix="fastest-safe-") as store:
            bench = Bench(specs, ROOT, Path(store), profiles, pairs, round=seed)
            ((_, runs),) = measure_pairs(bench, specs.devices[case.device], ITSELF, [question])
        low, middle, high = figures[1], figures[0], figures[2]
        yield Again(study, _describe(question.value), (middle, low, high), amount_of(ratios_again(runs, question)))


def _describe(changes: str | None) -> str:
    return ", ".join(f"{knob} = {value}" for knob, value in json.loads(changes or "{}").items())


def main() -> None:
    """Measure, and print a table in Markdown and how many configurations kept their gain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", default=[f"{dbms}-quick" for dbms in DBMS])
    parser.add_argument("--seed", type=int, default=2, help="of the new runs; studies have 1")
    parser.add_argument("--pairs", type=int, default=8, help="new pairs of runs of each configuration")
    args = parser.parse_args()
    rows: list[Again] = []
    print("| study | fastest safe configuration | published | again | part of the gain |\n|---|---|---|---|---|")
    for study in args.studies:
        if not (Path("results") / study / "study.duckdb").is_file():
            run_study(ROOT / f"specs/studies/{study}.yaml")
        for row in measure_again(study, args.seed, args.pairs):
            again = describe_effect(row.ratio.mean, *row.ratio.interval(_SIGNIFICANCE))
            texts = (row.study, row.changes, describe_effect(*row.published), again, f"{row.kept:.2f}")
            print(f"| {' | '.join(texts)} |", flush=True)
            rows.append(row)
    kept = sum(row.kept >= KEPT for row in rows)
    verdict = "reached" if rows and kept >= OF_ALL * len(rows) else "missed"
    print(f"\n{kept} of {len(rows)} kept {KEPT:.0%} of their gain or more; at least {OF_ALL:.0%} wanted: {verdict}")


if __name__ == "__main__":
    main()

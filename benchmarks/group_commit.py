"""Are causes by counts true? Imported studies of a model whose causes are known, judged by all rules.

Run `python benchmarks/group_commit.py --simulate [--seeds 1 2] [--noise .03 .08] [--cases 12] [--no-cpu]`. Each kind of
case (`simulated_commits.py`) becomes a study of `knobscope import`, is judged by `knobscope detect`, and scored: a rule
is right where the difference in time per operation loses half or more without what it blames. Values whose share is
within .05 of half, or whose effect is below 10 %, count as unclear. Next to each rule stands a naive one, of fixed
thresholds, as in `verdicts.py`.
"""

import argparse
import contextlib
import io
import json
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from scores import Score, print_table
from simulated_commits import KINDS, Case, draw_cases, settings, tables_of

from knobscope.cli import main as knobscope

RULES = ("flush", "io_size", "io_sequentiality", "io_parallelism", "default_profile", "read_write_interference")
LEAST_EFFECT, NEAR_HALF = 0.1, 0.05
_NAIVE = """
    SELECT t.device, t.value::INTEGER - 1 AS value,
        abs(t.estimate) > 0.1 AND f.estimate * sign(-t.estimate) > 0.1 * greatest(f.reference, 1e-9) AS flush,
        abs(t.estimate) > 0.1 AND u.estimate * sign(-t.estimate) > 0.1 * greatest(u.reference, 1e-9) AS io_size,
        abs(t.estimate) > 0.1 AND c.estimate * sign(-t.estimate) > 0.1 AND w.estimate * sign(-t.estimate) > 0.1
            AS io_sequentiality
    FROM effects_on('throughput_ops') t
    LEFT JOIN effects_on('flushes_per_op') f USING (device, knob, value)
    LEFT JOIN effects_on('unaligned_writes_per_op') u USING (device, knob, value)
    LEFT JOIN effects_on('cpu_s_per_op') c USING (device, knob, value)
    LEFT JOIN effects_on('write_sequential_share') w USING (device, knob, value)
"""
_OF_DEFAULT = """
    SELECT device, median(depth_one_share) > 0.95 AS io_parallelism, median(busy_share) > 0.5 AS default_profile
    FROM runs_behind JOIN run_depths USING (run_id) WHERE knob IS NULL GROUP BY device
"""


def judge(cases: Sequence[Case], noise: float, seed: int, folder: Path, *, has_cpu: bool = True) -> Path:
    """Import the runs of cases, and judge them; return the database."""
    files = {}
    for name, rows in tables_of(cases, noise, seed, has_cpu=has_cpu).items():
        files[name] = folder / f"{name}.csv"
        pd.DataFrame(rows).to_csv(files[name], index=False)
    runs = files.pop("runs")
    more = [text for name, file in files.items() for text in ("--table", f"{name}={file}")]
    with contextlib.redirect_stdout(io.StringIO()) as commands, contextlib.redirect_stderr(io.StringIO()) as problems:
        failed = knobscope(["import", str(runs), "--study", "simulated", "--out", str(folder / "study"), *more])
        arguments = shlex.split(commands.getvalue().partition("\n")[0])[1:]
        detect = [
            path for argument in arguments for path in sorted(map(str, Path("/").glob(argument[1:]))) or [argument]
        ]
        failed = failed or knobscope(detect)
    if failed:
        raise SystemExit(problems.getvalue())
    return Path(detect[detect.index("--out") + 1])


def is_decidable(case: Case, rule: str, value: int | None) -> bool:
    """Whether counts per second and busy time allow a verdict: what a second holds more of is half of the loss."""
    if rule not in ("flush", "io_size") or value is None:
        return True
    ends = sorted((case.default, case.values[value]), key=lambda facts: facts.us)
    costs = [facts.flushes * facts.flush_us if rule == "flush" else facts.partly * case.unit_us for facts in ends]
    counts = [facts.flushes if rule == "flush" else facts.partly for facts in ends]
    lost = 1 - ends[0].us / ends[1].us
    return counts[1] >= 1.1 * counts[0] and (costs[1] - costs[0]) / 1e6 >= lost / 2 and ends[1].busy >= lost / 2


def truths(case: Case, value: int | None) -> dict[str, bool | None]:
    """Return by rule whether it is right to find something; None where that is not clear."""
    if value is None:
        share = case.share("default_profile", None)
        most = None if abs(share - 0.5) < NEAR_HALF else bool(share > 0.5)
        return {"io_parallelism": case.is_confined, "default_profile": most, "read_write_interference": False}
    is_there = abs(case.values[value].us / case.default.us - 1) >= LEAST_EFFECT
    truth: dict[str, bool | None] = {"io_sequentiality": bool(case.for_order and is_there)}
    for rule in ("flush", "io_size"):
        share = case.share(rule, value)
        truth[rule] = None if not is_there or abs(share - 0.5) < NEAR_HALF else bool(share > 0.5)
    return truth


def score(cases: Sequence[Case], database: Path) -> Iterator[dict[str, Any]]:
    """Yield what a rule said of each setting, what the naive rule said, and the truth."""
    with duckdb.connect(str(database), read_only=True) as connection:
        naive = {(row["device"], row["value"]): row for row in connection.execute(_NAIVE).df().to_dict("records")}
        naive |= {(row["device"], None): row for row in connection.execute(_OF_DEFAULT).df().to_dict("records")}
        findings = connection.execute(
            "SELECT rule, device, workload, value::INTEGER - 1 AS value, verdict, evidence, sentence FROM findings"
        ).fetchall()
    verdicts = {(rule, device, workload, value): finding for rule, device, workload, value, *finding in findings}
    for case in cases:
        for value in settings(case):
            for rule, truth in truths(case, value).items():
                verdict, evidence, sentence = verdicts[rule, case.device, case.workload, value]
                simple = naive[case.device, value].get(rule, False)
                yield {"kind": case.kind, "device": case.device, "value": value, "rule": rule, "verdict": verdict,
                       "obstacle": json.loads(evidence).get("obstacle"), "sentence": sentence,
                       "naive": bool(simple), "truth": truth,
                       "decidable": is_decidable(case, rule, value),
                       "share": case.share("default_profile" if value is None else rule, value)}  # fmt: skip


def simulate(kind: str, count: int, noise: float, seed: int, *, has_cpu: bool = True) -> list[dict[str, Any]]:
    """Return what rules say of new cases of a kind."""
    cases = draw_cases(kind, count, seed)
    with tempfile.TemporaryDirectory() as folder:
        return list(score(cases, judge(cases, noise, seed, Path(folder), has_cpu=has_cpu)))


def print_scores(rows: Sequence[dict[str, Any]], verbose: bool) -> None:
    """Print false findings by kind and rule, then precision and recall."""
    print("| kind | rule | false | found of these | true | found | insufficient |\n" + "|---" * 7 + "|")
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        if row["truth"] is not None:
            groups.setdefault((row["kind"], row["rule"]), []).append(row)
    for (kind, rule), own in groups.items():
        false, true = ([row["verdict"] for row in own if row["truth"] is truth] for truth in (False, True))
        counts = (len(false), false.count("mismatch"), len(true), true.count("mismatch"), true.count("insufficient"))
        print(f"| {kind} | `{rule}` | {' | '.join(map(str, counts))} |")
    if verbose:
        for row in rows:
            if row["truth"] is not None and row["truth"] != (row["verdict"] == "mismatch"):
                print(f"{row['device']} {row['value']} {row['rule']}: {row['verdict']} {row['obstacle']}, "
                      f"share {row['share']:.2f}: {row['sentence']}")  # fmt: skip
    scores: dict[str, dict[str, Score]] = {}
    for row in rows:
        for group in ("all", *(["counts and time allow a verdict"] if row["decidable"] or not row["truth"] else [])):
            score = scores.setdefault(group, {rule: Score() for rule in RULES})[row["rule"]]
            score.add(row["verdict"] == "mismatch", row["naive"], row["truth"])
    print_table(scores)


def main() -> None:
    """Simulate, judge and score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulate", action="store_true", required=True, help="judge runs of a model")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--noise", type=float, nargs="+", default=[0.03, 0.08])
    parser.add_argument("--cases", type=int, default=12, help="of each kind")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--no-cpu", action="store_true", help="tables without the column cpu_s")
    parser.add_argument("--verbose", action="store_true", help="print every miss")
    args = parser.parse_args()
    for noise in args.noise:
        rows = [row for seed in args.seeds for kind in args.kinds
                for row in simulate(kind, args.cases, noise, seed, has_cpu=not args.no_cpu)]  # fmt: skip
        print(f"\nnoise {noise:g}, seeds {' '.join(map(str, args.seeds))}\n")
        print_scores(rows, args.verbose)


if __name__ == "__main__":
    main()

"""Does screening pass on every knob of a real server that the sweep would measure at 1.3x or more?

Run `python benchmarks/truth/real_screening.py [--studies redis-all ...] [--rounds 5]` in an empty folder, as the user
who runs studies, on an idle machine; a second call measures what is missing. Each is a study of the checkout of one
DBMS, with as many knobs as possible. It is measured with three changes: screening takes all its rounds, whether or not
it could stop earlier; nothing is known from earlier studies; and the sweep holds every knob, two blocks of each value
(`--window` shortens the windows). Of hundreds of noisy effects the largest are partly chance, so every value that the
sweep puts at 1.2x or more, either way, runs in new pairs. A knob is *strong* if one of its values is at 1.3x or more,
either way, by these pairs, and its interval (95 %) excludes no effect. For each round are printed the runs so far, the
rank of each strong knob, and which of them a sweep would lack: if it takes as many knobs as the study says (`top`), and
if it takes all that stand out.

`--varied` screens anew, into `STUDY-truth-SHARE`, with configurations that draw that share of the knobs; its rounds are
judged by the same strong knobs.
"""

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb
from derived import ROOT, derive_study

sys.path.append(str(Path(__file__).parents[1]))

from verdicts import link_specs, ratios_again, run_study

from knobscope.specs import StudySpecs, load_study
from knobscope.stages.plan import case_space
from knobscope.stages.remeasure.experiment import ITSELF, Bench, measure_pairs
from knobscope.stages.remeasure.questions import ask_questions
from knobscope.stages.remeasure.shares import amount_of

#: Effects that have to be found; those that are measured again, as the sweep may have them too small.
STRONG, NEARLY = math.log(1.3), math.log(1.2)
GOAL = "goal: with 300 runs or fewer no strong knob is lacking"
_EFFECTS = """
    SELECT dbms, device, workload, knob, value, estimate,
        '' AS rule, '{}' AS evidence, 'mismatch' AS verdict, 1 AS penalty
    FROM effects WHERE metric = 'throughput_ops' AND beside IS NULL ORDER BY ALL
"""


@dataclass(frozen=True)
class Strong:
    """A knob that matters: its value with the largest effect (natural-log ratios), with the interval of new pairs."""

    knob: str
    value: str
    swept: float
    effect: float
    interval: tuple[float, float]


def write_study(study: str, rounds: int, window_s: float | None, workload: str, varied: float = 1) -> tuple[Path, int]:
    """Write the study with the changes above into this folder's `specs`; return it and how many knobs it passes on."""
    share = "" if varied == 1 else f"\n  varied: {varied:g}"
    name = f"{study}-truth{f'-{varied:g}'.replace('.', '_') if share else ''}"
    changed = {r"\n  varied: .*": "", r"max_rounds: \d+": f"max_rounds: {rounds}{share}"}
    if window_s is not None:
        changed |= {r"measure_s: [\d.]+": f"measure_s: {window_s:g}", r"warmup_s: [\d.]+": "warmup_s: 0.5"}
    own = {"screening": "{threshold: 0.999, warm_start: false}", "remeasure": "{findings: 0}"}
    blocks = {"sweep": "{repeats: 2}"}
    specs = load_study(derive_study(study, name, own | blocks, changed, workload), Path.cwd())
    (case,) = specs.cases
    blocks["sweep"] = f"{{repeats: 2, always: {json.dumps(sorted(case_space(specs, case).levels))}}}"
    file = derive_study(study, name, own | blocks, changed, workload)
    return file, load_study(ROOT / f"specs/studies/{study}.yaml", ROOT).study.screening.top


def find_strong(specs: StudySpecs, results: Path, pairs: int) -> list[Strong]:
    """Return the strong knobs, the strongest first: the largest values of the sweep run again in new pairs."""
    profiles = {path.stem: path for path in (results / "devices").glob("*.json")}
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        rows = connection.execute(_EFFECTS).df().to_dict("records")
        large = [row for row in rows if abs(row["estimate"]) >= NEARLY]
        questions = ask_questions(large, specs, connection, len(large), 0)
    print(f"{len(rows)} values swept, {len(questions)} of them measured again", flush=True)
    strong: dict[str, Strong] = {}
    bench = Bench(specs, Path.cwd(), results / "store", profiles, pairs, round=0)
    for question, runs in measure_pairs(bench, specs.devices[questions[0].case.device], ITSELF, questions):
        again, swept = amount_of(ratios_again(runs, question)), large[question.findings[0]]["estimate"]
        low, high = again.interval(0.05)
        knob = str(question.knob)
        found = Strong(knob, str(question.value), swept, again.mean, (low, high))
        is_strong = abs(again.mean) >= STRONG and low * high > 0
        if is_strong and (knob not in strong or abs(found.effect) > abs(strong[knob].effect)):
            strong[knob] = found
    return sorted(strong.values(), key=lambda entry: -abs(entry.effect))


def judge_rounds(results: Path, strong: Sequence[Strong], top: int) -> Iterator[str]:
    """Yield a line for each round: runs, ranks of the strong knobs, and those that a sweep would lack."""
    (folder,) = results.glob("*/*/*/fit")
    for file in sorted(folder.glob("*.json"), key=lambda path: int(path.stem)):
        fit = json.loads(file.read_text())
        ranked = sorted(fit["importance"], key=lambda entry: entry["rank"])
        outstanding = [entry["knob"] for entry in ranked if entry["stands_out"]]
        rank = {entry["knob"]: entry["rank"] for entry in ranked}
        of_top, of_all = (
            ", ".join(entry.knob for entry in strong if entry.knob not in passed) or "none"
            for passed in (outstanding[:top], outstanding)
        )
        ranks = ", ".join(f"{entry.knob} {rank[entry.knob]:g}" for entry in strong)
        yield f"| {int(file.stem) + 1} | {fit['runs']} | {len(outstanding)} | {ranks} | {of_top} | {of_all} |"


def print_rounds(results: Path, strong: Sequence[Strong], top: int) -> None:
    """Print the table of the rounds."""
    print(f"\n| round | runs | stand out | rank of each strong knob | not in the first {top} | does not stand out |")
    print("|---|---|---|---|---|---|")
    print("\n".join(judge_rounds(results, strong, top)), flush=True)


def main() -> None:
    """Measure each study and print its strong knobs and a table of its rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", default=["redis-all", "mariadb-all", "postgresql-all"])
    parser.add_argument("--rounds", type=int, default=5, help="of screening; each has as many runs as the study says")
    parser.add_argument("--pairs", type=int, default=6, help="new pairs of runs of each value")
    parser.add_argument("--window", type=float, help="seconds that a run is measured, after 0.5; default: as the study")
    parser.add_argument("--varied", type=float, nargs="*", default=[], help="shares of the knobs: also screened so")
    parser.add_argument("--workload", default="ycsb-a", help="the one of each study's that is measured")
    args = parser.parse_args()
    link_specs()
    for study in args.studies:
        file, top = write_study(study, args.rounds, args.window, args.workload)
        results = run_study(file)
        strong = find_strong(load_study(file, Path.cwd()), results, args.pairs)
        for entry in strong:
            low, high = (math.exp(bound) for bound in entry.interval)
            figures = (
                f"sweep {math.exp(entry.swept):.2f}x, again {math.exp(entry.effect):.2f}x ({low:.2f} to {high:.2f})"
            )
            print(f"- {entry.knob} = {entry.value}: {figures}")
        print_rounds(results, strong, top)
        for varied in args.varied:
            file, _ = write_study(study, args.rounds, args.window, args.workload, varied)
            (case,) = load_study(file, Path.cwd()).cases
            print(f"\n{varied:.0%} of the knobs drawn")
            print_rounds(run_study(file, f"{case}/fit/{args.rounds - 1}.json"), strong, top)
    print(GOAL)


if __name__ == "__main__":
    main()

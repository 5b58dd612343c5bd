"""Are the verdicts true? DBMSs on modelled devices: what rules say, against the cause that changed devices show.

Run `python benchmarks/verdicts.py [--studies sqlite ...] [--devices nvme-consumer ...] [--repeats 3]` as root, in an
empty folder, on an idle machine; `make verdicts` runs it for one study and device. What was measured stays in the
folder: a second call measures what is missing. With `--cases FILE` the cases go into a file, a line each, in place of
those of the same study and device, and the table is that of the whole file; `--studies` without a name prints it alone.

For each device each study of `benchmarks/verdicts/studies` is run, with its rules, to its report: what its own new runs
and fio withdraw counts as not found. Then every swept value, mismatch or not, is measured again, in other runs, on the
device and on what-if devices without the cost of flushes, without a write unit, and without any cost: that is the truth
of a case. A rule is right to find something where the property that it blames removes half of the effect or more. Where
three pairs of runs leave the truth open, three times as many are made in their place, once. Beside it stand naive rules
of fixed thresholds, on the same runs. Cases whose truth is not clear even then are counted apart, and every miss is
printed. The time that a device took goes to stderr.

`intuition` says of no cause: it is right where an effect that is there goes against what the spec lets expect, by the
sweep and the new pairs of runs together.

The default configuration is a case of its own, for the rules that look at it alone. `default_profile` is right that the
device holds it back where half of its time per operation goes with the device's costs, and right to blame flushes or
units where half of it goes with them.

Rules were changed with the cases of some studies on some devices in view (`IN_VIEW`). Those are scored apart from all
others.

Naive rules: 10 % slower with 10 % more of what is blamed, without noise, device or time: flushes per operation; share
of writes that are not whole multiples of the preferred size (Drishti flags a file from 10 % of misaligned requests on);
CPU per operation with a larger sequential share; 10 % against what is expected. Of the default configuration: a device
busy for half of the time; any flushes; half of the writes off the preferred size.
"""

import argparse
import json
import math
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import duckdb
import pandas as pd
from scores import Score, print_table

from knobscope.specs import StudySpecs, load_study
from knobscope.stages.remeasure.answering import answer_questions
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF, Bench
from knobscope.stages.remeasure.properties import what_if_devices
from knobscope.stages.remeasure.questions import Question, ask_questions
from knobscope.tables import WhatIfRunRow

ROOT = Path(__file__).parents[1]
OWN = ROOT / "benchmarks/verdicts"
#: (study, device) whose cases were in view when rules or experiments were changed.
IN_VIEW = {
    ("sqlite", "nvme-consumer"),
    ("sqlite", "sata-ssd-plp"),
    ("sqlite", "slow-unit"),
    ("fio-flushed", "slow-unit"),
    ("fio-flushed", "sata-ssd-plp"),
    ("fio-flushed", "nvme-datacenter"),
    ("fio-streamed", "sata-ssd-plp"),
    ("fio-streamed", "slow-unit"),
    ("redis", "hdd-7200"),
    ("redis", "sata-ssd-plp"),
}
#: Rule -> properties whose change has to remove the effect.
BLAMED = {"flush": ("flush",), "io_size": ("write_unit",), "io_sequentiality": ()}
#: Against what the spec lets expect of raising the knob, where that is said of the value at all.
CONTRARY = """CASE t.expect
    WHEN 'none' THEN true
    WHEN 'faster' THEN t.estimate * sign(t.step) < 0
    WHEN 'slower' THEN t.estimate * sign(t.step) > 0
END"""
#: How many times as many pairs are made of a case whose truth is not clear. Its interval of Student's t is then a third
#: as wide: nine pairs know their own noise far better than three.
MORE_PAIRS = 3
#: Knobs of fio that spend CPU to make requests sequential.
SPENT_FOR_ORDER = ("sorted",)
#: Standard errors within which 99 and 95 % lie.
CERTAIN, LIKELY = 2.58, 1.96
#: Standard deviation of a run over the error of an effect, in a sweep of four runs and eight of the reference.
RUN_TO_EFFECT = 1 / math.sqrt(1 / 4 + 1 / 8)
TRIED = ("everything", "flush", "write_unit")
#: Number of the runs that show the truth: a study counts its own from 1.
OWN_ROUND = 0
#: What rules say of the default configuration: rule, or what it blames, and what the naive rule looks at.
OF_DEFAULT = {
    "default_profile": "busy_share >= 0.5",
    "default_profile: flush": "flushes_per_s > 0",
    "default_profile: units": "partly > 0.5",
}
#: Share of its ability from which on a device is well used, as in `default_profile`.
MOST_USED = 0.5
#: All that is scored.
SCORED = (*BLAMED, "intuition", *OF_DEFAULT)
NAIVE = {
    "flush": "f.estimate * sign(-t.estimate) > 0.1 * greatest(f.reference, 1e-9)",
    "io_size": "u.estimate * sign(-t.estimate) > 0.1",
    "io_sequentiality": "c.estimate * sign(-t.estimate) > 0.1 AND w.estimate * sign(-t.estimate) > 0.1",
    "intuition": f"coalesce({CONTRARY}, false)",
}
_CASES = """
    SELECT t.dbms, t.device, t.workload, t.knob, t.value, t.estimate, t.standard_error,
        1.0 AS penalty, 'mismatch' AS verdict, '{{}}' AS evidence,
        {contrary} AS is_contrary, {naive}
    FROM effects t
    LEFT JOIN effects f ON f.metric = 'flushes_per_op' AND (f.device, f.knob, f.value) = (t.device, t.knob, t.value)
    LEFT JOIN effects u
        ON u.metric = 'unaligned_write_share' AND (u.device, u.knob, u.value) = (t.device, t.knob, t.value)
    LEFT JOIN effects c ON c.metric = 'cpu_s_per_op' AND (c.device, c.knob, c.value) = (t.device, t.knob, t.value)
    LEFT JOIN effects w
        ON w.metric = 'write_sequential_share' AND (w.device, w.knob, w.value) = (t.device, t.knob, t.value)
    WHERE t.metric = 'throughput_ops' ORDER BY ALL
"""


def run_study(file: Path, *targets: str) -> Path:
    """Run a study to its report, or to the targets below its results; return its results."""
    results = Path("results") / file.stem
    command = [sys.executable, "-m", "snakemake", *(str(results / target) for target in targets)]
    command += ["--snakefile", str(ROOT / "Snakefile"), "--cores", "2"]
    command += ["--profile", str(ROOT / "profiles/default"), "--config", f"study={file}"]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return results


def link_specs() -> None:
    """Make this folder's `specs`: the files of the checkout, and those that only the benchmark has."""
    for kind in ("dbms", "devices", "workloads", "generators", "exclusions"):
        folder = Path("specs") / kind
        folder.mkdir(parents=True, exist_ok=True)
        for file in [*(ROOT / "specs" / kind).iterdir(), *(OWN / kind).glob("*.yaml")]:
            if not (folder / file.name).exists():
                (folder / file.name).symlink_to(file)


def write_study(study: str, device: str) -> Path:
    """Write the study for a device into this folder's `specs`."""
    name = f"verdicts-{study}-{device}"
    file = Path("specs/studies") / f"{name}.yaml"
    file.parent.mkdir(exist_ok=True)
    text = (OWN / "studies" / f"{study}.yaml").read_text()
    file.write_text(f"name: {name}\ndevices: [{device}]\n{text}")
    return file


@dataclass(frozen=True)
class Judged:
    """A case: what was measured again, and by rule the truth (None: not clear), what it said, and naive rules."""

    answer: Answer
    truth: Mapping[str, bool | None]
    said: Mapping[str, str]
    naive: Mapping[str, bool]

    @property
    def is_clear(self) -> bool:
        """Whether the truth is known of all rules, as far as more runs could tell it."""
        return None not in (truth for rule, truth in self.truth.items() if rule != "io_sequentiality")


#: An answer, and all runs that were made when it was asked for.
Measured = tuple[Answer, Sequence[WhatIfRunRow]]


def judge(file: Path, repeats: int) -> list[Judged]:
    """Return each swept value, and the default configuration."""
    results, specs = run_study(file), load_study(file, Path.cwd())
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        cases = read_cases(connection)
        rows = [*cases, {**cases[0], "knob": None, "value": None, "rule": "default_profile"}]
        questions = ask_questions(rows, specs, connection, len(rows), len(rows))
        verdicts = connection.execute("SELECT rule, knob, value, verdict, confirmed FROM findings").fetchall()
        of_default = read_default(connection)
        of_study = {run for (run,) in connection.execute("SELECT run_id FROM what_if_runs").fetchall()}

    def judge_one(measured: Measured) -> Judged:
        answer, runs = measured
        question: Question = answer.question
        if question.is_level:
            return judge_default(answer, of_default)
        verdict_by_rule = {
            rule: "withdrawn" if confirmed == "no" else verdict
            for rule, knob, value, verdict, confirmed in verdicts
            if (knob, value) == (question.knob, question.value)
        }
        swept = cases[question.findings[0]]
        truth = truth_of_value(answer, runs, swept, specs.study.thresholds.min_effect)
        return Judged(answer, truth, verdict_by_rule, {name: bool(swept[name]) for name in NAIVE})

    measured = ask(specs, results, questions, repeats, lambda pair: judge_one(pair).is_clear)
    if shared := of_study & {run["run_id"] for _, runs in measured for run in runs}:
        raise SystemExit(f"{file}: {len(shared)} runs stand both for what the study says and for the truth")
    return [judge_one(pair) for pair in measured]


def read_cases(connection: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """Return each swept value of a study, with its effect on throughput and what naive rules find."""
    naive = ", ".join(f"abs(t.estimate) > 0.1 AND {condition} AS {name}" for name, condition in NAIVE.items())
    return connection.execute(_CASES.format(contrary=CONTRARY, naive=naive)).df().to_dict("records")


def ask(
    specs: StudySpecs, results: Path, questions: Sequence[Question], repeats: int, is_clear: Callable[[Measured], bool]
) -> list[Measured]:
    """Return each question with its answer and runs; what is not clear is measured once more, with more pairs."""
    device = specs.devices[questions[0].case.device]
    profiles = {device.name: results / "devices" / f"{device.name}.json"}
    what_ifs = {name: changed for name, changed in what_if_devices(device).items() if name in TRIED}
    measured: dict[Question, Measured] = {}
    for pairs in (repeats, MORE_PAIRS * repeats):
        open_ones = [question for question in questions if question not in measured or not is_clear(measured[question])]
        if open_ones:
            bench = Bench(specs, Path.cwd(), results / "store", profiles, pairs, round=OWN_ROUND)
            answers, runs = answer_questions(bench, device, what_ifs, open_ones)
            measured |= {answer.question: (answer, runs) for answer in answers}
    return list(measured.values())


def truth_of_value(
    answer: Answer, runs: Sequence[WhatIfRunRow], swept: Mapping[str, Any], least: float
) -> dict[str, bool | None]:
    """Return by rule whether it is right to find something in a value; None where that is not clear."""
    new_ratios = ratios_again(runs, answer.question)
    is_there = matters(new_ratios, swept["estimate"], swept["standard_error"], least)
    truth = {rule: truth_of(answer, rule) if is_there else is_there for rule in BLAMED}
    if not pd.isna(swept["is_contrary"]):  # nothing is expected of the knob, or not of this value
        truth["intuition"] = is_there and bool(swept["is_contrary"])
    return truth


def read_default(connection: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Return what the rules said of the default configuration, and what naive rules make of it."""
    rows = connection.execute("SELECT rule, verdict, evidence FROM findings WHERE knob IS NULL").fetchall()
    findings = {rule: (verdict, json.loads(evidence)) for rule, verdict, evidence in rows}
    profile = findings["default_profile"]
    (partly,) = connection.execute(
        "SELECT median(unaligned_write_share) FROM run_metrics JOIN runs_behind USING (run_id) WHERE knob IS NULL"
    ).fetchone() or (None,)
    facts = {name: profile[1].get(name) or 0 for name in ("busy_share", "flushes_per_s")}
    conditions = ", ".join(OF_DEFAULT.values())
    naive = duckdb.execute(
        f"SELECT {conditions} FROM (SELECT $busy_share AS busy_share, $flushes_per_s AS flushes_per_s, "  # noqa: S608
        "$partly AS partly)",
        {**facts, "partly": partly or 0},
    ).fetchone()
    held_by = profile[1].get("held_by") if profile[0] == "mismatch" else None
    return {
        "said": {
            "default_profile": profile[0],
            "default_profile: flush": "mismatch" if held_by == "flush" else "none",
            "default_profile: units": "mismatch" if held_by == "units" else "none",
        },
        # Clients that ask for no more: the rule rightly says neither yes nor no. A device that gives half or more of
        # what it can, of which the rule says so: that it takes most of the time is no mismatch then.
        "no_claim": profile[1].get("obstacle") == "few_clients"
        or (profile[0] == "none" and (profile[1].get("used_share") or 0) >= MOST_USED),
        "naive": dict(zip(OF_DEFAULT, map(bool, naive or ()), strict=True)),
    }


def judge_default(answer: Answer, of_default: Mapping[str, Any]) -> Judged:
    """Return the default configuration as a case."""
    everything = answer.shares.get("everything")
    truth: dict[str, bool | None] = dict.fromkeys(OF_DEFAULT)
    if everything is not None and (everything.is_most or answer.conclusion == "not_the_device"):
        truth["default_profile"] = everything.is_most
    for name, properties in (("flush", BLAMED["flush"]), ("units", BLAMED["io_size"])):
        shares = [answer.shares[blamed] for blamed in properties if blamed in answer.shares]
        if any(share.is_most for share in shares):
            truth[f"default_profile: {name}"] = True
        elif any(blamed in answer.failures for blamed in properties):
            continue
        elif answer.conclusion == "not_the_device" or all(share.is_less_than_half for share in shares):
            truth[f"default_profile: {name}"] = False
    if of_default["no_claim"]:
        truth["default_profile"] = None
    return Judged(answer, truth, of_default["said"], of_default["naive"])


def ratios_again(runs: Sequence[WhatIfRunRow], question: Question) -> list[float]:
    """Return the natural-log ratio of throughput of a value and its reference in each new pair of runs."""
    pairs: dict[int, dict[bool, float]] = defaultdict(dict)
    for run in runs:
        if run["property"] == ITSELF and (run["knob"], run["value"]) == (question.knob, question.value):
            pairs[run["pair"]][run["is_reference"]] = math.log(run["throughput_ops"] or math.nan)
    return [pair[False] - pair[True] for pair in pairs.values()]


def matters(new_ratios: Sequence[float], swept: float, swept_error: float, least: float) -> bool | None:
    """Whether an effect is there (99 %) and large enough, by new pairs and sweep together; None where that is open.

    Among a hundred pairs of equal settings some differ by chance, and few pairs miss what is there: the sweep's own
    runs count as much as they.
    """
    effect = (mean(new_ratios) + swept) / 2
    deviation = max(stdev(new_ratios), math.sqrt(2) * RUN_TO_EFFECT * swept_error)
    error = math.hypot(deviation / math.sqrt(len(new_ratios)), swept_error) / 2
    if abs(effect) > CERTAIN * error:
        return abs(effect) >= math.log(1 + least)
    return False if abs(effect) + LIKELY * error < math.log(1 + 2 * least) else None


def truth_of(answer: Answer, rule: str) -> bool | None:
    """Whether a rule is right to find something in an effect; None where the what-if devices leave it open."""
    if not answer.shares:
        return None
    if rule == "io_sequentiality":
        if answer.conclusion != "not_the_device":
            return None if answer.conclusion == "undecided" else False
        # That CPU is spent for the sake of order shows no device: of fio it is known, of a DBMS it is not.
        return answer.question.knob in SPENT_FOR_ORDER if answer.question.case.dbms == "fio" else None
    shares = [answer.shares[name] for name in BLAMED[rule] if name in answer.shares]
    if any(share.is_most for share in shares):
        return True
    if any(name in answer.failures for name in BLAMED[rule]):
        return None
    return False if answer.conclusion == "not_the_device" or all(share.is_less_than_half for share in shares) else None


def measure_device(study: str, device: str, repeats: int) -> Iterator[dict[str, Any]]:
    """Yield each case of a study on a device, as it stands in the file of cases."""
    began = time.monotonic()
    version = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], check=True, capture_output=True, text=True
    ).stdout.strip()
    for case in judge(write_study(study, device), repeats):
        answer, question = case.answer, case.answer.question
        shares = {
            name: round(share.estimate, 3) for name, share in answer.shares.items() if math.isfinite(share.estimate)
        }
        yield {"study": study, "device": device, "knob": question.knob, "value": question.value, "version": version,
               "said": dict(case.said), "naive": dict(case.naive), "truth": dict(case.truth),
               "conclusion": answer.conclusion, "shares": shares, "words": answer.describe()}  # fmt: skip
    print(f"{study} on {device}: {(time.monotonic() - began) / 60:.1f} minutes", file=sys.stderr)


def group_of(case: Mapping[str, Any]) -> str:
    """Return what a case is counted with in the table."""
    unseen = "never in view, fio" if case["study"].startswith("fio") else "never in view, DBMSs"
    return "in view" if (case["study"], case["device"]) in IN_VIEW else unseen


def print_scores(cases: Sequence[Mapping[str, Any]]) -> None:
    """Print each case with what rules missed, then the table."""
    scores = {group: {rule: Score() for rule in SCORED} for group in (*sorted(set(map(group_of, cases))), "all")}
    for case in cases:
        misses = []
        for rule, truth in case["truth"].items():
            is_finding = case["said"].get(rule) == "mismatch"
            scores["all"][rule].add(is_finding, case["naive"][rule], truth)
            if scores[group_of(case)][rule].add(is_finding, case["naive"][rule], truth):
                misses.append(f"{rule} {'is wrong' if is_finding else 'misses it'}")
        setting = "the default" if case["knob"] is None else f"{case['knob']}={case['value']}"
        head = f"{case['study']} {case['device']} {setting}"
        print(f"{head}: {case['conclusion']} {case['said']} {case['words']}", *misses, sep="\n    MISS: ")
    print_table(scores)


def load_cases(file: Path | None) -> list[dict[str, Any]]:
    """Return the cases of a file, a line each; none where there is none."""
    return [json.loads(line) for line in file.read_text().splitlines()] if file and file.exists() else []


def save_cases(file: Path | None, cases: Sequence[Mapping[str, Any]]) -> None:
    """Write cases to their file, if they have one."""
    if file:
        file.write_text("".join(json.dumps(case) + "\n" for case in cases))


def main() -> None:
    """Measure, and print the truth of each case, then precision and recall per rule."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="*", default=["fio-flushed"])
    parser.add_argument("--devices", nargs="+", default=["nvme-consumer"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cases", type=Path, help="file of cases, a line each")
    args = parser.parse_args()
    if args.studies:
        link_specs()
    cases = load_cases(args.cases)
    for study, device in [(study, device) for device in args.devices for study in args.studies]:
        cases = [case for case in cases if (case["study"], case["device"]) != (study, device)]
        cases += measure_device(study, device, args.repeats)
        save_cases(args.cases, cases)
    print_scores(cases)


if __name__ == "__main__":
    main()

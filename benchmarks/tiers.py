"""Are verdicts on two devices true? Rules `tier` and `slower_tier`, against new runs of every value on both.

Run `python benchmarks/tiers.py [--studies redis ...] [--devices sata-ssd-plp nvme-consumer] [--repeats 6]` as root, in
an empty folder, on an idle machine; what was measured stays in the folder. Each study of `benchmarks/verdicts/studies`
is run on both devices, then every swept value is measured again beside its reference, in pairs, on each of them. The
truth is that of the new pairs alone. For `tier`: the effects are opposite, or differ by more than the rule's
`tier_gap`, away from what a faster device brings about (99 %); there is nothing where 95 % intervals exclude that; the
rest is unclear. For `slower_tier`: the configuration is 5 % slower or more on the higher tier (99 %), and the default
one is not, which is a case of its own.

Beside them stand naive rules on the same runs: effects that differ by more than the gap, whatever the noise and
whatever a faster device brings about; less throughput on the higher tier.
"""

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
from scipy import stats
from scores import Score, print_table
from verdicts import CERTAIN, LIKELY, OWN, link_specs, ratios_again, run_study

from knobscope.specs import load_study
from knobscope.stages.remeasure.answering import answer_questions
from knobscope.stages.remeasure.experiment import Bench
from knobscope.stages.remeasure.questions import ask_questions
from knobscope.stages.remeasure.shares import Amount, amount_of
from knobscope.tables import WhatIfRunRow

RULES = ("tier", "slower_tier")
#: Fewer pairs of runs have no variance to speak of.
LEAST_PAIRS = 3
_SWEPT = """
    SELECT dbms, device, workload, knob, value, mechanism, estimate, 1.0 AS penalty, 'mismatch' AS verdict,
        '{}' AS evidence
    FROM effects WHERE metric = 'throughput_ops' ORDER BY ALL
"""


def half_width(effect: Amount, normal_quantile: float) -> float:
    """Return how far an interval reaches that holds what a normal one of so many standard errors does."""
    return float(stats.t.ppf(stats.norm.cdf(normal_quantile), effect.degrees) * effect.error)


def is_there(effect: Amount, least: float) -> bool:
    """Whether an effect is beyond noise (99 %) and large enough."""
    return abs(effect.mean) > max(half_width(effect, CERTAIN), math.log(1 + least))


def truth_of(lower: Amount, higher: Amount, mechanism: str | None, gap: float, least: float) -> bool | None:
    """Whether a change turns round on the higher tier, or does more there; None where the pairs leave it open."""
    difference = higher.minus(lower)
    is_opposite = is_there(lower, least) and is_there(higher, least) and lower.mean * higher.mean < 0
    direction = math.copysign(1, lower.mean) if is_there(lower, least) and mechanism != "io_workers" else 0.0
    is_unequal = is_there(difference, gap)
    if is_opposite or (is_unequal and difference.mean * direction >= 0):
        return True
    reach = half_width(difference, LIKELY)
    if not direction:
        possible = abs(difference.mean) + reach
    else:
        possible = max(direction * difference.mean + reach, -direction * higher.mean + half_width(higher, LIKELY))
    return False if possible <= math.log(1 + gap) else None


def write_study(study: str, devices: list[str]) -> Path:
    """Write the study for two devices, with the two rules alone, into this folder's `specs`."""
    name = f"tiers-{study}-{'-'.join(devices)}"
    file = Path("specs/studies") / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        line for line in (OWN / "studies" / f"{study}.yaml").read_text().splitlines() if not line.startswith("rules:")
    ]
    file.write_text(
        "\n".join([f"name: {name}", f"devices: [{', '.join(devices)}]", *lines, f"rules: [{', '.join(RULES)}]"]) + "\n"
    )
    return file


@dataclass(frozen=True)
class Again:
    """A device measured again: effects by knob and value, and natural-log throughputs by them (None: the default)."""

    effects: dict[tuple[str, str], Amount] = field(default_factory=dict)
    levels: dict[tuple[str, str] | None, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add_levels(self, runs: Sequence[WhatIfRunRow]) -> None:
        """Add the throughput of every run, once: up to four values share a run of their reference."""
        run_ids: set[str] = set()
        for run in runs:
            if run["run_id"] in run_ids or not run["throughput_ops"]:
                continue
            run_ids.add(run["run_id"])
            setting = None if run["is_reference"] else (str(run["knob"]), str(run["value"]))
            self.levels[setting].append(math.log(run["throughput_ops"]))


@dataclass(frozen=True)
class Judged:
    """A case of a rule: in words, what was said, what the naive rule says, and the truth."""

    rule: str
    words: str
    said: str
    naive: bool
    truth: bool | None


def measure_again(file: Path, swept: list[dict[str, Any]], results: Path, repeats: int) -> dict[str, Again]:
    """Measure every swept value again in new pairs of runs, on each device."""
    specs = load_study(file, Path.cwd())
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        questions = ask_questions(swept, specs, connection, most=len(swept), what_if=0)
    profiles = {name: results / "devices" / f"{name}.json" for name in specs.devices}
    bench = Bench(specs, Path.cwd(), results / "store", profiles, repeats, round=0)  # runs of its own
    by_device = {name: Again() for name in specs.study.devices}
    for name, repeated in by_device.items():
        questions_of_device = [question for question in questions if question.case.device == name]
        _, runs = answer_questions(bench, specs.devices[name], {}, questions_of_device)
        repeated.add_levels(runs)
        for question in questions_of_device:
            ratios = [ratio for ratio in ratios_again(runs, question) if math.isfinite(ratio)]
            if len(ratios) >= LEAST_PAIRS:
                repeated.effects[str(question.knob), str(question.value)] = amount_of(ratios)
    return by_device


def judge(file: Path, devices: list[str], repeats: int) -> Iterator[Judged]:
    """Yield the cases of both rules."""
    results = run_study(file)
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        swept = connection.execute(_SWEPT).df().to_dict("records")
        findings = connection.execute("SELECT rule, knob, value, verdict, evidence FROM findings").df()
        tiers: Mapping[str, int] = dict(connection.execute("SELECT device, tier_rank FROM device_tiers").fetchall())
    lower, higher = sorted(devices, key=lambda name: tiers[name])
    thresholds = load_study(file, Path.cwd()).thresholds
    repeated = measure_again(file, swept, results, repeats)
    by_rule = {rule: rows.to_dict("records") for rule, rows in findings.groupby("rule")}
    yield from judge_effects(by_rule["tier"], swept, repeated, (lower, higher), thresholds)
    yield from judge_levels(by_rule["slower_tier"], repeated, (lower, higher), thresholds["min_effect"])


def judge_effects(
    findings: list[dict[str, Any]],
    swept: list[dict[str, Any]],
    repeated: Mapping[str, Again],
    devices: tuple[str, str],
    thresholds: Mapping[str, float],
) -> Iterator[Judged]:
    """Yield what rule `tier` says of each value that was measured on both devices."""
    lower, higher = devices
    gap = thresholds["tier_gap"]
    verdicts = {(row["knob"], row["value"]): row["verdict"] for row in findings}
    rows = {(row["device"], row["knob"], row["value"]): row for row in swept}
    for setting, low in repeated[lower].effects.items():
        if setting not in repeated[higher].effects:
            continue
        high = repeated[higher].effects[setting]
        low_row, high_row = rows[lower, *setting], rows[higher, *setting]
        naive = abs(high_row["estimate"] - low_row["estimate"]) > math.log(1 + gap)
        mechanism = None if pd.isna(low_row["mechanism"]) else str(low_row["mechanism"])
        truth = truth_of(low, high, mechanism, gap, thresholds["min_effect"])
        text = f"{'='.join(setting)}: {math.exp(low.mean):.3g}x on {lower}, {math.exp(high.mean):.3g}x on {higher}"
        yield Judged("tier", text, verdicts.get(setting, "-"), naive, truth)


def judge_levels(
    findings: list[dict[str, Any]], repeated: Mapping[str, Again], devices: tuple[str, str], least: float
) -> Iterator[Judged]:
    """Yield what rule `slower_tier` says of the default configuration and of each value, by throughput."""
    levels = [repeated[name].levels for name in devices]
    slower: dict[tuple[str, str] | None, bool | None] = {}
    for setting in sorted(levels[0].keys() & levels[1].keys(), key=lambda key: key or ()):
        low, high = (amount_of(of_device[setting]) for of_device in levels)
        slower[setting] = is_slower(high.minus(low), least)
        truth = slower[setting]
        if setting is not None and truth is not False and slower[None] is not False:
            truth = None if slower[None] is None else False  # it is the default that is slower, said once
        (row,) = [finding for finding in findings if matches(finding, setting)]
        evidence = json.loads(row["evidence"])
        if row["verdict"] == "mismatch" and not evidence["slower"]:
            truth = None  # said of latency, which the new runs do not tell
        name = "the default" if setting is None else "=".join(setting)
        text = f"{name}: {math.exp(high.mean - low.mean):.3g}x on {devices[1]}"
        yield Judged("slower_tier", text, row["verdict"], evidence["throughput_ratio"] < 1, truth)


def matches(row: Mapping[str, Any], setting: tuple[str, str] | None) -> bool:
    """Whether a finding is about a setting."""
    return pd.isna(row["knob"]) if setting is None else (row["knob"], row["value"]) == setting


def is_slower(difference: Amount, least: float) -> bool | None:
    """Whether a difference of natural-log speeds is a loss, and large enough; None where the runs leave it open."""
    if is_there(difference, least):
        return difference.mean < 0
    return False if -difference.mean + half_width(difference, LIKELY) < math.log(1 + 2 * least) else None


def main() -> None:
    """Print every case, then precision and recall."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", default=["redis"])
    parser.add_argument("--devices", nargs=2, default=["sata-ssd-plp", "nvme-consumer"])
    parser.add_argument("--repeats", type=int, default=6)
    args = parser.parse_args()
    link_specs()
    scores = {rule: Score() for rule in RULES}
    for study in args.studies:
        for case in judge(write_study(study, args.devices), args.devices, args.repeats):
            print(f"{case.rule}: {study} {case.words}: {case.said}, naive {case.naive}, truth {case.truth}", flush=True)
            if scores[case.rule].add(case.said == "mismatch", case.naive, case.truth):
                print(f"    MISS: {'misses it' if case.truth else 'is wrong'}")
    print_table({" and ".join(args.devices): scores})


if __name__ == "__main__":
    main()

"""Are the verdicts of rule `tier` true? Two modelled devices: what it says, against new runs of every value on both.

Run `python benchmarks/tiers.py [--studies redis ...] [--devices sata-ssd-plp nvme-consumer] [--repeats 6]` as root, in
an empty folder, on an idle machine; what was measured stays in the folder. Each study of `benchmarks/verdicts/studies`
is run on both devices, then every swept value is measured again beside its reference, in pairs, on each of them. The
truth is that of the new pairs alone: the effects are opposite, or differ by more than the rule's `tier_gap`, away from
what a faster device brings about (99 %); there is nothing where 95 % intervals exclude that; the rest is unclear.
Beside it stands a naive rule on the same runs as `tier`: effects that differ by more than the gap, whatever the noise
and whatever a faster device brings about.
"""

import argparse
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
from scipy import stats
from verdicts import CERTAIN, LIKELY, OWN, link_specs, ratios_again, run_study, score

from knobscope.explain.answering import answer_questions
from knobscope.explain.experiment import Bench
from knobscope.explain.questions import ask_questions
from knobscope.explain.shares import Amount, amount_of
from knobscope.specs import load_study
from knobscope.statistics.independent import join_errors

#: Fewer pairs of runs have no variance to speak of.
LEAST_PAIRS = 3
_SWEPT = """
    SELECT dbms, device, workload, knob, value, mechanism, estimate, 1.0 AS penalty, 'mismatch' AS verdict,
        '{}' AS evidence
    FROM effects WHERE metric = 'throughput_ops' ORDER BY ALL
"""


def subtract(one: Amount, other: Amount) -> Amount:
    """Return the difference of two independent effects."""
    errors, degrees = (np.array([[getattr(each, name)] for each in (one, other)]) for name in ("error", "degrees"))
    error, joint = join_errors(errors, degrees)
    return Amount(one.mean - other.mean, float(error[0]), float(joint[0]))


def half_width(effect: Amount, normal_quantile: float) -> float:
    """Return how far an interval reaches that holds what a normal one of so many standard errors does."""
    return float(stats.t.ppf(stats.norm.cdf(normal_quantile), effect.degrees) * effect.error)


def is_there(effect: Amount, least: float) -> bool:
    """Whether an effect is beyond noise (99 %) and large enough."""
    return abs(effect.mean) > max(half_width(effect, CERTAIN), math.log(1 + least))


def truth_of(lower: Amount, higher: Amount, mechanism: str | None, gap: float, least: float) -> bool | None:
    """Whether a change turns round on the higher tier, or does more there; None where the pairs leave it open."""
    difference = subtract(higher, lower)
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
    """Write the study for two devices, with rule `tier` alone, into this folder's `specs`."""
    name = f"tiers-{study}-{'-'.join(devices)}"
    file = Path("specs/studies") / f"{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        one for one in (OWN / "studies" / f"{study}.yaml").read_text().splitlines() if not one.startswith("rules:")
    ]
    file.write_text("\n".join([f"name: {name}", f"devices: [{', '.join(devices)}]", *lines, "rules: [tier]"]) + "\n")
    return file


def measure_again(file: Path, results: Path, repeats: int) -> Iterator[tuple[dict[str, Any], Amount]]:
    """Yield every swept value of every device with its effect in new pairs of runs."""
    specs = load_study(file, Path.cwd())
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        swept = connection.execute(_SWEPT).df().to_dict("records")
        questions = ask_questions(swept, specs, connection, most=len(swept))
    profiles = {name: results / "devices" / f"{name}.json" for name in specs.devices}
    bench = Bench(specs, Path.cwd(), results / "store", profiles, repeats)
    for name in specs.study.devices:
        asked = [one for one in questions if one.case.device == name]
        _, runs = answer_questions(bench, specs.devices[name], {}, asked)
        for one in asked:
            ratios = [ratio for ratio in ratios_again(runs, one) if math.isfinite(ratio)]
            if len(ratios) >= LEAST_PAIRS:
                yield swept[one.findings[0]], amount_of(ratios)


def judge(file: Path, devices: list[str], repeats: int) -> Iterator[tuple[str, str, bool, bool | None]]:
    """Yield each value with the rule's verdict, the naive one, and the truth."""
    results = run_study(file)
    with duckdb.connect(str(results / "study.duckdb"), read_only=True) as connection:
        found = connection.execute("SELECT knob, value, verdict FROM findings WHERE rule = 'tier'").fetchall()
        tiers: Mapping[str, int] = dict(connection.execute("SELECT device, tier_rank FROM device_tiers").fetchall())
    thresholds = load_study(file, Path.cwd()).thresholds
    gap, least = thresholds["tier_gap"], thresholds["min_effect"]
    lower, higher = sorted(devices, key=lambda name: tiers[name])
    said = {(knob, value): verdict for knob, value, verdict in found}
    again: dict[tuple[str, str], dict[str, tuple[dict[str, Any], Amount]]] = {}
    for row, effect in measure_again(file, results, repeats):
        again.setdefault((row["knob"], row["value"]), {})[row["device"]] = row, effect
    for (knob, value), by_device in again.items():
        if set(by_device) != {lower, higher}:
            continue
        (low_row, low), (high_row, high) = by_device[lower], by_device[higher]
        naive = abs(high_row["estimate"] - low_row["estimate"]) > math.log(1 + gap)
        mechanism = None if pd.isna(low_row["mechanism"]) else str(low_row["mechanism"])
        truth = truth_of(low, high, mechanism, gap, least)
        words = f"{knob}={value}: {math.exp(low.mean):.3g}x on {lower}, {math.exp(high.mean):.3g}x on {higher}"
        yield words, said.get((knob, value), "-"), naive, truth


def main() -> None:
    """Print every value, then precision and recall."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", nargs="+", default=["redis"])
    parser.add_argument("--devices", nargs=2, default=["sata-ssd-plp", "nvme-consumer"])
    parser.add_argument("--repeats", type=int, default=6)
    args = parser.parse_args()
    link_specs()
    known: list[tuple[bool, bool, bool]] = []
    unclear = Counter[str]()
    for study in args.studies:
        for words, said, naive, truth in judge(write_study(study, args.devices), args.devices, args.repeats):
            print(f"{study} {words}: {said}, naive {naive}, truth {truth}", flush=True)
            if truth is None:
                unclear[said] += 1
            else:
                known.append((said == "mismatch", naive, truth))
                if (said == "mismatch") != truth:
                    print(f"    MISS: tier {'misses it' if truth else 'is wrong'}")
    print(f"\n{'':23} cases  true unclear   precision recall   naive: precision recall")
    mine, theirs = score([(said, truth) for said, _, truth in known]), score([(one, truth) for _, one, truth in known])
    true = sum(truth for *_, truth in known)
    print(f"{'tier':23} {len(known):5} {true:5} {unclear.total():7}   {mine}            {theirs}")


if __name__ == "__main__":
    main()

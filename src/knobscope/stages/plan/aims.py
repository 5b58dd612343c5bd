"""What the sweep of a study is to find, and what its plan says of that before anything is measured."""

import math
from itertools import combinations

from knobscope.specs import StudySpecs
from knobscope.stages.plan.blocks import sentinel_positions
from knobscope.statistics.power import Aim
from knobscope.text.formats import format_share, loosen_units, plural


def aim_of(specs: StudySpecs, values: int) -> Aim:
    """Return what a sweep of so many values per case is to find.

    It counts the comparisons of the larger of two families: every value of every case with the default configuration,
    and every value on every pair of devices of different tiers. Other cases are taken to sweep as many values. A tier
    that is found out while measuring (`auto`) counts as different from all others.
    """
    study = specs.study
    tiers = [specs.devices[name].tier for name in study.devices]
    pairs = sum(first != second or first == "auto" for first, second in combinations(tiers, 2))
    comparisons = values * len(study.dbms) * len(study.workloads) * max(len(tiers), pairs)
    return Aim(study.sweep.effect, study.sweep.power, study.thresholds.fdr, comparisons, pairs > 0)


def describe_ratio(ratio: float) -> str:
    """Return the size of an effect, rounded up: 1.42x; one beyond any that is measured is `no`."""
    return f"{math.ceil(100 * ratio - 1e-6) / 100:g}x" if ratio < 1e4 else "no"


def describe_aim(specs: StudySpecs, aim: Aim) -> str:
    """Return the terms on which an effect counts as found: power 90 %, 24 comparisons on 2 devices."""
    devices = plural(len(specs.study.devices), "device")
    return loosen_units(f"power {format_share(aim.power)}, {plural(aim.comparisons, 'comparison')} on {devices}")


def foretell(specs: StudySpecs, values: int, noise: tuple[float, int] | None) -> str:
    """Return a sentence on what the planned blocks will find of so many values; `noise` is that of screening.

    `noise` is the standard deviation of a run's natural-log throughput and the number of runs that it comes from; None
    where screening did not tell it.
    """
    sweep, aim = specs.study.sweep, aim_of(specs, values)
    if noise is None or not values:
        return f"noise is not known before the sweep: nobody can say what its {sweep.repeats} blocks will find"
    sd, runs = noise
    sentinels = len(sentinel_positions(values))
    visible = describe_ratio(aim.smallest_in_blocks(sd, sweep.repeats, values, sentinels))
    needed = aim.count_blocks(sd, values, sentinels)
    detectable_effects = f"effects of {visible}" if visible != "no" else "no effects"
    text = (
        f"noise {format_share(math.expm1(sd))} between {runs} runs of the default configuration: "
        f"{sweep.repeats} blocks find {detectable_effects} ({describe_aim(specs, aim)})"
    )
    if needed is None:
        text += f"; for {aim.effect:g}x no number of blocks is enough"
    elif needed > sweep.repeats and sweep.most is None:
        text += f"; for {aim.effect:g}x plan {needed} blocks"
    elif needed > sweep.repeats and sweep.most is not None:
        text += f"; {aim.effect:g}x takes {needed}, and up to {sweep.most} are measured"
    return loosen_units(text)

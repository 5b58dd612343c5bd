"""How much samples of growing size say of a table that holds every setting, by sampling method and by model.

Figures 1 to 5 of Hui et al. (SIGMOD 2024) ask that of ANOVA and three further models: R2 on what was not sampled, and
the share of conclusions that differ from those of all settings.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field

from knobscope.document_part import Part
from knobscope.processes.parallel import map_over_processes
from knobscope.stages.plan import SAMPLERS, Draw
from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.curves import important_points
from knobscope.statistics.design import Settings
from knobscope.statistics.holding_out import FOLDS, r_squared
from knobscope.statistics.models import MODELS
from knobscope.statistics.stability import Conclusions, conclude
from knobscope.statistics.stopping import Runs, Stop, decide_stop

#: Beyond half of all settings nobody samples; steps are not smaller than this.
MOST_RATE, LEAST_STEP = 0.5, 0.1


class Accuracy(Part):
    """What samples of one size say of all settings; percentiles 20, 50 and 80 over the trials, null without a fit."""

    sampling: str
    model: str
    rate: Annotated[float, Field(ge=0, le=1, description="Share of the settings that was sampled.")]
    settings: int = Field(description="So many they are.")
    r2: tuple[float, float, float] | None = Field(description="R2 on the settings that were not sampled.")
    mismatched: tuple[float, float, float] | None = Field(
        description="Share of the conclusions of the sample, or of all settings, that are not in both."
    )


@dataclass(frozen=True)
class _Sweep:
    """A table, averaged over replicates, and the shares of it that are sampled."""

    runs: Runs
    rates: tuple[float, ...]
    threshold: float
    seed: int


def measure_accuracy(
    settings: Settings,
    response: Floats,
    plan: tuple[str, str],
    rates: tuple[float, float],
    threshold: float,
    seed: int,
    trials: int,
    jobs: int,
) -> list[Accuracy]:
    """Return the accuracy by rate: of every sampling method with the model of the plan, and of every model with its
    sampling method. `plan` is (sampling, model), `rates` are the first one and the step.
    """
    sampling, model = plan
    start, step = rates[0], max(rates[1], LEAST_STEP)
    count = max(1, int((MOST_RATE - start) / step + 1e-9) + 1)
    sweep = _Sweep(Runs.of(settings, response), tuple(start + step * i for i in range(count)), threshold, seed)
    pairs = list(dict.fromkeys([*((name, model) for name in SAMPLERS), *((sampling, name) for name in MODELS)]))
    names = list(dict.fromkeys(name for _, name in pairs))
    complete = dict(zip(names, map_over_processes(partial(_conclude_all, sweep), names, jobs), strict=True))
    items = [(*pair, trial) for pair in pairs for trial in range(trials)]
    results = zip(items, map_over_processes(partial(_run_trial, sweep, complete), items, jobs), strict=True)
    rows: dict[tuple[str, str], list[list[tuple[float, float]]]] = {pair: [] for pair in pairs}
    for number, ((sampler, name, _), result) in enumerate(results, 1):
        rows[sampler, name].append(result)
        if number % trials == 0:
            print(f"pictures: {number // trials} of {len(pairs)} ({sampler}, {name})", file=sys.stderr, flush=True)
    return [entry for pair in pairs for entry in _summarise(pair, sweep, np.array(rows[pair]))]


def _summarise(pair: tuple[str, str], sweep: _Sweep, rows: Floats) -> Iterator[Accuracy]:
    """Yield the figures of a pair; `rows` has shape (trials, rates, 2)."""
    for number, rate in enumerate(sweep.rates):
        r2, mismatched = (_percentiles(rows[:, number, column]) for column in range(2))
        settings = _size(sweep, rate)
        yield Accuracy(
            sampling=pair[0], model=pair[1], rate=round(rate, 6), settings=settings, r2=r2, mismatched=mismatched
        )


def _percentiles(values: Floats) -> tuple[float, float, float] | None:
    known = values[np.isfinite(values)]
    if 2 * len(known) < len(values):
        return None
    low, middle, high = np.percentile(known, [20, 50, 80])
    return float(low), float(middle), float(high)


def _size(sweep: _Sweep, rate: float) -> int:
    return min(len(sweep.runs.settings), max(1, round(rate * len(sweep.runs.settings))))


def _conclude_all(sweep: _Sweep, model: str) -> Conclusions | None:
    return conclude_fit(*_fit(sweep, sweep.runs, model, sweep.seed))


def _run_trial(
    sweep: _Sweep, complete: Mapping[str, Conclusions | None], item: tuple[str, str, int]
) -> list[tuple[float, float]]:
    """Return R2 on what was not sampled and the share of mismatched conclusions, by rate; NaN where nothing fits."""
    sampling, model, trial = item
    grid, means = sweep.runs.settings, sweep.runs.response
    rng = np.random.default_rng([sweep.seed, trial])
    sampled: Ints = np.zeros(0, np.int64)
    results = []
    for rate in sweep.rates:
        levels = tuple(len(names) for names in grid.levels)
        draw = Draw(grid.codes, levels, sampled, means[sampled], _size(sweep, rate) - len(sampled), rng)
        sampled = np.append(sampled, SAMPLERS[sampling](draw)) if draw.count else sampled
        stop, runs = _fit(sweep, Runs.of(grid.take(sampled), means[sampled]), model, sweep.seed + trial)
        unsampled = np.setdiff1d(np.arange(len(grid)), sampled)
        r2 = mismatched = np.nan
        if stop.model is not None and len(unsampled) > 1:
            r2 = r_squared(means[unsampled], stop.model.predict(grid.take(unsampled)))
        conclusions, reference = conclude_fit(stop, runs), complete[model]
        if conclusions is not None and reference is not None:
            mismatched = conclusions.mismatch(reference)
        results.append((r2, mismatched))
    return results


def _fit(sweep: _Sweep, runs: Runs, model: str, seed: int) -> tuple[Stop, Runs]:
    """Return the fit of the best model of a name, by one five-fold cross-validation."""
    return decide_stop(runs, model, sweep.runs.settings, sweep.threshold, FOLDS, seed), runs


def conclude_fit(stop: Stop, runs: Runs) -> Conclusions | None:
    """Return what a fit says of each factor; None where nothing was fitted."""
    if stop.model is None:
        return None
    explained = stop.model.explain(runs.settings, runs.response)
    return conclude(explained, important_points(stop, runs, explained, {}))

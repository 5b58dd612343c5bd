"""`knobscope replay`: the incremental loop on a table that holds every setting: looked up instead of measured."""

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from knobscope.errors import UserError
from knobscope.select.design import Floats, Ints, Settings
from knobscope.select.models import MODELS, explain_terms
from knobscope.select.parallel import add_jobs_argument, map_over_processes
from knobscope.select.sampling import SAMPLERS, Draw
from knobscope.select.stopping import Runs, Stop, decide_stop, r_squared
from knobscope.select.table import add_table_arguments, read_table
from knobscope.tables import write_json

__all__ = ["Plan", "add_parser", "replay", "run_trial"]


@dataclass(frozen=True)
class Plan:
    """How to replay: model, sampling method, shares of the grid, and the stop rule."""

    model: str = "anova"
    sampling: str = "random"
    start: float = 0.05
    step: float = 0.05
    threshold: float = 0.9
    splits: int = 10
    seed: int = 1

    def check(self) -> None:
        """UserError: a share or number that makes no sense."""
        for name in ("start", "step"):
            if not 0 < getattr(self, name) <= 1:
                raise UserError(f"--{name} is {getattr(self, name):g}; expected a share of the grid above 0, at most 1")
        if not 0 < self.threshold < 1:
            raise UserError(f"--threshold is {self.threshold:g}; expected an R2 between 0 and 1")
        if self.splits < 2:
            raise UserError(f"--splits is {self.splits}; expected at least 2")


def run_trial(settings: Settings, response: Floats, plan: Plan, trial: int) -> dict[str, Any]:
    """Replay once: take more settings step by step until the rule stops. Rows of the same setting come together."""
    group = settings.groups()
    _, first = np.unique(group, return_index=True)
    grid = settings.take(first)
    means = np.bincount(group, response) / np.bincount(group)
    rng = np.random.default_rng([plan.seed, trial])
    taken: Ints = np.zeros(0, np.int64)
    share = plan.start
    while True:
        count = min(len(grid), max(1, round(share * len(grid)))) - len(taken)
        draw = Draw(grid, taken, means[taken], count, rng)
        taken = np.concatenate([taken, SAMPLERS[plan.sampling](draw)])
        rows = np.isin(group, taken)
        runs = Runs.of(settings.take(rows), response[rows])
        stop = decide_stop(runs, plan.model, grid, plan.threshold, plan.splits, plan.seed + trial)
        if stop.stopped or len(taken) == len(grid):
            return _report(stop, runs, grid, means, taken, min(share, 1.0), int(rows.sum()))
        share += plan.step


def _report(
    stop: Stop, runs: Runs, grid: Settings, means: Floats, taken: Ints, share: float, rows: int
) -> dict[str, Any]:
    """One trial as JSON; `r2_unsampled` is against the settings that were never looked at."""
    rest = np.setdiff1d(np.arange(len(grid)), taken)
    r2 = None
    if stop.model is not None and len(rest) > 1 and np.ptp(means[rest]) > 0:
        r2 = r_squared(means[rest], stop.model.predict(grid.take(rest)))
    terms = explain_terms(stop.model, runs.settings) if stop.model is not None else []
    reason = stop.reason if stop.stopped else f"every setting was taken and it did not stop: {stop.reason}"
    return {
        "stopped": stop.stopped,
        "rate": round(share, 6),
        "runs": rows,
        "settings": len(taken),
        "terms": [term["term"] for term in terms],
        "explained": terms,
        "r2_splits": [score if np.isfinite(score) else None for score in stop.r2_splits],
        "r2_unsampled": r2,
        "reason": reason,
    }


def replay(settings: Settings, response: Floats, plan: Plan, trials: int, jobs: int = 1) -> dict[str, Any]:
    """Replay several trials, each of its own seed, over `jobs` processes; the result does not depend on `jobs`."""
    plan.check()
    if trials < 1:
        raise UserError(f"--trials is {trials}; expected at least 1")
    work = partial(run_trial, settings, response, plan)
    found = [
        _progress(result, trial, trials) for trial, result in enumerate(map_over_processes(work, range(trials), jobs))
    ]
    return {
        "rows": len(response),
        "settings": int(settings.groups().max()) + 1,
        "factors": list(settings.factors),
        "model": plan.model,
        "sampling": plan.sampling,
        "seed": plan.seed,
        "threshold": plan.threshold,
        "trials": found,
        "summary": _summarise(found),
    }


def _progress(result: dict[str, Any], trial: int, trials: int) -> dict[str, Any]:
    what = f"stopped at {100 * result['rate']:g} %" if result["stopped"] else "did not stop"
    print(f"trial {trial + 1}/{trials}: {what}", file=sys.stderr)
    return result


def _summarise(trials: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Percentiles of the rates, a trial that never stopped counting as more than everything (None in the result)."""
    rates = [trial["rate"] if trial["stopped"] else np.inf for trial in trials]
    stopped = [trial for trial in trials if trial["stopped"]]
    r2 = [trial["r2_unsampled"] for trial in stopped if trial["r2_unsampled"] is not None]

    def percentile(share: float) -> float | None:
        # Interpolating between a number and infinity is undefined: take a neighbour there.
        value = float(np.percentile(rates, share, method="linear" if np.isfinite(rates).all() else "higher"))
        return round(value, 6) if np.isfinite(value) else None

    return {
        "rate_p20": percentile(20),
        "rate_median": percentile(50),
        "rate_p80": percentile(80),
        "runs_median": float(np.median([trial["runs"] for trial in stopped])) if stopped else None,
        "stopped": len(stopped),
        "r2_unsampled_min": min(r2, default=None),
        "r2_unsampled_median": float(np.median(r2)) if r2 else None,
    }


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `replay` to the command line."""
    parser = subparsers.add_parser(
        "replay",
        help="run the incremental loop on a table that holds every setting",
        description="Answers: with how many runs would screening have stopped, and would it have been right? "
        "Rows with the same setting are replicates and are taken together.",
    )
    add_table_arguments(parser)
    plan = Plan()
    parser.add_argument("--model", choices=list(MODELS), default=plan.model, help="default: %(default)s")
    parser.add_argument("--sampling", choices=list(SAMPLERS), default=plan.sampling, help="default: %(default)s")
    parser.add_argument("--start", type=float, default=plan.start, help="share of the grid to begin with (%(default)s)")
    parser.add_argument("--step", type=float, default=plan.step, help="share of the grid to add (%(default)s)")
    parser.add_argument("--threshold", type=float, default=plan.threshold, help="R2 on all splits (%(default)s)")
    parser.add_argument("--splits", type=int, default=plan.splits, help="random 80/20 splits (%(default)s)")
    parser.add_argument("--trials", type=int, default=20, help="repetitions with other samples (%(default)s)")
    parser.add_argument("--seed", type=int, default=plan.seed, help="default: %(default)s")
    add_jobs_argument(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    table = read_table(args)
    plan = Plan(args.model, args.sampling, args.start, args.step, args.threshold, args.splits, args.seed)
    result = {"table": str(args.table), **replay(table.settings, table.response, plan, args.trials, args.jobs)}
    if args.json:
        write_json(args.json, result)
        print(json.dumps(result["summary"]))
    else:
        print(json.dumps(result, indent=1))
    return 0

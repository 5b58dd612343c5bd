"""`knobscope replay`: the incremental loop on a table that holds every setting: looked up instead of measured."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from time import monotonic
from typing import Any

import numpy as np

from knobscope.commands.table.accuracy import conclude_fit, measure_accuracy
from knobscope.commands.table.documents import ReplayDocument
from knobscope.commands.table.replay_page import render_page
from knobscope.commands.table.table import (
    Table,
    add_jobs_argument,
    add_table_parser,
    read_seed,
    read_table,
    response_name,
)
from knobscope.documents import out_file, write_document
from knobscope.durable_files import write_text
from knobscope.errors import UserError
from knobscope.processes.parallel import map_over_processes
from knobscope.stages.plan import SAMPLERS, Draw, count_random
from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.curves import important_points
from knobscope.statistics.design import Settings
from knobscope.statistics.explained import list_terms
from knobscope.statistics.holding_out import r_squared
from knobscope.statistics.looks import LEAST_TO_STOP
from knobscope.statistics.models import MODELS
from knobscope.statistics.stability import (
    STOP_RULES,
    Conclusions,
    StopRule,
    count_stable,
    decide,
    explain_stability,
)
from knobscope.statistics.stopping import Runs, Stop, decide_stop

_QUIET_S = 10
#: The paper takes steps of this share of the grid. Where R2 decides, the default is a tenth of what was taken so far,
#: at least so many settings: more looks cost hardly any chance of a stop (`knobscope.statistics.looks`).
_SHARE, _TENTH, _LEAST_STEP = 0.05, 10, 5
#: So many trials are behind the lines of the page: each fits all models at all sizes.
_MOST_PICTURED = 5


@dataclass(frozen=True)
class Plan:
    """How to replay: model, sampling method, shares of the grid (None: those of `sizes`), and the stop rule."""

    model: str = "auto"
    sampling: str = "active"
    start: float | None = None
    step: float | None = None
    threshold: float = 0.9
    splits: int = 10
    seed: int = 1
    stop: StopRule = "r2"
    stable_rounds: int = 3
    log: bool = False  # whether the response is a logarithm

    def check(self) -> None:
        """UserError: a share or number that makes no sense."""
        for name in ("start", "step"):
            share = getattr(self, name)
            if share is not None and not 0 < share <= 1:
                raise UserError(f"--{name} is {share:g}; expected a share of the grid above 0, at most 1")
        if not 0 < self.threshold < 1:
            raise UserError(f"--threshold is {self.threshold:g}; expected an R2 between 0 and 1")
        if self.splits < 2:
            raise UserError(f"--splits is {self.splits}; expected at least 2")
        if self.stable_rounds < 2:
            raise UserError(f"--stable-rounds is {self.stable_rounds}; expected at least 2")

    def sizes(self, settings: int) -> Iterator[int]:
        """Yield how many of the settings of a table have been taken at each look, up to all of them."""
        if self.stop == "r2" and self.start is None and self.step is None:
            size = LEAST_TO_STOP
            while size < settings:
                yield size
                size += max(_LEAST_STEP, size // _TENTH)
        else:
            share = self.start or _SHARE
            step = max(self.step or _SHARE, 1 / settings)  # of less than a setting there is nothing to take
            while (size := max(1, round(share * settings))) < settings:
                yield size
                share += step
        yield settings


def run_trial(settings: Settings, response: Floats, plan: Plan, trial: int) -> dict[str, Any]:
    """Replay once: take more settings step by step until the rule stops. Rows of the same setting come together."""
    group = settings.groups()
    _, first = np.unique(group, return_index=True)
    grid = settings.take(first)
    means = np.bincount(group, response) / np.bincount(group)
    rng = np.random.default_rng([plan.seed, trial])
    levels = tuple(len(names) for names in grid.levels)
    sampled: Ints = np.zeros(0, np.int64)
    drawn = sampled  # those of them that stand for all settings
    history: list[Conclusions | None] = []
    looks: list[int] = []
    progress = _Progress()
    for size in plan.sizes(len(grid)):
        count = size - len(sampled)
        draw = Draw(grid.codes, levels, sampled, means[sampled], count, rng)
        new = SAMPLERS[plan.sampling](draw)
        drawn = np.append(drawn, new[: count_random(plan.sampling, count, len(sampled))])
        sampled = np.append(sampled, new)
        rows = np.isin(group, sampled)
        runs = Runs.of(settings.take(rows), response[rows], np.isin(group[rows], drawn), is_log=plan.log)
        seed = plan.seed + trial
        # Where only R2 decides, what a step that does not stop has found is of no use later.
        quick = plan.stop == "r2" and size < len(grid)
        decide_now = partial(decide_stop, runs, plan.model, grid, plan.threshold, plan.splits, seed, looks)
        stop = decide_now(only_whether=quick, only_deciding=plan.stop != "r2")
        progress.say(f"trial {trial + 1}: {len(sampled)} of {len(grid)} settings")
        history.append(conclude_fit(stop, runs) if plan.stop != "r2" else None)
        stable = count_stable(history)
        stopped = decide(plan.stop, stop.stopped, stable, plan.stable_rounds)
        if stopped:
            break
        looks.append(int(runs.is_random.sum()))
    reason = explain_stability(plan.stop, stop.reason, stable, plan.stable_rounds)
    stop = stop if plan.stop == "r2" else decide_now()
    sizes = {"rate": round(size / len(grid), 6), "runs": int(rows.sum()), "settings": len(sampled)}
    return {"stopped": stopped, **sizes, **_report(stop, stopped, reason, runs, grid, means, sampled)}


class _Progress:
    """Says on stderr how far a trial is, where it takes long."""

    def __init__(self) -> None:
        """Begin now."""
        self._said = monotonic()

    def say(self, text: str) -> None:
        """Print a line, if the last one is older than ten seconds."""
        if monotonic() - self._said >= _QUIET_S:
            print(text, file=sys.stderr, flush=True)
            self._said = monotonic()


def _report(
    stop: Stop, stopped: bool, reason: str, runs: Runs, grid: Settings, means: Floats, sampled: Ints
) -> dict[str, Any]:
    """What a trial ends with; `r2_unsampled` is against the settings that were never looked at."""
    unsampled = np.setdiff1d(np.arange(len(grid)), sampled)
    r2 = None
    if stop.model is not None and len(unsampled) > 1 and np.ptp(means[unsampled]) > 0:
        r2 = r_squared(means[unsampled], stop.model.predict(grid.take(unsampled)))
    explained = stop.model.explain(runs.settings, runs.response) if stop.model is not None else []
    points = important_points(stop, runs, explained, {})
    terms = list_terms(explained)
    return {
        "fitted": stop.model.name if stop.model is not None else None,
        "terms": [term["term"] for term in terms],
        "explained": terms,
        "points": points,
        "r2_splits": [score if np.isfinite(score) else None for score in stop.r2_splits],
        "r2_unsampled": r2,
        "reason": reason if stopped else f"every setting was taken and it did not stop: {reason}",
    }


def replay(settings: Settings, response: Floats, plan: Plan, trials: int, jobs: int = 1) -> dict[str, Any]:
    """Replay several trials, each of its own seed, over `jobs` processes; the result does not depend on `jobs`."""
    plan.check()
    if trials < 1:
        raise UserError(f"--trials is {trials}; expected at least 1")
    work = partial(run_trial, settings, response, plan)
    results = [
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
        "stop": plan.stop,
        "trials": results,
        "summary": _summarise(results),
    }


def _progress(result: dict[str, Any], trial: int, trials: int) -> dict[str, Any]:
    outcome = f"stopped at {100 * result['rate']:g} %" if result["stopped"] else "did not stop"
    print(f"trial {trial + 1}/{trials}: {outcome}", file=sys.stderr)
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
    parser = add_table_parser(
        subparsers,
        "replay",
        ReplayDocument,
        "run the incremental loop on a table that holds every setting",
        "Answers: with how many runs would screening have stopped, and would it have been right? "
        "Rows with the same setting are replicates and are taken together. `--model anova --sampling random` is the "
        "method of Hui et al. (SIGMOD 2024); the default needs fewer runs.",
    )
    plan = Plan()
    parser.add_argument("--model", choices=list(MODELS), default=plan.model, help="default: %(default)s")
    parser.add_argument("--sampling", choices=list(SAMPLERS), default=plan.sampling, help="default: %(default)s")
    parser.add_argument("--start", type=float, help=f"share of the grid to begin with ({LEAST_TO_STOP} settings)")
    parser.add_argument(
        "--step",
        type=float,
        help=f"share of the grid to add (a tenth of what was taken, at least {_LEAST_STEP} settings; where conclusions "
        f"decide, or only one of both is given, {_SHARE})",
    )
    parser.add_argument("--threshold", type=float, default=plan.threshold, help="R2 on all splits (%(default)s)")
    parser.add_argument("--splits", type=int, default=plan.splits, help="random 80/20 splits (%(default)s)")
    parser.add_argument(
        "--stop",
        choices=STOP_RULES,
        default=plan.stop,
        help="when R2 suffices, when conclusions have stayed the same, or both (%(default)s)",
    )
    parser.add_argument(
        "--stable-rounds",
        type=int,
        default=plan.stable_rounds,
        help="steps in which the conclusions have to be the same (%(default)s)",
    )
    parser.add_argument("--trials", type=int, default=20, help="repetitions with other samples (%(default)s)")
    parser.add_argument("--seed", type=read_seed, default=plan.seed, help="default: %(default)s")
    parser.add_argument(
        "--html",
        type=out_file,
        metavar="FILE",
        help="also write a page: R2 and mismatched conclusions by share of the settings, for all sampling methods and "
        "models, with as many trials (up to five); takes minutes",
    )
    add_jobs_argument(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    table = read_table(args)
    plan = Plan(**{field.name: getattr(args, field.name) for field in fields(Plan)})
    result = {"table": str(args.table), **replay(table.settings, table.response, plan, args.trials, args.jobs)}
    if args.html is not None:
        result["accuracy"] = _write_page(args, table, plan, result)
    if not write_document(args, result):
        print(_describe(result))
    return 0


def _write_page(args: argparse.Namespace, table: Table, plan: Plan, result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Write the page, and return the numbers behind its pictures."""
    trials = min(args.trials, _MOST_PICTURED)
    accuracies = measure_accuracy(
        table.settings,
        table.response,
        (plan.sampling, plan.model),
        (plan.start or _SHARE, plan.step or _SHARE),
        plan.threshold,
        plan.seed,
        trials,
        args.jobs,
    )
    write_text(args.html, render_page(result, accuracies, response_name(args), trials))
    print(f"wrote {args.html}", file=sys.stderr)
    return [accuracy.model_dump() for accuracy in accuracies]


def _describe(result: dict[str, Any]) -> str:
    """Return the summary as a table, with the reasons of trials that never stopped below."""
    import pandas as pd

    summary = result["summary"]

    def figure(key: str, scale: float = 1, missing: str = "never stopped") -> str:
        return missing if summary[key] is None else f"{scale * summary[key]:.4g}"

    figures = {
        "trials that stopped": f"{summary['stopped']} of {len(result['trials'])}",
        "settings taken, 20th percentile [%]": figure("rate_p20", 100),
        "settings taken, median [%]": figure("rate_median", 100),
        "settings taken, 80th percentile [%]": figure("rate_p80", 100),
        "runs taken, median of those that stopped": figure("runs_median"),
        "R2 on settings never taken, least": figure("r2_unsampled_min", missing="none left"),
        "R2 on settings never taken, median": figure("r2_unsampled_median", missing="none left"),
    }
    head = "{settings} settings; model {model}, sampling {sampling}, stop {stop}".format_map(result)
    reasons = dict.fromkeys(trial["reason"] for trial in result["trials"] if not trial["stopped"])
    return "\n".join([head, "", pd.Series(figures).to_string(), "", *reasons]).rstrip()

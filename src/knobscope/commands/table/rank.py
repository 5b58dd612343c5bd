"""`knobscope rank`: which columns of a table matter, and whether that ranking can be trusted."""

import argparse
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from knobscope.commands.table.suspicion import find_failure_code
from knobscope.commands.table.table import (
    Table,
    add_jobs_argument,
    add_table_parser,
    read_table,
    response_name,
    write_result,
)
from knobscope.errors import UserError
from knobscope.processes.parallel import map_over_processes, one_thread
from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.models import MODELS, make_models
from knobscope.statistics.models.anova import InsufficientSamplesError
from knobscope.statistics.ranking import Ranking, rank_knobs
from knobscope.statistics.stopping import Runs

__all__ = ["add_parser", "rank_table"]

TOP = 5
#: Extremely randomised trees: with some hundred runs of twenty knobs they found more of the final five than random
#: forests, boosting and rank correlations, and they need no levels.
DEFAULT_MODEL = "extra_trees"
#: What makes runs fail is not ranked from fewer failures than this.
LEAST_FAILURES = 10
#: An analysis of variance wants categories: a factor with more levels than this is cut ...
MOST_LEVELS = 12
#: ... into so many parts with equally many rows.
PARTS = 4


def rank_table(
    settings: Settings,
    response: Floats,
    model: str = DEFAULT_MODEL,
    seed: int = 1,
    tell: Callable[[int, int], None] | None = None,
) -> Ranking:
    """Rank the factors by a named model, fitted to the rows with replicates averaged; `tell` as in `rank_knobs`."""
    coarse = settings.coarsened(MOST_LEVELS, PARTS) if model == "anova" else settings
    runs = Runs.of(coarse, response)
    ranking = Ranking([], None, False, f"insufficient samples: {len(runs.response)} settings for {model}")
    for candidate in reversed(make_models(model, seed)):  # the richest that the rows can carry
        try:
            fitted = candidate.fit(runs.settings, runs.response)
        except InsufficientSamplesError:
            continue
        ranking = rank_knobs(runs, fitted, seed, int(np.clip(60_000 / len(runs.response), 10, 25)), tell)
        if ranking.holdout_r2 is not None:
            return _doubt(ranking, response)
    return ranking


def _doubt(ranking: Ranking, response: Floats) -> Ranking:
    """Withdraw trust where the response seems to hold failure codes: the ranking would be of what makes runs fail."""
    code = find_failure_code(response)
    if code is None:
        return ranking
    return Ranking(ranking.knobs, ranking.holdout_r2, False, f"{code} Name it with --failed-value")


def rank_failures(table: Table, model: str, seed: int) -> dict[str, Any] | None:
    """Rank what makes runs fail, apart from what makes them fast: the response is 1 for a failed row and 0 for others.

    None without failed rows.
    """
    count = int(table.failed.sum())
    if not count:
        return None
    found = {"rows": count, "share": count / len(table.failed), "knobs": []}
    if min(count, len(table.failed) - count) < LEAST_FAILURES:
        few = (
            f"insufficient samples: {count} of {len(table.failed)} rows failed, {LEAST_FAILURES} of each are the least"
        )
        return {**found, "trustworthy": False, "reason": few}
    ranking = rank_table(table.attempted, table.failed.astype(float), model, seed)
    knobs = [asdict(knob) for knob in ranking.knobs]
    return {**found, "knobs": knobs, "trustworthy": ranking.trustworthy, "reason": ranking.reason}


def _draw(settings: Settings, response: Floats, model: str, samples: int, seed: int, draw: int) -> Ranking:
    """Rank a random part of the settings, all rows of a setting together."""
    group = settings.groups()
    rng = np.random.default_rng([seed, draw])
    chosen = rng.choice(int(group.max()) + 1, samples, replace=False)
    rows = np.isin(group, chosen)
    return rank_table(settings.take(rows), response[rows], model, seed + draw)


def rank_draws(
    settings: Settings, response: Floats, model: str, samples: int, draws: int, seed: int, jobs: int
) -> dict[str, Any]:
    """Rank all rows and several random parts of them: how many of the final five would fewer runs have found?"""
    count = int(settings.groups().max()) + 1
    if not 0 < samples <= count:
        raise UserError(f"--samples is {samples}; the table has {count} distinct settings")
    if draws < 1:
        raise UserError(f"--draws is {draws}; expected at least 1")
    work = partial(_rank_item, settings, response, model, samples, seed)
    complete, *parts = map_over_processes(work, [None, *range(draws)], jobs)
    top = {knob.knob for knob in complete.knobs[:TOP]}
    found = []
    for number, part in enumerate(parts, start=1):
        first = [knob.knob for knob in part.knobs[:TOP]]
        found.append({"top5": first, "overlap": len(top.intersection(first)), "holdout_r2": part.holdout_r2})
        print(f"draw {number}/{draws}: {found[-1]['overlap']} of the first {TOP}", file=sys.stderr)
    overlap = float(np.mean([draw["overlap"] for draw in found]))
    return {
        **_as_json(complete, model, len(response)),
        "samples": samples,
        "draws": found,
        "mean_overlap_top5": overlap,
    }


def _rank_item(settings: Settings, response: Floats, model: str, samples: int, seed: int, draw: int | None) -> Ranking:
    if draw is None:
        return rank_table(settings, response, model, seed)
    return _draw(settings, response, model, samples, seed, draw)


def _as_json(ranking: Ranking, model: str, rows: int) -> dict[str, Any]:
    return {
        "rows": rows,
        "model": model,
        "holdout_r2": ranking.holdout_r2,
        "trustworthy": ranking.trustworthy,
        "reason": ranking.reason,
        "knobs": [asdict(knob) for knob in ranking.knobs],
    }


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `rank` to the command line."""
    parser = add_table_parser(
        subparsers,
        "rank",
        "rank the knob columns of a table, and say whether to trust the ranking",
        "Ranks by permutation importance on rows that the model has not seen, and by the model's own importance; noise "
        "columns (shuffled copies of real ones) show what chance reaches.",
    )
    parser.add_argument("--model", choices=list(MODELS), default=DEFAULT_MODEL, help="default: %(default)s")
    parser.add_argument("--samples", type=int, metavar="N", help="also rank N random settings, to see what fewer find")
    parser.add_argument("--draws", type=int, default=10, metavar="D", help="how often, with --samples (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    add_jobs_argument(parser)
    parser.set_defaults(run=_run)


def _progress(number: int, samples: int) -> None:
    print(f"subsample {number}/{samples}", file=sys.stderr)


def _run(args: argparse.Namespace) -> int:
    table = read_table(args)
    if args.samples is None:
        with one_thread():
            ranking = rank_table(table.settings, table.response, args.model, args.seed, _progress)
        result = _as_json(ranking, args.model, len(table.response))
    else:
        result = rank_draws(table.settings, table.response, args.model, args.samples, args.draws, args.seed, args.jobs)
    if result["trustworthy"] and table.doubt is not None:
        result |= {"trustworthy": False, "reason": table.doubt}
    failures = rank_failures(table, args.model, args.seed)
    result = {"table": str(args.table), **result, "failures": failures}
    return write_result(args, result, _describe(result, response_name(args)))


def _describe(result: dict[str, Any], response: str) -> str:
    """Return the ranking as a table, its first figure being what it is sorted by, with the verdict below."""
    verdict = f"{'trustworthy' if result['trustworthy'] else 'NOT trustworthy'}: {result['reason']}"
    lines = [
        f"What matters for {response}, by {result['model']} on {result['rows']} rows.",
        "",
        _tabulate(result["knobs"]),
        "",
        "score: mean of a knob's shares of all R2 lost and of the model's own importance; the order goes by it.",
        "R2 lost: on held-out rows, when the knob's column is shuffled; it can be more than 1.",
        verdict,
    ]
    if "mean_overlap_top5" in result:
        found = f"{result['mean_overlap_top5']:.1f} of the first {TOP}"
        lines.append(f"{result['samples']} settings find {found}, on average of {len(result['draws'])} draws")
    if failures := result["failures"]:
        first = ", ".join(knob["knob"] for knob in failures["knobs"][:TOP] if knob["above_noise"]) or "no knob"
        sure = "" if failures["trustworthy"] else f" (NOT trustworthy: {failures['reason']})"
        lines.append(f"{failures['rows']} rows failed; knobs above noise for failing: {first}{sure}")
    return "\n".join(lines)


def _tabulate(knobs: list[dict[str, Any]]) -> str:
    import pandas as pd

    rows = [
        {
            "rank": knob["rank"],
            "90 % interval": f"{knob['rank_low']} to {knob['rank_high']}",
            "knob": knob["knob"],
            "score [%]": f"{100 * knob['score']:.1f}",
            "R2 lost": f"{knob['permutation']:.3f}",
            "above noise": "yes" if knob["above_noise"] else "no",
        }
        for knob in knobs
    ]
    return pd.DataFrame(rows).to_string(index=False) if rows else "no knob could be ranked"

"""`knobscope rank`: which columns of a table matter, and whether that ranking can be trusted."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from knobscope.commands.table.documents import RankDocument
from knobscope.commands.table.guards import Guards, find_guards, missed_separators
from knobscope.commands.table.table import (
    Table,
    add_jobs_argument,
    add_table_parser,
    read_seed,
    read_table,
    response_name,
)
from knobscope.documents import write_document
from knobscope.errors import UserError
from knobscope.processes.parallel import map_over_processes, one_thread
from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.models import DECIDING, MODELS, make_models
from knobscope.statistics.models.anova import InsufficientSamplesError
from knobscope.statistics.ranking import Ranking, rank_knobs
from knobscope.statistics.stopping import Runs
from knobscope.statistics.suspicion import find_failure_code
from knobscope.text.formats import plural

TOP = 5
#: Extremely randomised trees: with some hundred runs of twenty knobs they found more of the final five than random
#: forests, boosting and rank correlations, and they need no levels.
DEFAULT_MODEL = "extra_trees"
#: Parts of the rows that are ranked, too, unless the user says how many.
DRAWS = 10
#: What makes runs fail is not ranked from fewer failures than this.
LEAST_FAILURES = 10
#: An analysis of variance wants categories: a factor with more levels than this is cut ...
MOST_LEVELS = 12
#: ... into so many parts with equally many rows.
PARTS = 4
#: The form of a model is chosen on so many settings at most.
MOST_FITTED = 5000
#: Keys of the document with a guard's sentence.
GUARD_KEYS = ("jump", "sample", "ordered", "censored", "duplicates")


@dataclass(frozen=True)
class TableRanking(Ranking):
    """A ranking of the knobs of a table, and what its rows cannot show.

    Knobs that the rows cannot tell apart stand next to each other and have one rank, interval and score.
    """

    guards: Guards

    def first(self) -> list[str]:
        """Return the knobs with the first ranks, the best of each group."""
        return list({knob.rank: knob.knob for knob in reversed(self.knobs) if knob.rank <= TOP}.values())[::-1]


def rank_table(
    settings: Settings,
    response: Floats,
    model: str = DEFAULT_MODEL,
    seed: int = 1,
    tell: Callable[[int, int], None] | None = None,
    raw: Floats | None = None,
) -> TableRanking:
    """Rank the factors by a named model, fitted to the rows with replicates averaged; `tell` as in `rank_knobs`.

    `raw` is the response before a logarithm was taken, if one was.
    """
    guards = find_guards(settings, response, raw)
    groups = guards.columns(settings.factors)
    runs = Runs.of(settings.coarsened(MOST_LEVELS, PARTS) if model == "anova" else settings, response)
    some = np.random.default_rng(seed).permutation(len(runs.response))[:MOST_FITTED]
    ranking = Ranking([], None, False, f"insufficient samples: {len(runs.response)} settings for {model}")
    deciding = make_models(model, seed)[: DECIDING.get(model)]
    for candidate in reversed(deciding):  # the richest that the rows can carry
        try:
            fitted = candidate.fit(runs.settings.take(some), runs.response[some])
        except InsufficientSamplesError:
            continue
        samples = int(np.clip(60_000 / len(runs.response), 10, 25))
        ranking = rank_knobs(runs, fitted, seed, samples, tell, groups)
        if ranking.holdout_r2 is not None:
            break
    knobs = [replace(knob, knob=name) for knob in ranking.knobs for name in guards.group_of(knob.knob)]
    table_ranking = TableRanking(knobs, ranking.holdout_r2, ranking.trustworthy, ranking.reason, guards)
    doubt = _doubt(table_ranking, response)
    return table_ranking if doubt is None else replace(table_ranking, trustworthy=False, reason=doubt)


def _doubt(ranking: TableRanking, response: Floats) -> str | None:
    """Say why the ranking is none of causes: failure codes, rows that are no sample, a knob that it should hold."""
    if ranking.holdout_r2 is None:
        return None
    if code := find_failure_code(response):
        return code
    if doubt := ranking.guards.doubt():
        return doubt
    if not ranking.trustworthy:
        return None
    missed = missed_separators(ranking.guards, ranking.first())
    if not missed:
        return None
    rank = next(knob.rank for knob in ranking.knobs if knob.knob == missed[0].knob)
    return (
        f"{missed[0].knob} alone puts {100 * missed[0].in_order:.1f} % of the pairs of fast and slow rows in order, "
        f"yet the model ranks it {rank}: these rows cannot show which knob makes them slow"
    )


def rank_failures(table: Table, model: str, seed: int) -> dict[str, Any] | None:
    """Rank what makes runs fail, apart from what makes them fast: the response is 1 for a failed row and 0 for others.

    None without failed rows.
    """
    count = int(table.failed.sum())
    if not count:
        return None
    summary = {"rows": count, "share": count / len(table.failed), "knobs": []}
    if min(count, len(table.failed) - count) < LEAST_FAILURES:
        few = (
            f"insufficient samples: {count} of {len(table.failed)} rows failed, {LEAST_FAILURES} of each are the least"
        )
        return {**summary, "trustworthy": False, "reason": few}
    ranking = rank_table(table.attempted, table.failed.astype(float), model, seed)
    knobs = [asdict(knob) for knob in ranking.knobs]
    return {**summary, "knobs": knobs, "trustworthy": ranking.trustworthy, "reason": ranking.reason}


def _draw(settings: Settings, response: Floats, model: str, samples: int, seed: int, draw: int) -> TableRanking:
    """Rank a random part of the settings, all rows of a setting together."""
    group = settings.groups()
    rng = np.random.default_rng([seed, draw])
    chosen = rng.choice(int(group.max()) + 1, samples, replace=False)
    rows = np.isin(group, chosen)
    return rank_table(settings.take(rows), response[rows], model, seed + draw)


def rank_draws(table: Table, model: str, samples: int, draws: int, seed: int, jobs: int) -> dict[str, Any]:
    """Rank all rows and several random parts of them: how many of the final five would fewer runs have found?"""
    count = int(table.settings.groups().max()) + 1
    if not 0 < samples <= count:
        raise UserError(f"--samples is {samples}; the table has {count} distinct settings")
    if draws < 1:
        raise UserError(f"--draws is {draws}; expected at least 1")
    work = partial(_rank_item, table, model, samples, seed)
    complete, *parts = _report_draws(map_over_processes(work, [None, *range(draws)], jobs), draws)
    top = {knob.knob for knob in complete.knobs if knob.rank <= TOP}
    results = []
    for part in parts:
        first = part.first()
        results.append({"top5": first, "overlap": len(top.intersection(first)), "holdout_r2": part.holdout_r2})
    overlap = float(np.mean([draw["overlap"] for draw in results]))
    return {
        **_as_json(complete, model, len(table.response)),
        "samples": samples,
        "draws": results,
        "mean_overlap_top5": overlap,
    }


def _rank_item(table: Table, model: str, samples: int, seed: int, draw: int | None) -> TableRanking:
    if draw is None:
        return rank_table(table.settings, table.response, model, seed, _progress, table.raw)
    return _draw(table.settings, table.response, model, samples, seed, draw)


def _report_draws(rankings: Iterator[TableRanking], draws: int) -> Iterator[TableRanking]:
    """Pass rankings on, and say on stderr how many are there."""
    for number, ranking in enumerate(rankings):
        print(f"draw {number}/{draws}: {', '.join(ranking.first())}" if number else "all rows", file=sys.stderr)
        yield ranking


def _as_json(ranking: TableRanking, model: str, rows: int) -> dict[str, Any]:
    return {
        "rows": rows,
        "model": model,
        "holdout_r2": ranking.holdout_r2,
        "trustworthy": ranking.trustworthy,
        "reason": ranking.reason,
        "knobs": [asdict(knob) for knob in ranking.knobs],
        **ranking.guards.to_json(),
    }


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `rank` to the command line."""
    parser = add_table_parser(
        subparsers,
        "rank",
        RankDocument,
        "rank the knob columns of a table, and say whether to trust the ranking",
        "Ranks by permutation importance on rows that the model has not seen, and by the model's own importance; noise "
        "columns (shuffled copies of real ones) show what chance reaches.",
    )
    parser.add_argument("--model", choices=list(MODELS), default=DEFAULT_MODEL, help="default: %(default)s")
    parser.add_argument("--samples", type=int, metavar="N", help="also rank N random settings, to see what fewer find")
    parser.add_argument("--draws", type=int, metavar="D", help=f"how often, with --samples (default: {DRAWS})")
    parser.add_argument("--seed", type=read_seed, default=1, help="default: %(default)s")
    add_jobs_argument(parser)
    parser.set_defaults(run=_run)


def _progress(number: int, samples: int) -> None:
    print(f"subsample {number}/{samples}", file=sys.stderr)


def _run(args: argparse.Namespace) -> int:
    if args.draws is not None and args.samples is None:
        raise UserError("--draws: found no --samples; expected --samples N, the settings of a draw")
    table = read_table(args)
    if args.samples is None:
        with one_thread():
            ranking = rank_table(table.settings, table.response, args.model, args.seed, _progress, table.raw)
        result = _as_json(ranking, args.model, len(table.response))
    else:
        draws = DRAWS if args.draws is None else args.draws
        result = rank_draws(table, args.model, args.samples, draws, args.seed, args.jobs)
    if result["trustworthy"] and table.doubt is not None:
        result |= {"trustworthy": False, "reason": table.doubt}
    failures = rank_failures(table, args.model, args.seed)
    result = {"table": str(args.table), **result, "failures": failures}
    if not write_document(args, result):
        print(_describe(result, response_name(args)))
    return 0


def _describe(result: dict[str, Any], response: str) -> str:
    """Return the ranking as a table, its first figure being what it is sorted by, with the verdict below."""
    verdict = f"{'trustworthy' if result['trustworthy'] else 'NOT trustworthy'}: {result['reason']}"
    guard_texts = {key: result[key]["text"] for key in GUARD_KEYS if result[key] and result[key]["text"] not in verdict}
    lines = [
        _conclude(result, response),
        "",
        *([_sentence(guard_texts.pop("jump")), ""] if "jump" in guard_texts else []),
        f"What matters for {response}, by {result['model']} on {result['rows']} rows.",
        "",
        _tabulate(result["knobs"]),
        "",
        "score: mean of a knob's shares of all R2 lost and of the model's own importance; the order goes by it.",
        "R2 lost: on held-out rows, when the knob's column is shuffled; it can be more than 1.",
        *(f"Not distinguished by the rows, ranked as one: {_name_some(group, 10)}." for group in result["aliased"]),
        *map(_sentence, guard_texts.values()),
        verdict,
    ]
    if "mean_overlap_top5" in result:
        share = f"{result['mean_overlap_top5']:.1f} of the first {TOP}"
        samples, draws = plural(result["samples"], "setting"), plural(len(result["draws"]), "draw")
        lines.append(f"with {samples}, {share} are found, on average of {draws}")
    if failures := result["failures"]:
        first = ", ".join(knob["knob"] for knob in failures["knobs"][:TOP] if knob["above_noise"]) or "no knob"
        sure = "" if failures["trustworthy"] else f" (NOT trustworthy: {failures['reason']})"
        rows = "row" if failures["rows"] == 1 else "rows"
        lines.append(f"{failures['rows']} {rows} failed; knobs above noise for failing: {first}{sure}")
    return "\n".join(lines)


def _conclude(result: dict[str, Any], response: str) -> str:
    knobs = result["knobs"]
    if not result["trustworthy"] or not knobs:
        return f"Do not trust this ranking for {response}: {result['reason']}."
    above = sum(knob["above_noise"] for knob in knobs)
    are = "knobs is" if above == 1 else "knobs are"
    return f"{knobs[0]['knob']} matters most for {response}; {above} of {len(knobs)} {are} above noise."


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _name_some(knobs: Sequence[str], most: int) -> str:
    omitted_count = len(knobs) - most
    return ", ".join(knobs) if omitted_count <= 0 else f"{', '.join(knobs[:most])} and {omitted_count} more"


def _tabulate(knobs: list[dict[str, Any]]) -> str:
    """Return a line per rank: a knob, or a group of them."""
    import pandas as pd

    rows = []
    for _, group in groupby(knobs, key=lambda knob: knob["rank"]):
        (knob, *aliases) = group
        rows.append(
            {
                "rank": knob["rank"],
                "90 % interval": f"{knob['rank_low']} to {knob['rank_high']}",
                "knob": knob["knob"] + (f" (one of {1 + len(aliases)})" if aliases else ""),
                "score [%]": f"{100 * knob['score']:.1f}",
                "R2 lost": f"{knob['permutation']:.3f}",
                "above noise": "yes" if knob["above_noise"] else "no",
            }
        )
    return pd.DataFrame(rows).to_string(index=False) if rows else "no knob could be ranked"

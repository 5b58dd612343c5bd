"""`knobscope trend`: the curve of one factor, with its knee, turning points and cliffs."""

import argparse
import json
from typing import Any

import numpy as np

from knobscope.errors import UserError
from knobscope.select.anova import Anova, InsufficientSamplesError
from knobscope.select.design import Floats, Ints, Settings, single_terms
from knobscope.select.points import Axis, find_points
from knobscope.select.selection import finite, level_effects
from knobscope.select.stopping import Runs
from knobscope.select.table import add_table_arguments, read_table
from knobscope.tables import write_json

__all__ = ["add_parser", "trend"]

#: A column with more values than this is no category to adjust for.
MOST_LEVELS = 50


def trend(
    settings: Settings, response: Floats, factor: str, axis: Axis = "linear", adjust: bool = False
) -> dict[str, Any]:
    """Return the mean response per level of a factor, its standard error, and the curve's important points.

    With `adjust` other factors are held equal by an additive model (least squares): right where levels do not occur
    equally often together. Factors with more than 50 values are no categories and cannot be adjusted for.
    UserError: no such factor, one without an order, fewer than three levels, or too few rows to adjust.
    """
    levels = _ordered_levels(settings, factor)
    others = [name for name in settings.factors if name != factor and len(settings.levels_of(name)) <= MOST_LEVELS]
    effects, error = _plain_curve(settings.column(factor), response)
    adjusted = _adjusted_curve(settings.only([factor, *others]), response, factor) if others else None
    if adjusted is not None:
        # The spread that other factors cause is no noise, also of the plain means.
        error = adjusted[1]
    if adjust:
        if adjusted is None:
            raise UserError(f"cannot adjust: {len(response)} rows do not suffice for {len(others)} other factors")
        effects = adjusted[0]
    points = find_points(levels, effects.tolist(), axis, error)
    return {
        "factor": factor,
        "axis": axis,
        "coefficients": [[level, float(effect)] for level, effect in zip(levels, effects, strict=True)],
        "standard_error": error,
        "adjusted_for": others if adjust else [],
        "points": [finite(point.to_json()) for point in points],
    }


def _ordered_levels(settings: Settings, factor: str) -> list[float]:
    if factor not in settings.factors:
        raise UserError(f"no factor {factor!r}; the factors are {', '.join(settings.factors)}")
    levels = settings.numbers(factor)
    if levels is None:
        raise UserError(f"the values of {factor!r} are words: a trend needs numbers, which have an order")
    if len(levels) < 3:
        raise UserError(f"{factor!r} has {len(levels)} values; a trend needs three or more")
    return levels


def _adjusted_curve(settings: Settings, response: Floats, factor: str) -> tuple[Floats, float] | None:
    """Mean per level and its standard error by the additive model; None where the rows do not suffice for one."""
    runs = Runs.of(settings, response)
    try:
        model = Anova().fit_terms(runs.settings, runs.response, single_terms(settings.factors))
    except InsufficientSamplesError:
        return None
    residual = runs.response - model.predict(runs.settings)
    per_level = np.bincount(runs.settings.column(factor)).mean()
    variance = float((residual**2).sum()) / (len(residual) - model.columns)
    return level_effects(model, runs.settings, factor), float(np.sqrt(variance / per_level))


def _plain_curve(level: Ints, response: Floats) -> tuple[Floats, float]:
    """Mean per level and its standard error, 0 without replicates: nothing is known about noise then."""
    counts = np.bincount(level)
    means = np.bincount(level, response) / counts
    degrees = len(response) - len(counts)
    if degrees == 0:
        return means, 0.0
    variance = float(((response - means[level]) ** 2).sum()) / degrees
    return means, float(np.sqrt(variance / counts.mean()))


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `trend` to the command line."""
    parser = subparsers.add_parser(
        "trend",
        help="find the knee, turning points and cliffs of one factor",
        description="Finds where the effect of a factor levels off (knee), turns, or jumps (cliff).",
    )
    add_table_arguments(parser)
    parser.add_argument("--factor", required=True, metavar="COL", help="the factor whose curve is looked at")
    parser.add_argument(
        "--axis",
        choices=["linear", "log"],
        default="linear",
        help="how far apart levels are: by difference or by ratio",
    )
    parser.add_argument(
        "--adjust", action="store_true", help="hold other factors equal (for tables that are no full grid)"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.factors and args.factor not in args.factors.split(","):
        args.factors = f"{args.factors},{args.factor}"
    table = read_table(args)
    result = {"table": str(args.table), **trend(table.settings, table.response, args.factor, args.axis, args.adjust)}
    if args.json:
        write_json(args.json, result)
        for point in result["points"]:
            print(f"{point['type']} at {point['value']:g} (ratio {point['turn_ratio']})")
        if not result["points"]:
            print("no knee, turning point or cliff")
    else:
        print(json.dumps(result, indent=1))
    return 0

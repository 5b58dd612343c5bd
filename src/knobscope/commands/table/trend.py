"""`knobscope trend`: the curve of one factor, with its knee, turning points and cliffs."""

import argparse
import math
from typing import Any

import numpy as np

from knobscope.commands.table.documents import TrendDocument
from knobscope.commands.table.table import add_table_parser, read_table, response_name
from knobscope.documents import write_document
from knobscope.errors import UserError
from knobscope.specs import suggest
from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.curves import level_effects, typical_error
from knobscope.statistics.design import Settings, single_terms
from knobscope.statistics.models.anova import Anova, InsufficientSamplesError
from knobscope.statistics.points import Axis, find_points
from knobscope.statistics.published_points import find_published_points
from knobscope.statistics.stopping import Runs
from knobscope.text.formats import join_words

#: A column with more values than this is no category to adjust for.
MOST_LEVELS = 50


def trend(
    settings: Settings,
    response: Floats,
    factor: str,
    axis: Axis = "linear",
    adjust: bool = False,
    as_published: bool = False,
) -> dict[str, Any]:
    """Return the mean response per level of a factor, its standard error, and the curve's important points.

    With `adjust` other factors are held equal by an additive model (least squares): right where levels do not occur
    equally often together. Factors with more than 50 values are no categories and cannot be adjusted for.
    With `as_published` points are those of SIGMOD 2024 to the letter (`knobscope.statistics.published_points`).
    UserError: no such factor, one without an order, fewer than three levels, or too few rows to adjust; a log axis with
    `as_published`.
    """
    levels = _ordered_levels(settings, factor)
    other_factors = [
        name for name in settings.factors if name != factor and len(settings.levels_of(name)) <= MOST_LEVELS
    ]
    effects, error = _plain_curve(settings.column(factor), response)
    adjusted = _adjusted_curve(settings.only([factor, *other_factors]), response, factor) if other_factors else None
    if adjusted is not None:
        # The spread that other factors cause is no noise, also of the plain means.
        error = adjusted[1]
    if adjust:
        if adjusted is None:
            if not other_factors:
                raise UserError(f"cannot adjust: no other factor has {MOST_LEVELS} values or fewer")
            raise UserError(
                f"cannot adjust: {len(response)} rows do not suffice for {len(other_factors)} other factors"
            )
        effects = adjusted[0]
    if as_published and axis == "log":
        raise UserError("--as-published has a linear axis only, as SIGMOD 2024 has: leave --axis log out")
    heights = effects.tolist()
    points = find_published_points(levels, heights) if as_published else find_points(levels, heights, axis, error)
    return {
        "factor": factor,
        "axis": axis,
        "coefficients": [[level, float(effect)] for level, effect in zip(levels, effects, strict=True)],
        "standard_error": error,
        "adjusted_for": other_factors if adjust else [],
        "as_published": as_published,
        "points": [point.to_json() for point in points],
    }


def _ordered_levels(settings: Settings, factor: str) -> list[float]:
    if factor not in settings.factors:
        raise UserError(f"no factor {factor!r}; expected {suggest(factor, list(settings.factors))}")
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
    counts = np.bincount(runs.settings.column(factor))
    variance = float((residual**2).sum()) / (len(residual) - model.columns)
    return level_effects(model, runs.settings, factor), typical_error(math.sqrt(variance), counts)


def _plain_curve(level: Ints, response: Floats) -> tuple[Floats, float]:
    """Mean per level and its standard error, 0 without replicates: nothing is known about noise then."""
    counts = np.bincount(level)
    means = np.bincount(level, response) / counts
    degrees = len(response) - len(counts)
    if degrees == 0:
        return means, 0.0
    variance = float(((response - means[level]) ** 2).sum()) / degrees
    return means, typical_error(math.sqrt(variance), counts)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `trend` to the command line."""
    parser = add_table_parser(
        subparsers,
        "trend",
        TrendDocument,
        "find the knee, turning points and cliffs of one factor",
        "Finds where the effect of a factor levels off (knee), turns, or jumps (cliff).",
    )
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
    parser.add_argument(
        "--as-published",
        action="store_true",
        help="find knees and turning points as SIGMOD 2024 does, to the letter "
        "(docs/evidence/statistics.md says what differs)",
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if args.factors and args.factor not in args.factors.split(","):
        args.factors = f"{args.factors},{args.factor}"
    table = read_table(args, may_be_flat=True)
    curve = trend(table.settings, table.response, args.factor, args.axis, args.adjust, args.as_published)
    result = {"table": str(args.table), **curve}
    if not write_document(args, result):
        print(_describe(result, response_name(args)))
    return 0


def _describe(result: dict[str, Any], response: str) -> str:
    """Return the curve as a table, with the points below."""
    import pandas as pd

    adjusted = f", held equal: {', '.join(result['adjusted_for'])}" if result["adjusted_for"] else ""
    is_noise_known = result["standard_error"] > 0
    error = (
        f"typical standard error of a mean {result['standard_error']:.4g}"
        if is_noise_known
        else "noise unknown: no replicates"
    )
    rows = [(f"{level:g}", f"{mean:.6g}") for level, mean in result["coefficients"]]
    points = [_describe_point(result["factor"], point) for point in result["points"]]
    return "\n".join(
        [
            _conclude(result, response),
            "",
            f"{response} by {result['factor']} ({result['axis']} axis{adjusted}); {error}",
            "",
            pd.DataFrame(rows, columns=[result["factor"], f"mean {response}"]).to_string(index=False),
            "",
            *(points or ["no knee or turning point" if result["as_published"] else "no knee, turning point or cliff"]),
        ]
    )


def _conclude(result: dict[str, Any], response: str) -> str:
    """Say in a sentence where the curve bends; of one that does not, from where to where it goes."""
    factor, (first, *_, last) = result["factor"], result["coefficients"]
    kinds = {"turning": "turning point"}
    points = [f"{kinds.get(point['type'], point['type'])} at {point['value']:g}" for point in result["points"]]
    if points:
        return f"{response} over {factor} has a {join_words(points)}."
    return (
        f"{response} over {factor} has no point to name: it goes from {first[1]:.6g} at {first[0]:g} "
        f"to {last[1]:.6g} at {last[0]:g}."
    )


def _describe_point(factor: str, point: dict[str, Any]) -> str:
    where = f"{point['type']} at {factor} = {point['value']:g}"
    if point["type"] == "cliff":
        return f"{where} (the step to it is {100 * point['turn_ratio']:.0f} % of the range)"
    if math.isnan(point["turn_ratio"]):  # of a point at an end
        return where
    ratio = "infinite" if math.isinf(point["turn_ratio"]) else f"{point['turn_ratio']:.2f}"
    return f"{where} (turn ratio |slope above / slope below - 1|: {ratio})"

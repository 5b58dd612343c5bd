"""The pictures of a replay as one HTML page that loads nothing from elsewhere, in the look of the report."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from knobscope.commands.table.accuracy import Accuracy
from knobscope.figures import Figure, RateCurve, Strip, draw_rates, draw_strips
from knobscope.stages.report.page import make_environment
from knobscope.text.formats import format_number, format_share, plural

_FIGURES = {
    "r2": ("R² on settings not sampled", "R²"),
    "mismatched": ("Mismatched conclusions", "share of conclusions that differ"),
}


def render_page(result: Mapping[str, Any], accuracies: Sequence[Accuracy], response: str, trials: int) -> str:
    """Return the page of a document of `replay` with the accuracies of samples, over so many trials each."""
    environment = make_environment("knobscope.commands.table")
    by_sampling = [entry for entry in accuracies if entry.model == result["model"]]
    by_model = [entry for entry in accuracies if entry.sampling == result["sampling"]]
    return environment.get_template("replay.html.j2").render(
        title=f"{Path(result['table']).name}: {response}",
        answer=list(_answer(result)),
        result=result,
        trials=trials,
        by_sampling=[_figure("sampling", key, by_sampling, result) for key in _FIGURES],
        by_model=[_figure("model", key, by_model, result) for key in _FIGURES],
        stops=_stops(result),
    )


def _answer(result: Mapping[str, Any]) -> Iterator[str]:
    summary, count = result["summary"], len(result["trials"])
    if summary["rate_median"] is None:
        yield f"{summary['stopped']} of {plural(count, 'trial')} stopped before every setting was taken."
        for reason in dict.fromkeys(trial["reason"] for trial in result["trials"] if not trial["stopped"]):
            yield f"{reason[:1].upper()}{reason[1:]}."
        return
    yield (
        f"Screening would have stopped after {format_share(summary['rate_median'])} of {result['settings']:,} settings "
        f"({format_number(summary['runs_median'])} runs), the median of {plural(count, 'trial')}."
    )
    if summary["r2_unsampled_min"] is not None:
        yield (
            f"The model then predicted the settings that were never taken with an R² of "
            f"{format_number(summary['r2_unsampled_min'], 3)} or more (median "
            f"{format_number(summary['r2_unsampled_median'], 3)})."
        )


def _figure(by: str, key: str, accuracies: Sequence[Accuracy], result: Mapping[str, Any]) -> Figure:
    title, label = _FIGURES[key]
    curves = []
    for name in dict.fromkeys(getattr(entry, by) for entry in accuracies):
        own = [entry for entry in accuracies if getattr(entry, by) == name]
        points = [(entry.rate, *values) for entry in own if (values := getattr(entry, key)) is not None]
        curves.append(RateCurve(name, points, name == result[by]))
    ends = [f"{curve.name} {format_number(curve.points[-1][2], 3)}" for curve in curves if curve.points]
    return Figure(
        name=f"{key}-by-{by}",
        title=title,
        description=f"{title} by share of settings sampled. At the right end: {', '.join(ends) or 'nothing fits'}.",
        draw=lambda width: draw_rates(width, curves, label, result["threshold"] if key == "r2" else None),
        data=[entry.model_dump() for entry in accuracies],
    )


def _format_percent(percent: float) -> str:
    return format_share(percent / 100)


def _stops(result: Mapping[str, Any]) -> Figure:
    """Return a dot for each trial, at the share of the settings that it took."""
    rates = [trial["rate"] for trial in result["trials"] if trial["stopped"]]
    late = len(result["trials"]) - len(rates)
    percent = [100 * rate for rate in rates]
    centre = result["summary"]["rate_median"] or 1.0
    return Figure(
        name="stops",
        title="Settings taken by each trial",
        caption=f"{plural(late, 'trial')} took every setting and did not stop." if late else "",
        description=f"Share of settings at the stop: {', '.join(format_share(rate) for rate in rates) or 'none'}.",
        draw=lambda width: draw_strips(
            width, [Strip("median", "line-a", percent, 100 * centre)], "% of the settings", _format_percent
        ),
        data=[{"rate": rate} for rate in rates],
    )

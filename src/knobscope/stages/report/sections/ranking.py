"""Section "Knob ranking": which knobs screening found to matter, and how far its model can be trusted."""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from knobscope.figures import Figure, RankedKnob, RoundFit, draw_ranking, draw_rounds, slug
from knobscope.specs import Case, is_factor, value_text
from knobscope.stages.report.sections.across_cases import ranks_by_case
from knobscope.stages.report.sections.bends import bend_figures
from knobscope.stages.report.sections.grids import grid_figure
from knobscope.stages.report.sections.html_table import (
    NUMBER,
    TEXT,
    Cells,
    annotate,
    format_code,
    render_table,
)
from knobscope.stages.report.sections.left_out import WHOLE, list_left_out
from knobscope.stages.report.sections.pairs import tabulate_pairs
from knobscope.stages.report.sections.predicted_effects import predicted_effects
from knobscope.stages.report.sections.tunability import TunabilityPart, tell_tunability
from knobscope.stages.report.sections.worst_predicted import tabulate_worst
from knobscope.study_data.study import Row, Rows, StudyData, name_case
from knobscope.tables.responses import RESPONSES, Response
from knobscope.text.formats import format_number, format_share, format_value, join_words, plural

#: Points that depend on the value of another knob: so many of them are listed, the table has all.
_MOST_BESIDE = 5
#: Knobs that mattered in priors: so many are named.
_MOST_EXPECTED = 8
#: Settings that later rounds left out: so many are named.
_MOST_COSTLY = 6
_POINTS = (("Knob", TEXT), ("Important point", TEXT), ("At", NUMBER), ("Turn ratio", NUMBER))
_POINT_WORDS = {
    "knee": "larger values change little",
    "turning": "the effect changes direction",
    "cliff": "performance changes in one step",
}
_MODELS = {
    "auto": "the best of several models",
    "anova": "analysis of variance",
    "lightgbm": "boosted trees (LightGBM)",
    "random_forest": "random forest",
    "extra_trees": "extremely randomised trees",
    "gaussian_process": "Gaussian process",
    "mlp": "neural network",
}


@dataclass(frozen=True)
class CaseRanking:
    """The ranking of one case, in words and pictures."""

    name: str
    summary: str
    trust: str
    is_trusted: bool
    pictures: list[Figure]
    points: Markup
    pairs: Markup
    tunability: TunabilityPart | None
    worst: Markup


@dataclass(frozen=True)
class RankingSection:
    """Rankings by case, and from case to case; `empty` says why there are none."""

    cases: list[CaseRanking]
    across: list[Figure]
    empty: str = ""


def build_ranking(data: StudyData) -> RankingSection:
    """Return the section from tables `fits`, `importance` and `important_points`."""
    cases = [ranking for case in data.shown_cases if (ranking := _rank_case(data, case)) is not None]
    if cases:
        return RankingSection(cases, ranks_by_case(data))
    if not data.value("SELECT count(*) FROM runs WHERE phase = 'screen'"):
        return RankingSection([], [], "The study has no screening runs: its knobs are specified, not searched for.")
    return RankingSection([], [], "The screening runs have not been fitted; run `knobscope select`.")


def _rank_case(data: StudyData, case: Case) -> CaseRanking | None:
    fits, knobs = data.of_case("fits", case, "round"), data.of_case("importance", case, "rank, knob")
    points = data.of_case("important_points", case, "knob, value")
    alone = [row for row in points if not row["beside"]]
    beside = sorted((row for row in points if row["beside"]), key=lambda row: -(row["score"] or math.inf))
    if not fits and not knobs:
        return None
    left_out = list_left_out(data, case)
    pictures = [_ranking_figure(case, knobs, left_out)] if knobs else []
    pictures += predicted_effects(data, case)
    screened = [fit for fit in fits if not fit["prior"]]
    pictures += [_rounds_figure(data, case, screened)] if screened else []
    grid = grid_figure(data, case, knobs)
    pictures += [*([grid] if grid else []), *bend_figures(data, case, alone)]
    last, response = fits[-1] if fits else None, RESPONSES[data.specs.study.screening.response]
    return CaseRanking(
        name=name_case(case),
        summary=" ".join(
            filter(
                None,
                [
                    _summarise(knobs, fits, response),
                    _tell_left_out([row["knob"] for row in knobs if row["above_noise"]], left_out),
                    _tell_costly(data, case, len(screened) - 1, response),
                ],
            )
        ),
        trust=_trust(last, response),
        is_trusted=bool(last and last["trustworthy"]),
        pictures=pictures,
        points=render_table(_POINTS, [_point(data, case, row) for row in [*alone, *beside[:_MOST_BESIDE]]]),
        pairs=tabulate_pairs(data, case),
        tunability=tell_tunability(data, case, last) if last else None,
        worst=tabulate_worst(data, case, [row["knob"] for row in knobs]),
    )


def _summarise(knobs: list[Row], fits: list[Row], response: Response) -> str:
    sentences = [f"Knobs are ranked by the {response.words}."] if response.is_latency else []
    if fits and fits[-1]["prior"]:
        reason = fits[-1]["reason"]
        sentences.append(f"{reason[:1].upper()}{reason[1:]}.")
    elif fits:
        last = fits[-1]
        model = _MODELS.get(last["model"], last["model"])
        verb = "stopped" if last["stopped"] else "ended without reaching its goal"
        sentences.append(
            f"Screening {verb} after {plural(len(fits), 'round')} and {plural(last['runs'] or 0, 'run')} "
            f"({model}): {last['reason'] or 'no reason was recorded'}."
        )
        if last["warm_start"]:
            sentences.append(_tell_warm_start(last["warm_start"], last["expected"].split(", ")))
    above = [row["knob"] for row in knobs if row["above_noise"]]
    if knobs:
        # Shares of the variance for analysis of variance (an interaction counts for both knobs), of gains for trees.
        importance = [(row["importance"] or 0.0, row["above_noise"]) for row in knobs]
        share = sum(own for own, is_above in importance if is_above) / (sum(own for own, _ in importance) or 1.0)
        sentences.append(
            f"{join_words(above)} {'stands' if len(above) == 1 else 'stand'} out from the noise and "
            f"{'has' if len(above) == 1 else 'have'} {format_share(share)} of the importance of all knobs."
            if above
            else f"None of {plural(len(knobs), 'knob')} stands out from the noise."
        )
    return " ".join(sentences)


def _tell_left_out(above: Collection[str], left_out: Mapping[str, str]) -> str:
    """Say what of the knobs that stand out a tuner may not change, and which ones remain."""
    if not (closed := [f"{knob} ({left_out[knob]})" for knob in above if knob in left_out]):
        return ""
    sentence = (
        "Tuners, an exported search space and the fastest safe configuration leave out values that risk committed "
        f"data: {join_words(closed)}."
    )
    if WHOLE not in map(left_out.get, above):
        return sentence
    remaining = [knob for knob in above if left_out.get(knob) != WHOLE and not is_factor(knob)]
    verb = "stands out" if len(remaining) == 1 else "stand out"
    stands_out = f"{join_words(remaining)} {verb}" if remaining else "none stands out"
    return f"{sentence} Of the knobs that remain, {stands_out}."


def _tell_warm_start(priors: str, knobs: list[str]) -> str:
    more = [f"{len(knobs) - _MOST_EXPECTED} more"] if len(knobs) > _MOST_EXPECTED else []
    return (
        f"It started from the knobs that stood out in {'priors' if ', ' in priors else 'prior'} {priors}: "
        f"{join_words([*knobs[:_MOST_EXPECTED], *more])} needed less evidence than other knobs."
    )


def _tell_costly(data: StudyData, case: Case, last: int, response: Response) -> str:
    """Say which settings the rounds up to `last` left out, after an earlier one had shown that they cost most."""
    rows = data.rows(
        """
        SELECT setting, last(times_slower ORDER BY round) AS times_slower
        FROM costly_settings WHERE dbms = ? AND device = ? AND workload = ? AND round < ?
        GROUP BY setting ORDER BY times_slower DESC, setting
        """,
        *case,
        last,
    )
    if not rows:
        return ""
    dbms = data.specs.dbms.get(case.dbms)
    settings = []
    for row in rows[:_MOST_COSTLY]:
        values = json.loads(row["setting"]).items()
        assignments = [f"{knob} = {format_value(dbms, knob, value_text(value))}" for knob, value in values]
        settings.append(f"{' with '.join(assignments)} ({format_number(row['times_slower'])}x {response.less})")
    more = [f"{len(rows) - _MOST_COSTLY} more"] if len(rows) > _MOST_COSTLY else []
    return (
        f"Later rounds excluded settings that earlier ones had shown to be several times {response.less}: "
        f"{join_words([*settings, *more])}. "
        "Such a bottleneck hides the effects of other knobs."
    )


def _trust(fit: Row | None, response: Response) -> str:
    if fit is None:
        return ""
    reason = f": {fit['reason_trust']}" if fit["reason_trust"] else ""
    if not fit["trustworthy"]:
        return f"Do not trust this ranking{reason}"
    if fit["stopped"] or fit["prior"]:
        return f"The ranking can be trusted{reason}"
    lack = f"it cannot predict the {response.words} of a single configuration"
    return f"Which knobs stand out can be trusted{reason}; {lack}"


def _ranking_figure(case: Case, rows: Rows, left_out: Collection[str]) -> Figure:
    knobs = [
        RankedKnob(
            row["knob"],
            row["permutation"] or 0.0,
            row["importance"],
            bool(row["above_noise"]),
            bool(row["selected"]),
            row["knob"] in left_out,
        )
        for row in rows
    ]
    importances = [f"{knob.knob} {format_number(knob.permutation)}" for knob in knobs if knob.above_noise]
    return Figure(
        name=slug("ranking", *case),
        title="How much each knob matters",
        caption="Above 1, the model with shuffled values predicts worse than the mean of all runs would."
        if any(knob.permutation > 1 for knob in knobs)
        else "",
        description=f"Permutation importance of {len(knobs)} knobs. Above noise: {', '.join(importances) or 'none'}.",
        draw=lambda width: draw_ranking(width, knobs),
        data=rows,
    )


def _rounds_figure(data: StudyData, case: Case, fits: list[Row]) -> Figure:
    threshold = data.specs.study.screening.threshold
    rounds = [RoundFit(fit["round"], fit["runs"] or 0, fit["r2_min"], fit["r2_median"]) for fit in fits]
    summaries = [f"round {fit.round + 1}: smallest {format_number(fit.r2_min, 3)}" for fit in rounds]
    return Figure(
        name=slug("rounds", *case),
        title="How well the model predicts runs it has not seen",
        description=f"R² on held-out runs, by screening round, against {threshold}. {'; '.join(summaries)}.",
        draw=lambda width: draw_rounds(width, rounds, threshold),
        data=fits,
    )


def _point(data: StudyData, case: Case, row: Row) -> Cells:
    dbms, meaning = data.specs.dbms.get(case.dbms), _POINT_WORDS.get(row["type"])
    beside = ", ".join(
        f"{knob} = {format_value(dbms, knob, value_text(value))}"
        for knob, value in json.loads(row["beside"] or "{}").items()
    )
    return (
        annotate(format_code(row["knob"]), beside and Markup("with <code>{}</code>").format(beside)),
        f"{row['type']}: {meaning}" if meaning else row["type"],
        format_value(dbms, row["knob"], row["value"]),
        format_number(row["turn_ratio"]),
    )

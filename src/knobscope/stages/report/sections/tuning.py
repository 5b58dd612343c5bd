"""Section "Tuning": how fast tuners get how far with the first knobs of the ranking, and with all."""

import math
from dataclasses import dataclass
from statistics import median
from typing import cast

from markupsafe import Markup

from knobscope.figures import Figure, TuningCurve, draw_tuning, slug
from knobscope.specs import Case
from knobscope.stages.report.sections.fastest import list_inherited_risks, tell_cuts
from knobscope.stages.report.sections.html_table import CODE_WORDS, NUMBER, TEXT, WORDS, Cells, render_table
from knobscope.stages.report.sections.left_out import list_left_out
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.tables import CutColumns
from knobscope.text.formats import UNKNOWN, format_fold, format_number, format_share, list_names, plural

#: Share of the best performance, knobs and steps of the claim that is tested: Kanellis, Alagappan and Venkataraman,
#: "Too Many Knobs to Tune?", HotStorage 2020.
CLAIM_SHARE, CLAIM_SPEEDUP = 0.99, 5
_COLUMNS = (
    ("Knobs", TEXT),
    ("Seed", NUMBER),
    ("Found in run", NUMBER),
    ("Then", NUMBER),
    ("Measured again", NUMBER),
    ("Power cuts", WORDS),
    ("Changes from the default", CODE_WORDS),
)


@dataclass(frozen=True)
class CaseTuning:
    """Tuning of one case: `winners` is how the best configuration of each tuner did when it was measured again."""

    name: str
    sentences: list[str]
    figure: Figure
    winners: Markup


def build_tuning(data: StudyData) -> list[CaseTuning]:
    """Return the cases that were tuned, from view `tuning` and table `tuned`."""
    if not data.value("SELECT count(*) FROM trials"):
        return []
    return [tuning for case in data.measured_cases if (tuning := _tuned_case(data, case)) is not None]


def first_reaching(curve: list[float], goal: float) -> int | None:
    """Return the number of runs after which a curve (from trial 0 on) reaches the goal; None: it does not."""
    return next((trial for trial, value in enumerate(curve) if value >= goal), None)


def _tuned_case(data: StudyData, case: Case) -> CaseTuning | None:
    trials = data.of_case("tuning", case, "space, seed, trial")
    if not trials:
        return None
    tuned = data.of_case("tuned", case, "space, seed")
    planned = data.specs.study.tune.spaces if data.specs.study.tune else []
    spaces = sorted({row["space"] for row in trials}, key=lambda space: (space not in planned, space))
    order = [*(space for space in planned if space in spaces), *(space for space in spaces if space not in planned)]
    curves = [_curve(space, [row for row in trials if row["space"] == space]) for space in order]
    goal = CLAIM_SHARE * curves[-1].median[-1] if len(curves) > 1 else None
    summaries = [f"{curve.name}: {format_number(curve.median[-1], 3)}x" for curve in curves]
    return CaseTuning(
        name=name_case(case),
        sentences=[
            *_tell_left_out(data, case),
            *_compare(curves),
            *_confirmed(tuned),
            *_passed_over(trials),
            *_doubt(data, case),
        ],
        figure=Figure(
            name=slug("tuning", *case),
            title="Best throughput by number of runs",
            description=f"Median over the seeds after the last run, against the default: {', '.join(summaries)}.",
            draw=lambda width: draw_tuning(width, curves, goal),
            data=trials,
            caption="Thick: median of the seeds; thin: each seed.",
            wide=True,
        ),
        winners=render_table(_COLUMNS, [_row(data, row, trials) for row in tuned]),
    )


def _curve(space: str, rows: list[Row]) -> TuningCurve:
    seeds = [
        [1.0, *(row["best_ratio"] for row in rows if row["seed"] == seed)] for seed in sorted({r["seed"] for r in rows})
    ]
    knobs = rows[0]["knobs"]
    return TuningCurve(
        f"{space} ({plural(knobs, 'knob')})", [median(values) for values in zip(*seeds, strict=True)], seeds
    )


def _compare(curves: list[TuningCurve]) -> list[str]:
    """Say how the first space does against the last one, compared with what the literature claims."""
    if len(curves) < 2:
        return []
    few, many = curves[0], curves[-1]
    best = many.median[-1]
    goal = CLAIM_SHARE * best
    steps, all_steps = first_reaching(list(few.median), goal), first_reaching(list(many.median), goal)
    ratio = few.median[-1] / best
    reached = format_share(ratio) if steps is not None else f"{math.floor(1000 * ratio) / 10:g} %"  # rounded down
    comparison = f"{few.name} ends at {reached} of the best of {many.name}"
    if steps is None:
        comparison += f" and does not reach {format_share(CLAIM_SHARE)} of it."
    elif not steps or not all_steps:
        comparison += "; the default is already as good."
    else:
        fold = format_fold(math.log(max(steps, all_steps) / min(steps, all_steps)))
        fewer = "as many runs" if steps == all_steps else f"{fold} {'fewer' if steps < all_steps else 'more'} runs"
        comparison += (
            f" and reaches {format_share(CLAIM_SHARE)} of it after {plural(steps, 'run')}, {many.name} after "
            f"{all_steps}: {fewer}."
        )
    claim = (
        f"The claim in the literature (HotStorage 2020): {format_share(CLAIM_SHARE)} with five of thirty knobs, in "
        f"{CLAIM_SPEEDUP}x fewer steps."
    )
    return [comparison, claim]


def _tell_left_out(data: StudyData, case: Case) -> list[str]:
    """Say what tuners did not try."""
    left_out = [f"{knob} ({values})" for knob, values in list_left_out(data, case).items()]
    return [f"Values that risk committed data were left out: {list_names(left_out)}."] if left_out else []


def _doubt(data: StudyData, case: Case) -> list[str]:
    """Say when the ranking that chose the first knobs cannot be trusted."""
    trusted = data.value(
        "SELECT arg_max(trustworthy, coalesce(round, 0)) FROM fits WHERE dbms = ? AND device = ? AND workload = ?",
        *case,
    )
    return (
        ["The ranking that chose the first knobs cannot be trusted in this case; see above."]
        if trusted is False
        else []
    )


def _confirmed(tuned: list[Row]) -> list[str]:
    """Say how good the winners were when they were measured again."""
    spaces = dict.fromkeys(row["space"] for row in tuned)
    estimates_by_space = {
        space: [
            row["estimate"]
            for row in tuned
            if row["space"] == space and row["trial"] is not None and row["estimate"] is not None
        ]
        for space in spaces
    }
    winners = [
        f"{space} {format_fold(median(estimates))}" for space, estimates in estimates_by_space.items() if estimates
    ]
    without = [space for space in spaces if all(row["trial"] is None for row in tuned if row["space"] == space)]
    told = f"Measured again next to the default, the winners are (median of the seeds): {', '.join(winners)}."
    return [
        *([told] if winners else []),
        *(f"No configuration of {space} proved better than the default." for space in without),
    ]


def _passed_over(trials: list[Row]) -> list[str]:
    """Say that faster configurations did not win because they lost acknowledged rows."""
    count = len({trial["config_id"] for trial in trials if trial["cuts_lost"] and not trial["is_winner"]})
    what = f"{plural(count, 'faster configuration')} that lost acknowledged rows in power cuts did not win."
    return [what] if count else []


def _row(data: StudyData, row: Row, trials: list[Row]) -> Cells:
    own = [trial for trial in trials if (trial["space"], trial["seed"]) == (row["space"], row["seed"])]
    observed = next((trial["ratio"] for trial in own if trial["trial"] == row["trial"]), None)
    changes = _list_changes(data, row["config_id"])
    interval = ""
    if row["low"] is not None and row["trial"] is not None:
        interval = f" ({format_fold(row['low'])} to {format_fold(row['high'])})"
    return (
        row["space"],
        row["seed"],
        UNKNOWN if row["trial"] is None else str(row["trial"]),
        UNKNOWN if observed is None else format_fold(math.log(observed)),
        UNKNOWN if row["trial"] is None else format_fold(row["estimate"]) + interval,
        UNKNOWN if row["trial"] is None else _tell_risk(data, row, changes),
        ", ".join(f"{knob}={value}" for knob, value in changes) if row["config_id"] else "the default",
    )


def _tell_risk(data: StudyData, row: Row, changes: list[tuple[str, str]]) -> str:
    """Return what power cuts showed, or which changes risk committed data where the study allowed that."""
    if row["cuts"]:
        return tell_cuts(cast("CutColumns", row))
    dbms, changed = data.specs.dbms[row["dbms"]], [name for name, _ in changes]
    values = data.rows("SELECT knob, value FROM knob_values WHERE config_id = ?", row["config_id"])
    configuration = {
        value["knob"]: dbms.knobs[value["knob"]].read(value["value"]) for value in values if value["knob"] in dbms.knobs
    }
    if risks := dbms.list_risks(configuration, changed):
        return f"Risks committed data ({', '.join(risks)}); no power was cut"
    case = Case.of(row)
    if inherited := list_inherited_risks(data, case, configuration, changed):
        return f"The default configuration risks committed data itself ({', '.join(inherited)}); no power was cut"
    return tell_cuts(cast("CutColumns", row))


def _list_changes(data: StudyData, config_id: str | None) -> list[tuple[str, str]]:
    """Return what a configuration changes against the default one: knobs with their values."""
    rows = data.rows(
        """
        SELECT v.knob, v.value FROM knob_values v
        LEFT JOIN knob_values d ON d.knob = v.knob AND d.config_id = (
            SELECT any_value(config_id) FROM runs WHERE phase = 'tune' AND is_sentinel AND dbms = v.dbms)
        WHERE v.config_id = ? AND v.value IS DISTINCT FROM d.value ORDER BY v.knob
        """,
        config_id,
    )
    return [(row["knob"], row["value"]) for row in rows]

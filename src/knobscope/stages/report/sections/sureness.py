"""How certain the page is: one tile a reason, with what it would take to be called good."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from knobscope.specs import TPCDS, TPCH, Case
from knobscope.stages.detect import CONFOUNDED
from knobscope.stages.report.sections.guards import Controls
from knobscope.stages.report.sections.runs import run_noise
from knobscope.study_data.study import StudyData, name_case
from knobscope.text.formats import format_count, format_number, format_share, join_words, plural
from knobscope.watch.other_programs import NOTICEABLE_SHARE

#: Standard deviations of a run (natural-log ratios) below which noise is good, and fair.
_LITTLE_NOISE, _MUCH_NOISE = 0.05, 0.15
#: Operations of a run below which its speed is told: one more or less changes it by 1 %, and by 0.2 %.
_FEW_OPERATIONS, _ENOUGH_OPERATIONS = 100, 500


@dataclass(frozen=True)
class Sureness:
    """One reason to believe the page, or not.

    `level` is good, fair, poor, or empty where there is none; `good` says what is called good.
    """

    name: str
    value: str
    meaning: str
    level: str
    good: str = ""


def list_sureness(data: StudyData, controls: Controls | None) -> list[Sureness]:
    """Return the tiles of a study; those that have nothing to say are left out."""
    noises = [noise for case in data.measured_cases if (noise := run_noise(data, case)) is not None]
    drift = _drift(data, max(noises, default=0.0))
    tiles = (_noise(noises), _operations(data), drift, _others(data), _programs(data), _model(data), _watching(data))
    return [tile for group in (*tiles, _comparisons(data), _controls(controls)) for tile in group]


def _grade_noise(noise: float) -> str:
    return "good" if noise < _LITTLE_NOISE else "fair" if noise < _MUCH_NOISE else "poor"


def _noise(noises: list[float]) -> Iterator[Sureness]:
    if noises:
        worst = max(noises)
        which = "" if len(noises) == 1 else ", of the noisiest case"
        meaning = f"standard deviation of one run{which}"
        good = f"below {format_share(_LITTLE_NOISE)}"
        yield Sureness("Noise", f"± {format_share(math.expm1(worst))}", meaning, _grade_noise(worst), good)


def _operations(data: StudyData) -> Iterator[Sureness]:
    """Say where runs are so short that their speed hangs on single operations; suites of queries have few, and long."""
    rows = data.rows(
        """
        SELECT dbms, device, workload, median(operations) AS operations
        FROM runs WHERE status = 'ok' AND operations > 0
        GROUP BY ALL
        HAVING median(operations) < ?
        ORDER BY operations
        """,
        _ENOUGH_OPERATIONS,
    )
    load = data.specs.workloads
    timed = [row for row in rows if row["workload"] in load and load[row["workload"]].generator not in (TPCH, TPCDS)]
    if timed and not data.is_imported:
        fewest = timed[0]["operations"]
        case = name_case(Case.of(timed[0]))
        meaning = f"median of {case}, where one operation more or less is {format_share(1 / fewest)}"
        good = f"{_ENOUGH_OPERATIONS} or more: increase measure_s"
        level = "poor" if fewest < _FEW_OPERATIONS else "fair"
        yield Sureness("Operations of a run", format_count(fewest), meaning, level, good)


def _drift(data: StudyData, noise: float) -> Iterator[Sureness]:
    """Say in how many blocks the machine changed its speed; a change that noise can hide is not denied.

    Blocks without a default configuration to compare with, or with too few runs, say nothing about drift.
    """
    blocks = data.rows(
        "SELECT * FROM blocks WHERE sentinels > 0 AND (drift_p IS NOT NULL OR bend_p IS NOT NULL) "
        "AND NOT starts_with(coalesce(reason, ''), ?)",
        CONFOUNDED,
    )
    total = data.value("SELECT count(*) FROM blocks")
    if not total:
        return
    if not blocks:
        yield Sureness("Drift", "not known", "no block has enough runs to tell a change of speed from noise", "")
        return
    corrected = sum(row["treatment"] == "position" for row in blocks)
    dropped = sum(row["treatment"] == "dropped" for row in blocks)
    details = [f"{corrected} corrected"] * bool(corrected) + [f"{dropped} excluded"] * bool(dropped)
    details += [f"{plural(total - len(blocks), 'more block')} cannot be judged"] * (total > len(blocks))
    meaning = "blocks in which the machine changed its speed" + (f" ({join_words(details)})" if details else "")
    level, good = ("poor" if dropped else "fair" if corrected else _grade_noise(noise)), "none"
    if level != "good" and not dropped and not corrected:
        good = f"none, and little noise: ± {format_share(math.expm1(noise))} hides smaller changes"
    yield Sureness("Drift", f"{corrected + dropped} of {len(blocks)}", meaning, level, good)


def _others(data: StudyData) -> Iterator[Sureness]:
    """Say how many runs shared the machine with another measurement; nothing where none did."""
    row = data.rows(
        "SELECT count(*) FILTER (other_measurements > 0) AS shared, count(*) AS runs FROM runs WHERE status = 'ok'"
    )[0]
    if row["shared"]:
        value = f"{format_count(row['shared'])} of {format_count(row['runs'])}"
        meaning = "runs shared the machine with another process of knobscope: each may have slowed the other down"
        yield Sureness("Other measurements", value, meaning, "poor", "none")


def _programs(data: StudyData) -> Iterator[Sureness]:
    """Say in how many runs programs outside the study kept processors busy; nothing where none did."""
    row = data.rows(
        """
        SELECT count(*) AS runs, count(*) FILTER (other_cpu_share >= ?) AS disturbed, max(other_cpu_share) AS most,
            arg_max(other_programs, other_cpu_share) AS programs
        FROM runs WHERE status = 'ok'
        """,
        NOTICEABLE_SHARE,
    )[0]
    if row["disturbed"]:
        value = f"{format_count(row['disturbed'])} of {format_count(row['runs'])}"
        meaning = (
            f"runs in which other programs took {format_share(NOTICEABLE_SHARE)} or more of the processors' time, up "
            f"to {format_share(row['most'])}" + (f" ({row['programs']})" if row["programs"] else "")
        )
        yield Sureness("Other programs", value, meaning, "poor", "none")


def _model(data: StudyData) -> Iterator[Sureness]:
    fits = data.rows(
        "SELECT * FROM fits QUALIFY row_number() OVER (PARTITION BY dbms, device, workload ORDER BY round DESC) = 1"
    )
    if not fits:
        return
    score = min((fit["holdout_r2"] for fit in fits if fit["holdout_r2"] is not None), default=None)
    shown = format_number(score, 2) if score is not None else "none"
    trusted = all(fit["trustworthy"] for fit in fits)
    if prior := fits[0]["prior"]:
        meaning = f"R² of the prior {prior}, which replaced screening, on runs that it had not seen"
        yield Sureness("Model", shown, meaning, "good" if trusted else "poor", "a ranking that can be trusted")
        return
    threshold = data.specs.study.screening.threshold
    lowest = min((fit["r2_min"] for fit in fits if fit["r2_min"] is not None), default=None)
    level = "good" if lowest is not None and lowest >= threshold else "fair" if trusted else "poor"
    # Rounded down: what misses the threshold must not look as if it met it.
    worst = f" ({format_number(math.floor(1000 * lowest) / 1000, 3)} in the worst split)" if lowest is not None else ""
    meaning = f"R² of the screening model on runs that it has not seen{worst}"
    if level == "fair":
        meaning += ", so trust which knobs stand out more than the size of their effects"
    yield Sureness("Model", shown, meaning, level, f"{threshold:g} in every split")


def _watching(data: StudyData) -> Iterator[Sureness]:
    """Say how much of the study the block-level rules could see."""
    row = data.rows(
        """
        SELECT count(*) AS runs,
            count(*) FILTER (monitor = 'bpf' AND coalesce(lost_events, 0) = 0) AS whole,
            count(*) FILTER (monitor = 'bpf' AND lost_events IS NULL) AS untold,
            median(unattributed_share) FILTER (monitor = 'bpf') AS unknown
        FROM runs WHERE status = 'ok'
        """
    )[0]
    if not row["runs"]:
        return
    share, unknown = row["whole"] / row["runs"], row["unknown"] or 0.0
    if data.is_imported and row["untold"] == row["whole"]:
        meaning = "of the imported runs come with I/O counts" + ", of which some may be lost" * bool(row["whole"])
        yield Sureness("Block layer", format_share(share), meaning, "")
        return
    level = "good" if share >= 0.95 and unknown < 0.05 else "fair" if share > 0.5 and unknown < 0.5 else "poor"
    meaning = "of the runs were monitored there without losing an event"
    if row["unknown"] is not None:
        meaning += f", with {format_share(unknown)} of their reads and writes of unknown origin (median)"
    yield Sureness("Block layer", format_share(share), meaning, level, "95 %, and less than 5 % of unknown origin")


def _comparisons(data: StudyData) -> Iterator[Sureness]:
    thresholds = data.specs.study.thresholds
    compared = data.value("SELECT count(*) FROM effects WHERE metric = 'throughput_ops' AND q_value IS NOT NULL")
    if compared:
        tested = "effect was" if compared == 1 else "effects were"
        meaning = (
            f"{tested} tested, and about {format_share(thresholds.fdr)} of those marked clear may be false "
            f"(changes below {format_share(thresholds.min_effect)} are never marked)"
        )
        yield Sureness("Comparisons", f"{compared:,}", meaning, "")


def _controls(controls: Controls | None) -> Iterator[Sureness]:
    if controls is not None:
        alarms = format_count(controls.alarms) if controls.alarms else "none"
        predicate = "appears as a finding" if controls.alarms < 2 else "appear as findings"
        compared = plural(controls.comparisons, "comparison")
        subject = "knob" if len(controls.knobs) == 1 else "knobs"
        meaning = f"{subject} that cannot change anything ({controls.names}): {alarms} of {compared} {predicate}"
        level = "poor" if controls.alarms else "good"
        yield Sureness("Negative controls", format_count(len(controls.knobs)), meaning, level, "no finding")

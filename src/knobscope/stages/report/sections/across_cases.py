"""What differs from case to case: effects of the same values side by side, and ranks that drift."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from knobscope.figures import Figure, RankLine, Tile, TileRow, draw_ranks, draw_tiles, slug
from knobscope.stages.report.sections.effects import name_reference, read_effect
from knobscope.study_data.study import Row, Rows, StudyData
from knobscope.text.formats import describe_change, format_fold, format_value, join_words, plural

#: More columns than this would not fit a screen.
_MOST_CASES = 8


def effects_by_case(data: StudyData) -> list[Figure]:
    """Return a figure per DBMS and workload on several devices, and per DBMS and device with several workloads.

    A row is a value of a knob, a column a device or workload, a tile the effect on throughput.
    """
    return [
        figure
        for changed, fixed_column in (("device", "workload"), ("workload", "device"))
        for figure in _effect_figures(data, changed, fixed_column)
    ]


def _groups(data: StudyData, changed: str, fixed_column: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (DBMS, what is the same, what differs) of measured cases of which one is shown."""
    shown = {(case.dbms, getattr(case, fixed_column)) for case in data.shown_cases}
    cases = sorted(data.measured_cases, key=lambda case: (case.dbms, getattr(case, fixed_column)))
    for (dbms, fixed), members in groupby(cases, key=lambda case: (case.dbms, getattr(case, fixed_column))):
        if (dbms, fixed) in shown:
            yield dbms, fixed, [getattr(case, changed) for case in members]


def _effect_figures(data: StudyData, changed: str, fixed_column: str) -> Iterator[Figure]:
    for dbms, fixed, _ in _groups(data, changed, fixed_column):
        rows = data.rows(
            f"""
            SELECT dbms, device, workload, tier_rank, metric, knob, value, baseline, beside, estimate, low, high,
                q_value, durability
            FROM effects
            WHERE metric = 'throughput_ops' AND estimate IS NOT NULL AND dbms = ? AND {fixed_column} = ?
            ORDER BY knob, step NULLS FIRST, try_cast(value AS DOUBLE), value, tier_rank, {changed}
            """,  # noqa: S608 - names of ours
            dbms, fixed,
        )  # fmt: skip
        every = _columns(rows, changed)
        if len(every) > 1:
            yield _effect_figure(data, dbms, fixed, changed, every, rows)


def _columns(rows: list[Row], changed: str) -> list[str]:
    """Return devices from slow to fast, or workloads by name; those with an effect."""
    order = {row[changed]: (row["tier_rank"] or 0 if changed == "device" else 0, row[changed]) for row in rows}
    return sorted(order, key=lambda name: order[name])


def _effect_figure(data: StudyData, dbms: str, fixed: str, changed: str, every: list[str], rows: Rows) -> Figure:
    columns = every[:_MOST_CASES]
    drawn = [row for row in rows if row[changed] in columns]
    spec = data.specs.dbms.get(dbms)
    cells: dict[tuple[str, str, str], dict[str, Row]] = {}
    strength: dict[str, float] = {}
    for row in drawn:
        cells.setdefault((row["knob"], row["beside"] or "", row["value"]), {})[row[changed]] = row
        strength[row["knob"]] = max(strength.get(row["knob"], 0.0), abs(row["estimate"]))
    ordered = sorted(cells.items(), key=lambda item: (-strength[item[0][0]], *item[0][:2]))
    lines = [
        TileRow(
            knob,
            name_reference(data, next(iter(by_column.values()))),
            format_value(spec, knob, value) + (" ◆" if any(row["durability"] for row in by_column.values()) else ""),
            [_effect_tile(data, by_column[name], name) if name in by_column else None for name in columns],
        )
        for (knob, _, value), by_column in ordered
    ]
    turned = [
        f"{knob} = {format_value(spec, knob, value)}"
        for (knob, _, value), by_column in ordered
        if _turns(data, by_column)
    ]
    summary = (
        f"faster on one {changed} and slower on another: {join_words(turned)}"
        if turned
        else f"no value is faster on one {changed} and slower on another"
    )
    return Figure(
        name=slug("effects by", changed, dbms, fixed),
        title=f"{dbms} · {fixed}: effects {changed} by {changed}",
        description=f"Change of throughput by value of a knob and {changed}, against the default configuration on the "
        f"same {changed}: {', '.join(columns)}. Among clear effects, {summary}.",
        draw=lambda width: draw_tiles(width, columns, lines),
        data=rows,
        caption="Throughput against the default; tiles without colour do not stand out from the noise. "
        f"{summary[:1].upper()}{summary[1:]}.{_tell_omitted(every, columns, changed)}",
    )


def _tell_omitted(every: Sequence[str], shown: Sequence[str], changed: str) -> str:
    left = len(every) - len(shown)
    return f" {plural(left, f'more {changed}')} {'is' if left == 1 else 'are'} not shown." if left else ""


def _effect_tile(data: StudyData, row: Row, name: str) -> Tile:
    effect = read_effect(data, row)
    return Tile(
        effect.estimate,
        format_fold(effect.estimate),
        f"{name}: {describe_change(effect.estimate)} ({effect.describe_interval()})",
        effect.clear,
    )


def _turns(data: StudyData, by_column: dict[str, Row]) -> bool:
    """Whether a value clearly helps in one case and clearly harms in another."""
    clear = [effect.estimate for row in by_column.values() if (effect := read_effect(data, row)).clear]
    return bool(clear) and min(clear) < 0 < max(clear)


def ranks_by_case(data: StudyData) -> list[Figure]:
    """Return a figure per DBMS and workload (device) with rankings on several devices (for several workloads)."""
    return [
        figure
        for changed, fixed_column in (("device", "workload"), ("workload", "device"))
        for figure in _rank_figures(data, changed, fixed_column)
    ]


def _rank_figures(data: StudyData, changed: str, fixed_column: str) -> Iterator[Figure]:
    for dbms, fixed, names in _groups(data, changed, fixed_column):
        rows = data.rows(
            f"""
            WITH ranked AS (
                SELECT {changed}, knob, rank, above_noise FROM importance
                WHERE dbms = ? AND {fixed_column} = ?
                QUALIFY round IS NOT DISTINCT FROM max(round) OVER (PARTITION BY {changed})
            ), drifting AS (
                SELECT DISTINCT knob FROM rank_drift WHERE dbms = ? AND changed = ? AND same = ? AND drifts
            )
            SELECT *, knob IN (FROM drifting) AS drifts FROM ranked ORDER BY knob, {changed}
            """,  # noqa: S608 - names of ours
            dbms, fixed, dbms, changed, fixed,
        )  # fmt: skip
        ranked = [name for name in names if any(row[changed] == name for row in rows)]
        is_known = bool(
            data.value(
                "SELECT bool_or(trustworthy) FROM rank_overlap WHERE dbms = ? AND changed = ? AND same = ?",
                dbms,
                changed,
                fixed,
            )
        )
        if len(ranked) > 1:
            yield _rank_figure(dbms, fixed, changed, ranked, rows, is_known=is_known)


def _rank_figure(dbms: str, fixed: str, changed: str, every: list[str], rows: Rows, *, is_known: bool) -> Figure:
    columns = every[:_MOST_CASES]
    drawn = [row for row in rows if row[changed] in columns]
    by_knob: dict[str, dict[str, Row]] = {}
    for row in drawn:
        by_knob.setdefault(row["knob"], {})[row[changed]] = row
    lines = [
        RankLine(
            knob,
            [by_column[name]["rank"] if name in by_column else None for name in columns],
            [bool(name in by_column and by_column[name]["above_noise"]) for name in columns],
            any(row["drifts"] for row in by_column.values()),
        )
        for knob, by_column in by_knob.items()
    ]
    first = "; ".join(
        f"{name}: {', '.join(row['knob'] for row in _in_order(rows, changed, name)[:5])}" for name in columns
    )
    drifting = [line.knob for line in lines if line.drifts]
    summary = f"the rank of {join_words(drifting)} differs" if drifting else "no rank differs"
    summary = f"Beyond chance, {summary} from one {changed} to another"
    if not is_known:
        summary = "Which differences are beyond chance is not known: no two of these rankings can be trusted"
    return Figure(
        name=slug("ranks by", changed, dbms, fixed),
        title=f"{dbms} · {fixed}: ranks {changed} by {changed}",
        description=f"Rank of each knob by {changed}; 1 matters most. First knobs: {first}. {summary}.",
        draw=lambda width: draw_ranks(width, columns, lines),
        data=rows,
        caption=f"1 matters most. {summary}.{_tell_omitted(every, columns, changed)}",
    )


def _in_order(rows: list[Row], changed: str, name: str) -> list[Row]:
    return sorted((row for row in rows if row[changed] == name), key=lambda row: row["rank"])

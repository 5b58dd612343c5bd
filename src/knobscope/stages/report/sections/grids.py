"""The first knobs of a ranking as a grid of tiles: what was measured where two of them meet."""

import math
from collections.abc import Sequence

from knobscope.figures import Figure, Tile, TileRow, draw_tiles, slug
from knobscope.specs import Case
from knobscope.study_data.study import Row, Rows, StudyData
from knobscope.tables.responses import RESPONSES, Response
from knobscope.text.formats import describe_change, format_fold, format_value, plural

#: A third knob makes tiles of tiles where there are at least so many runs per tile.
_RUNS_PER_TILE = 1.0
_MOST_VALUES = 8
_MOST_TILES = 60


def grid_figure(data: StudyData, case: Case, ranking: Sequence[Row]) -> Figure | None:
    """Return the screening runs by the values of the first two knobs of a ranking, and of the third if runs suffice.

    A tile is the geometric mean of the response against the default configuration; all other knobs change too, as
    screening changes them. The form is that of Hui et al. (SIGMOD 2024), figure 6, whose tiles hold every setting of a
    full grid; here some are empty. None with fewer than two knobs of a few values each, or without a default run.
    """
    knobs = [row["knob"] for row in sorted(ranking, key=lambda row: row["rank"])]
    levels = _read_levels(data, case)
    usable = [knob for knob in knobs[:3] if 1 < len(levels.get(knob, [])) <= _MOST_VALUES]
    if len(usable) < 2:
        return None
    third = usable[2] if len(usable) > 2 else ""
    rows = _read_tiles(data, case, usable[0], usable[1], third)
    tiles = math.prod(len(levels[knob]) for knob in usable)
    if third and (sum(row["runs"] for row in rows) < _RUNS_PER_TILE * tiles or tiles > _MOST_TILES):
        third = ""
        rows = _read_tiles(data, case, usable[0], usable[1], third)
    is_comparable = any(row["estimate"] is not None for row in rows)
    return _draw_grid(data, case, [*usable[:2], third], levels, rows) if is_comparable else None


def _read_levels(data: StudyData, case: Case) -> dict[str, list[str]]:
    """Return the values of each knob in the screening runs that succeeded, in their order."""
    rows = data.rows(
        """
        SELECT DISTINCT knob, value, try_cast(value AS DOUBLE) AS number
        FROM runs JOIN knob_values USING (config_id, dbms)
        WHERE status = 'ok' AND phase = 'screen' AND dbms = ? AND device = ? AND workload = ?
        ORDER BY knob, number NULLS FIRST, value
        """,
        *case,
    )
    levels: dict[str, list[str]] = {}
    for row in rows:
        levels.setdefault(row["knob"], []).append(row["value"])
    return levels


def _read_tiles(data: StudyData, case: Case, across: str, down: str, outer: str) -> Rows:
    """Return a row per tile with the natural-log ratio to the default; `outer_value` is empty without a third knob."""
    response = RESPONSES[data.specs.study.screening.response]
    return data.rows(
        f"""
        WITH settings AS (
            SELECT config_id, any_value(value) FILTER (knob = ?) AS across_value,
                any_value(value) FILTER (knob = ?) AS down_value,
                coalesce(any_value(value) FILTER (knob = ?), '') AS outer_value
            FROM knob_values WHERE dbms = ? GROUP BY config_id
        ), measured AS (
            SELECT *, ln({response.sql}) AS response FROM runs JOIN settings USING (config_id)
            WHERE status = 'ok' AND phase = 'screen' AND {response.column} > 0
                AND dbms = ? AND device = ? AND workload = ?
        )
        SELECT across_value, down_value, outer_value, count(*) AS runs, bool_or(is_sentinel) AS is_default,
            avg(response) - (SELECT avg(response) FROM measured WHERE is_sentinel) AS estimate
        FROM measured GROUP BY ALL ORDER BY ALL
        """,  # noqa: S608 - names of ours
        across, down, outer, case.dbms, *case,
    )  # fmt: skip


def _draw_grid(data: StudyData, case: Case, knobs: list[str], levels: dict[str, list[str]], rows: Rows) -> Figure:
    spec, response = data.specs.dbms.get(case.dbms), RESPONSES[data.specs.study.screening.response]
    across, down, outer = knobs
    cells = {(row["across_value"], row["down_value"], row["outer_value"]): row for row in rows}
    lines = [
        TileRow(
            f"{outer} = {format_value(spec, outer, outer_value)}" if outer else down,
            f"by {down}" if outer else "",
            format_value(spec, down, value),
            [_tile(cells.get((column, value, outer_value)), response) for column in levels[across]],
        )
        for outer_value in (levels[outer] if outer else [""])
        for value in levels[down]
    ]
    columns = [format_value(spec, across, value) for value in levels[across]]
    fastest = max((row for row in rows if row["estimate"] is not None), key=lambda row: row["estimate"], default=None)
    note = ""
    if fastest is not None:
        pairs = zip(knobs, (fastest[f"{side}_value"] for side in ("across", "down", "outer")), strict=True)
        setting = ", ".join(f"{knob} = {format_value(spec, knob, value)}" for knob, value in pairs if knob)
        note = f" Best: {setting}."
    shown = f"{across} and {down}" + (f", by {outer}" if outer else "")
    return Figure(
        name=slug("grid", *case),
        title=f"Combinations of the first knobs: {shown}",
        description=f"Mean {response.words} of the screening runs against the default configuration, by {shown}.{note}",
        draw=lambda width: draw_tiles(width, columns, lines, across, (response.less, response.more)),
        data=rows,
        caption=f"Means of {plural(sum(row['runs'] for row in rows), 'screening run')} against the default (framed); "
        "the other knobs change too.",
    )


def _tile(row: Row | None, response: Response) -> Tile | None:
    if row is None or row["estimate"] is None:
        return None
    change = response.sign * row["estimate"]
    tip = f"{describe_change(change, *response.words_of_column)} in {plural(row['runs'], 'run')}"
    return Tile(row["estimate"], format_fold(change), tip, framed=row["is_default"])

"""Names a tuner's winner as the fastest configuration of a case where it surely is, and nothing measured again is."""

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from knobscope.specs import Case, StudySpecs
from knobscope.stages.detect.fastest import pick_fastest
from knobscope.stages.plan import case_space
from knobscope.tables import CutColumns, FastestRow, fetch_rows, select_columns

if TYPE_CHECKING:
    import duckdb

#: Winners of a case that were surely faster when they were measured again. None loses more than the default does.
_WINNERS = """
    SELECT w.*, p.configuration
    FROM tuned w
    JOIN (SELECT DISTINCT config_id, configuration FROM plan WHERE phase = 'tune') p USING (config_id)
    WHERE (dbms, device, workload) = ($dbms, $device, $workload) AND low > 0
    ORDER BY low DESC, config_id
"""


def name_fastest(connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> list[FastestRow]:
    """Return the rows of table `fastest`, as picked; winners come later, when it is known what measured again.

    In a study that measures nothing again they come at once.
    """
    picked = [*pick_fastest(connection, specs)]
    return picked if specs.study.remeasure.findings else complete_fastest(picked, (), list_winners(connection, specs))


def complete_fastest(
    picked: Iterable[FastestRow], measured: Iterable[FastestRow], winners: Iterable[FastestRow]
) -> list[FastestRow]:
    """Return the rows of table `fastest`: as picked, with what new pairs say, or a tuner's winner that is faster.

    Of the winners of a case the first one counts. A configuration that was not measured again has no figure to compare.
    """
    rows = {_key_of(row): row for row in picked}
    for row in measured:
        rows[_key_of(row)] |= row
    for key, winner in {_key_of(winner): winner for winner in reversed([*winners])}.items():
        known = rows.get(key, FastestRow())
        if (known.get("again_low") or 0.0) <= 0 or (winner["again_low"] or 0.0) > (known["again_high"] or 0.0):
            rows[key] = winner
    return [*rows.values()]


def list_winners(connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> Iterator[FastestRow]:
    """Yield the winners of tuners that table `fastest` may name, the fastest of a case first."""
    for case in specs.cases:
        names: FastestRow = {"dbms": case.dbms, "device": case.device, "workload": case.workload}
        default = case_space(specs, case).default
        for row in fetch_rows(connection.execute(_WINNERS, names)):
            configuration = json.loads(row["configuration"])
            changes = {name: value for name, value in configuration.items() if value != default.get(name)}
            yield {
                **names,
                **select_columns(CutColumns, CutColumns.__annotations__, row),
                "risk": "any" if specs.dbms[case.dbms].list_risks(configuration, changes) else "none",
                "changes": json.dumps(changes),
                "configuration": row["configuration"],
                "runs": row["runs"],
                "tuner": row["space"],
                "pairs": row["runs"],
                "again": row["estimate"],
                "again_low": row["low"],
                "again_high": row["high"],
            }


def _key_of(row: FastestRow) -> tuple[str, ...]:
    return *Case.of(row), row["risk"]

"""What new runs say of the fastest configurations: pairs with the default, power cuts, and the winners of tuners."""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from knobscope.specs import Case, StudySpecs
from knobscope.stages.measure import cut_case, open_cutter
from knobscope.stages.plan import case_space
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.statistics.looks import SIGNIFICANCE
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


def list_fastest(specs: StudySpecs, answers: Sequence[Answer], folder: Path) -> list[FastestRow]:
    """Return what is now known of the fastest configurations, for table `fastest`: all but what picked them.

    Those that are called safe have their power cut, with what that writes in a folder.
    """
    rows = [(answer.question, _tell_pairs(answer)) for answer in answers if answer.question.risk is not None]
    called_safe = [(question, row) for question, row in rows if question.risk == "none"]
    if called_safe and specs.study.remeasure.cuts:
        with open_cutter(folder) as cutter:
            for question, row in called_safe:
                print(f"remeasure: power cuts of the fastest safe configuration of {question.case}", file=sys.stderr)
                configurations = question.configuration, question.reference
                cut = cut_case(specs, question.case, *configurations, specs.study.remeasure.cuts, cutter)
                row.update(cast("FastestRow", cut))
    return [row for _, row in rows]


def _tell_pairs(answer: Answer) -> FastestRow:
    case, risk, repeated_effect = answer.question.case, answer.question.risk, answer.repeated_effect
    row: FastestRow = {"dbms": case.dbms, "device": case.device, "workload": case.workload, "risk": str(risk)}
    row["pairs"] = answer.pairs.get(ITSELF, 0)
    if repeated_effect is not None:
        low, high = repeated_effect.interval(SIGNIFICANCE)
        row |= {"again": repeated_effect.mean, "again_low": low, "again_high": high}
    return row


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

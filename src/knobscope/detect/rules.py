"""Runs mismatch rules: one SQL file each, one query, whose rows are findings.

A rule reads the study's database and the thresholds of the study as variables: getvariable('fdr'), 'min_effect',
'busy_share' and 'tier_gap'. What the rules before it found is its table `earlier_findings`. It returns the columns of
table `findings` without confirmed and confirmation.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.errors import UserError
from knobscope.specs.study import RuleSettings
from knobscope.tables import TABLES

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["FINDING_COLUMNS", "VERDICTS", "run_rules"]

VERDICTS = ("mismatch", "none", "insufficient")
_ABOUT_OTHERS = ("cross_check",)
#: What a rule returns.
FINDING_COLUMNS = [name for name in TABLES["findings"] if name not in ("confirmed", "confirmation")]


def run_rules(
    connection: "duckdb.DuckDBPyConnection", rules_dir: Path, settings: RuleSettings, names: Sequence[str]
) -> "pd.DataFrame":
    """Return the findings of the named rules, in this order; mismatches of a rule come first, the costliest on top.

    A rule about the findings of others (`cross_check`) is run after them, whatever its place.
    Raises UserError for a rule that is missing, is no valid query, or returns something else than findings.
    """
    import pandas as pd

    for name, value in settings.model_dump().items():
        connection.execute(f"SET VARIABLE {name} = ?", [float(value)])
    columns = ", ".join(f'"{name}" {TABLES["findings"][name]}' for name in FINDING_COLUMNS)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE earlier_findings ({columns})")
    findings = {}
    for name in sorted(names, key=lambda name: name in _ABOUT_OTHERS):
        findings[name] = _run_rule(connection, rules_dir, name)
        connection.register("found", findings[name])
        connection.execute("INSERT INTO earlier_findings BY NAME FROM found")
        connection.unregister("found")
    ordered = [findings[name] for name in names]
    return pd.concat(ordered, ignore_index=True) if ordered else pd.DataFrame(columns=FINDING_COLUMNS)


def _run_rule(connection: "duckdb.DuckDBPyConnection", rules_dir: Path, name: str) -> "pd.DataFrame":
    import duckdb

    path = rules_dir / f"{name}.sql"
    if not path.is_file():
        have = ", ".join(sorted(other.stem for other in rules_dir.glob("*.sql"))) or "none"
        raise UserError(f"no mismatch rule {name!r} in {rules_dir}; there are: {have}")
    try:
        rows = connection.execute(path.read_text(encoding="utf-8")).df()
    except duckdb.Error as error:
        raise UserError(f"{path} is no valid query: {error}") from error
    _check(path, name, rows)
    order = rows.assign(verdict=rows["verdict"].map(VERDICTS.index), penalty=-rows["penalty"].astype(float))
    keys = ["verdict", "penalty", "dbms", "device", "workload", "knob", "value"]
    return rows.loc[order.sort_values(keys, kind="stable").index, FINDING_COLUMNS]


def _check(path: Path, name: str, rows: "pd.DataFrame") -> None:
    if set(rows.columns) != set(FINDING_COLUMNS):
        raise UserError(f"{path} returns columns {', '.join(rows.columns)}; expected {', '.join(FINDING_COLUMNS)}")
    wrong = [verdict for verdict in rows["verdict"].unique() if verdict not in VERDICTS]
    if wrong:
        raise UserError(f"{path} returns verdict {wrong[0]!r}; expected one of {', '.join(VERDICTS)}")
    if (rows["rule"] != name).any():
        raise UserError(f"{path} returns findings of rule {rows['rule'].iloc[0]!r}; expected {name!r}, its file's name")
    if rows["sentence"].isna().any():
        raise UserError(f"{path} returns a finding without a sentence; a NULL in it makes the whole sentence NULL")

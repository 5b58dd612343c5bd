"""Is it worth while to look where `cross_check` says? Its pointers, against what the DBMS it points to then shows.

Run `python benchmarks/cross_check.py FOLDER [--cases benchmarks/verdicts/cases.jsonl]`, where `verdicts.py` measured
its studies in FOLDER. Per device and DBMS, the findings of all other DBMSs on that device are put before the rule, and
the DBMS itself as one of which nothing was varied. A case is a mechanism of which its study did vary knobs: the rule is
right to point to it where one of these knobs has an effect for which flushes or units are to blame, by the what-if
devices (docs/evidence/verdicts.md). Beside it stands the advice to look at every mechanism that is at fault anywhere.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

import duckdb
from scores import Score, print_table

from knobscope.specs import SHIPPED_RULES

#: Rules whose truth what-if devices tell, and that name what a mechanism is at fault for.
TOLD = ("flush", "io_size")
_TABLES = """
    CREATE TABLE earlier_findings (rule VARCHAR, dbms VARCHAR, device VARCHAR, workload VARCHAR, knob VARCHAR,
        value VARCHAR, penalty DOUBLE, verdict VARCHAR, confirmed VARCHAR);
    CREATE TABLE knobs (dbms VARCHAR, knob VARCHAR, mechanism VARCHAR);
    CREATE TABLE cases (dbms VARCHAR, device VARCHAR, workload VARCHAR);
    CREATE TABLE effects (dbms VARCHAR, device VARCHAR, workload VARCHAR, knob VARCHAR);
    CREATE TABLE importance (dbms VARCHAR, device VARCHAR, workload VARCHAR, knob VARCHAR, round INTEGER);
"""
Mechanism = tuple[str, str, str]  # DBMS, device, mechanism


def main() -> None:
    """Print the score, and each pointer that leads nowhere."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cases", type=Path, default=Path(__file__).parent / "verdicts/cases.jsonl")
    args = parser.parse_args()
    studies = read_studies(args.folder)
    truth = read_truth(args.cases, studies)
    anywhere = {mechanism for (_, _, mechanism), is_true in truth.items() if is_true}
    score = Score()
    for (dbms, device, mechanism), is_true in sorted(truth.items()):
        if len([case for case in studies if case[1] == device]) < 2:
            continue
        pointed = mechanism in point(studies, dbms, device)
        if score.add(pointed, mechanism in anywhere, is_true):
            print(f"{dbms} on {device}: {mechanism}: {'pointed to, and not at fault' if pointed else 'missed'}")
    print_table({"one DBMS left out": {"cross_check": score}})


def read_studies(folder: Path) -> dict[tuple[str, str], Path]:
    """Return the databases of all studies of DBMSs, by DBMS and device; programs (fio) are none."""
    databases = {}
    for file in sorted(folder.glob("results/verdicts-*/study.duckdb")):
        with duckdb.connect(str(file), read_only=True) as connection:
            (case,) = connection.execute("SELECT DISTINCT dbms, device FROM cases").fetchall()
        if case[0] != "fio":
            databases[case] = file
    return databases


def read_truth(cases: Path, studies: dict[tuple[str, str], Path]) -> dict[Mechanism, bool | None]:
    """Return by DBMS, device and mechanism whether flushes or units are to blame for an effect of one of its knobs."""
    verdicts: dict[Mechanism, list[bool | None]] = defaultdict(list)
    mechanisms = {case: read_mechanisms(file) for case, file in studies.items()}
    for line in cases.read_text().splitlines():
        row = json.loads(line)
        case = (row["study"], row["device"])
        if case not in studies or row["knob"] is None:
            continue
        mechanism = mechanisms[case][row["knob"]]
        if mechanism != "other":
            verdicts[(*case, mechanism)] += [row["truth"][rule] for rule in TOLD]
    return {key: True if True in votes else None if None in votes else False for key, votes in verdicts.items()}


def read_mechanisms(file: Path) -> dict[str, str]:
    """Return the mechanism of each knob of a study."""
    with duckdb.connect(str(file), read_only=True) as connection:
        return dict(connection.execute("SELECT knob, mechanism FROM knobs").fetchall())


def point(studies: dict[tuple[str, str], Path], dbms: str, device: str) -> set[str]:
    """Return the mechanisms to which the rule points in a DBMS of which nothing was varied on this device."""
    with duckdb.connect() as connection:
        connection.execute(_TABLES)
        for (source_dbms, place), file in studies.items():
            if place != device:
                continue
            connection.execute(f"ATTACH '{file}' AS study (READ_ONLY)")
            tables = ("knobs", "cases") if source_dbms == dbms else ("knobs", "cases", "earlier_findings", "effects")
            for table in tables:
                source = "findings" if table == "earlier_findings" else table
                columns = [row[0] for row in connection.execute(f"DESCRIBE {table}").fetchall()]
                connection.execute(f"INSERT INTO {table} SELECT {', '.join(columns)} FROM study.{source}")  # noqa: S608
            connection.execute("DETACH study")
        rows = connection.execute((SHIPPED_RULES / "cross_check/rule.sql").read_text()).df()
    return {
        row["evidence"]["mechanism"]
        for row in rows.to_dict("records")
        if row["dbms"] == dbms and row["evidence"]["state"] == "not_tested"
    }


if __name__ == "__main__":
    main()

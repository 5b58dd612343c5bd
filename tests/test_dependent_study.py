"""A knob that counts beside another one only, in a real study: checkpoints of SQLite, which a write-ahead log has."""

from pathlib import Path

import pytest
import studies

pytestmark = pytest.mark.real


def test_a_dependent_knob_is_measured_where_it_counts(finished_small: Path) -> None:
    told = (finished_small / "told.txt").read_text()
    assert "sqlite: wal_autocheckpoint = 1 is swept with journal_mode = wal" in told
    effect = studies.query(
        finished_small,
        "small",
        "SELECT beside, baseline, blocks FROM effects WHERE metric = 'throughput_ops' AND knob = 'wal_autocheckpoint'",
    )
    assert effect == [('{"journal_mode":"wal"}', "1000", 2)]
    flushes = studies.query(
        finished_small,
        "small",
        "SELECT side, avg(flushes_per_op) FROM runs_behind b JOIN run_metrics USING (run_id) "
        "WHERE knob = 'wal_autocheckpoint' GROUP BY side",
    )
    assert dict(flushes)["value"] > dict(flushes)["default"], "each commit copies its pages into the database"
    in_force = studies.query(
        finished_small,
        "small",
        "SELECT DISTINCT side, e.knob, e.effective FROM runs_behind b JOIN effective_values e USING (run_id) "
        "WHERE b.knob = 'wal_autocheckpoint' AND e.knob IN ('journal_mode', 'wal_autocheckpoint') ORDER BY ALL",
    )
    assert in_force == [
        ("default", "journal_mode", "wal"),
        ("default", "wal_autocheckpoint", "1000"),
        ("value", "journal_mode", "wal"),
        ("value", "wal_autocheckpoint", "1"),
    ]

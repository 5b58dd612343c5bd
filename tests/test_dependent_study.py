"""A real study of a knob that counts beside another one only: checkpoints of SQLite, which a write-ahead log has."""

from pathlib import Path

import pytest
import studies

pytestmark = [pytest.mark.real, pytest.mark.long(minutes=2)]

STUDY = """
name: beside
description: what wal_autocheckpoint does beside journal_mode wal
dbms: [sqlite]
devices: [here]
workloads:
  ycsb-a: {records: 300, threads: 1, warmup_s: 0.2, measure_s: 0.8}
knobs:
  sqlite:
    journal_mode: {values: [delete, wal]}
    wal_autocheckpoint: {values: [1, 1000]}
sampling: {runs_per_round: 4, max_rounds: 1}
screening: {top: 1}
sweep: {repeats: 3, always: [wal_autocheckpoint]}
rules: [intuition]
"""


def test_a_dependent_knob_is_measured_where_it_counts(tmp_path: Path, device_profile: Path) -> None:
    folder = studies.make_folder(tmp_path / "beside")
    studies.write_study(folder, "beside", STUDY)
    studies.place_profile(folder, device_profile, "beside")
    told = studies.call(folder, "beside")
    assert "sqlite: wal_autocheckpoint = 1 is swept beside journal_mode = wal" in told
    ((beside, baseline, estimate, blocks),) = studies.query(
        folder,
        "beside",
        "SELECT beside, baseline, estimate, blocks FROM effects "
        "WHERE metric = 'throughput_ops' AND knob = 'wal_autocheckpoint'",
    )
    assert (beside, baseline, blocks) == ('{"journal_mode":"wal"}', "1000", 3)
    assert estimate < 0, "each commit copies its pages into the database"
    in_force = studies.query(
        folder,
        "beside",
        "SELECT DISTINCT side, e.knob, e.effective FROM runs_behind b JOIN effective_values e USING (run_id) "
        "WHERE b.knob = 'wal_autocheckpoint' AND e.knob IN ('journal_mode', 'wal_autocheckpoint') ORDER BY ALL",
    )
    assert in_force == [
        ("default", "journal_mode", "wal"),
        ("default", "wal_autocheckpoint", "1000"),
        ("value", "journal_mode", "wal"),
        ("value", "wal_autocheckpoint", "1"),
    ]

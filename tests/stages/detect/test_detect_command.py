"""`knobscope detect` from the results of a study to findings."""

from collections.abc import Callable
from pathlib import Path

import pytest
from generated_studies import Study, Truth

from knobscope.cli import main
from knobscope.tables import TABLES
from knobscope.tables.columns import COLUMNS


@pytest.mark.slow
def test_the_command_writes_database_and_findings(
    make_study: Callable[..., Study],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The files need not be listed, as the pipeline does it."""
    study = make_study(devices=("hdd", "nvme"), truth={("nvme", "buffer", "32"): Truth(throughput=-0.4)})
    root, files = study.database.parent, study.files
    results = tmp_path / "results/sim/simdb/nvme/ycsb-a"
    for kind, paths in {"runs": files.runs, "plan": files.plans, "../../../devices": files.devices}.items():
        (results / kind).mkdir(parents=True)
        for number, path in enumerate(paths):
            (results / kind / f"{number}{path.suffix}").symlink_to(path)
    monkeypatch.chdir(tmp_path)
    assert main(["detect", str(root / "specs/studies/sim.yaml"), "--root", str(root)]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "sim-detected.duckdb"]
    written = Study(study.specs, files, tmp_path / "sim-detected.duckdb")
    findings = written.query("FROM findings")
    assert findings.columns.tolist() == list(TABLES["findings"])
    mismatches = findings[findings["verdict"] == "mismatch"]
    assert set(mismatches["rule"]) == {"tier", "intuition"}
    assert findings["confirmed"].unique().tolist() == ["not_tested"]
    assert findings.loc[findings["verdict"] == "none", "penalty"].isna().all()
    comments = written.query("SELECT comment FROM duckdb_columns() WHERE table_name = 'findings'")["comment"]
    assert comments.tolist() == [column.meaning for column in COLUMNS["findings"].values()]
    said = capsys.readouterr().err
    assert "tier: simdb: Raising buffer from 8 to 32 on hdd with ycsb-a" in said
    assert "io_parallelism: 0 mismatch, 2 none, 0 insufficient" in said

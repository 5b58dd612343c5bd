"""What failed is measured again when somebody asks for it, and nothing is lost."""

from pathlib import Path

from knobscope.durable_files import read_sealed, write_sealed
from knobscope.workflow.retry import retry_failed_runs


def test_failed_runs_and_their_blocks_are_set_aside(tmp_path: Path) -> None:
    for number, (status, block) in enumerate([("ok", "0"), ("failed_start", "1"), ("timeout", "1"), ("ok", "1")]):
        run = {"run_id": str(number), "status": status, "block_id": f"a/b/c/screen-0-{block}"}
        write_sealed(tmp_path / "store" / f"{number}.json", {"run": run})
        (tmp_path / f"a/b/c/runs/screen-0-{block}").mkdir(parents=True, exist_ok=True)
    (tmp_path / "study.duckdb").touch()
    assert retry_failed_runs(tmp_path, runs=False).startswith("2 runs that failed would be measured again")
    assert len(list((tmp_path / "store").glob("*.json"))) == 4
    assert retry_failed_runs(tmp_path, runs=True) == "2 runs that failed are measured again"
    assert sorted(path.name for path in (tmp_path / "store").glob("*.json")) == ["0.json", "3.json"]
    assert read_sealed(tmp_path / "store/1.json.retried")["run"]["status"] == "failed_start"
    assert [path.name for path in (tmp_path / "a/b/c/runs").glob("screen*")] == ["screen-0-0"]
    assert not (tmp_path / "study.duckdb").exists(), "of which the missing block would not be missed"
    assert retry_failed_runs(tmp_path, runs=True) == "0 runs that failed are measured again"


def test_failed_trials_and_runs_of_experiments_come_with_what_was_made_of_them(tmp_path: Path) -> None:
    for number, block in enumerate(["tune-0-1", "explain-1-ab12"]):
        run = {"run_id": str(number), "status": "failed_run", "block_id": f"a/b/c/{block}"}
        write_sealed(tmp_path / "store" / f"{number}.json", {"run": run})
    (tmp_path / "a/b/c/runs/tune").mkdir(parents=True)
    (tmp_path / "study.duckdb").touch()
    assert retry_failed_runs(tmp_path, runs=True).startswith("2 runs")
    assert list((tmp_path / "a/b/c/runs").glob("t*")) == []
    assert not (tmp_path / "study.duckdb").exists()

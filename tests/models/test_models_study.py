"""A real study leaves a model, and another one starts from it: no screening, the same knobs swept, and what is said."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest
import yaml

from knobscope.characterise.curves import QUICK
from knobscope.characterise.profile import measure_profile
from knobscope.cli import main
from knobscope.devices import open_device
from knobscope.specs import Device, read_spec
from knobscope.tables import write_json

ROOT = Path(__file__).parents[2]
STUDY = """
name: %(name)s
description: SQLite in miniature
dbms: [sqlite]
devices: [here]
workloads:
  ycsb-a: {records: 300, threads: 1, warmup_s: 0.1, measure_s: 0.4}
knobs:
  sqlite:
    synchronous: {values: [off, full]}
    journal_mode: {values: [delete, wal]}
    cache_size: {values: [-500, -2000]}
sampling: {runs_per_round: 4, max_rounds: 1}
screening: {%(screening)s}
sweep: {repeats: 2}
"""

pytestmark = pytest.mark.real


def write_study(folder: Path, name: str, screening: str) -> Path:
    path = folder / f"specs/studies/{name}.yaml"
    path.write_text(STUDY % {"name": name, "screening": screening})
    return path


def snakemake(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    command = [
        *(sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--directory", str(folder)),
        *("--profile", str(ROOT / "profiles/default"), "--cores", "2"),
        *("--config", f"study=specs/studies/{name}.yaml"),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)


def query(folder: Path, study: str, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(folder / f"results/{study}/study.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def write_profile(folder: Path) -> None:
    """Measure the device for two studies at once, with the shortest windows that give numbers."""
    device = read_spec(ROOT / "specs/devices/here.yaml", Device, None)[1]
    (folder / "results").mkdir()
    with open_device(device, folder, "early") as opened:
        profile = measure_profile(opened, replace(QUICK, file_bytes=16 << 20, window_ms=50, repeats=1))
    for study in ("early", "late"):
        write_json(folder / f"results/{study}/devices/here.json", profile)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished study `early` and its model."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "specs/studies").mkdir(parents=True)
    for kind in ("dbms", "devices", "workloads"):
        (folder / "specs" / kind).symlink_to(ROOT / "specs" / kind)
    write_profile(folder)
    study = write_study(folder, "early", "top: 1")
    done = snakemake(folder, "early")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    arguments = ["models", "save", str(study), "--results", str(folder / "results/early")]
    assert main([*arguments, "--out", str(folder / "models"), "--root", str(folder)]) == 0
    return folder


def test_the_model_says_where_it_comes_from(place: Path) -> None:
    content = yaml.safe_load((place / "models/early.yaml").read_text())
    (ranking,) = content["rankings"]
    assert content["study"] == "early"
    assert len(content["study_hash"]) == 16
    assert ranking["dbms_version"].startswith("3.")
    assert ranking["workload_class"] == "write"
    assert ranking["device_profile"]["preferred_write_bytes"] > 0
    assert {knob["knob"] for knob in ranking["knobs"]} == {"synchronous", "journal_mode", "cache_size"}
    assert not ranking["trustworthy"]  # four configurations


def test_a_study_with_a_prior_goes_to_the_sweep_directly(place: Path) -> None:
    write_study(place, "late", "prior: early, top: 1")
    done = snakemake(place, "late")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert query(place, "late", "SELECT DISTINCT phase FROM runs") == [("sweep",)]
    first = query(place, "early", "SELECT knob FROM importance WHERE rank = 1")
    assert query(place, "late", "SELECT DISTINCT knob FROM effects") == first
    assert query(place, "late", "SELECT round, prior FROM fits") == [(None, "early")]
    report = (place / "results/late/report.html").read_text()
    assert "the ranking is that of model early" in report
    again = snakemake(place, "late")
    assert "Nothing to be done" in again.stdout + again.stderr


def test_a_study_that_started_from_a_model_is_no_source_of_one(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["models", "save", str(place / "specs/studies/late.yaml"), "--results", str(place / "results/late")]
    assert main([*arguments, "--out", str(place / "models"), "--root", str(place)]) == 2
    assert "started from model 'early'" in capsys.readouterr().err


def test_another_major_version_stops_the_study(place: Path) -> None:
    model = yaml.safe_load((place / "models/early.yaml").read_text())
    model["name"] = "ancient"
    model["rankings"][0]["dbms_version"] = "2.8.17"
    (place / "models/ancient.yaml").write_text(yaml.safe_dump(model))
    write_study(place, "late", "prior: ancient, top: 1")
    done = snakemake(place, "late")
    assert done.returncode != 0
    log = (place / "results/late/logs/sqlite/here/ycsb-a/models.log").read_text()
    assert "specs/studies/late.yaml:14: screening.prior: found model 'ancient', measured with sqlite 2.8.17" in log
    assert "Traceback" not in log

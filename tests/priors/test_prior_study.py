"""A real study leaves a prior, and another one starts from it: no screening, the same knobs swept, and what is said."""

from pathlib import Path

import pytest
import yaml
from studies import call, call_unchecked, make_folder, place_profile, query
from studies import write_study as write_spec

from knobscope.cli import main

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

pytestmark = [pytest.mark.real, pytest.mark.long]


def write_study(folder: Path, name: str, screening: str) -> Path:
    return write_spec(folder, name, STUDY % {"name": name, "screening": screening})


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished study `early` and its prior."""
    folder = make_folder(tmp_path_factory.mktemp("models"))
    place_profile(folder, "early", "late")
    study = write_study(folder, "early", "top: 1")
    call(folder, "early")
    arguments = ["models", "save", str(study), "--results", str(folder / "results/early")]
    assert main([*arguments, "--out", str(folder / "models"), "--root", str(folder)]) == 0
    return folder


def test_the_prior_says_where_it_comes_from(project: Path) -> None:
    content = yaml.safe_load((project / "models/early.yaml").read_text())
    (ranking,) = content["rankings"]
    assert content["study"] == "early"
    assert len(content["study_hash"]) == 16
    assert ranking["dbms_version"].startswith("3.")
    assert ranking["workload_class"] == "write"
    assert "preferred_write_bytes" in ranking["device_profile"]  # empty where the device prefers no size
    assert {knob["knob"] for knob in ranking["knobs"]} == {"synchronous", "journal_mode", "cache_size"}
    assert not ranking["trustworthy"]  # four configurations


@pytest.fixture(scope="module")
def finished_late(project: Path) -> None:
    """The study that starts from the prior, finished."""
    write_study(project, "late", "prior: early, top: 1")
    call(project, "late")


@pytest.mark.usefixtures("finished_late")
def test_a_study_with_a_prior_goes_to_the_sweep_directly(project: Path) -> None:
    assert query(project, "late", "SELECT DISTINCT phase FROM runs") == [("sweep",)]
    first = query(project, "early", "SELECT knob FROM importance WHERE rank = 1")
    assert query(project, "late", "SELECT DISTINCT knob FROM effects") == first
    assert query(project, "late", "SELECT round, prior FROM fits") == [(None, "early")]
    report = (project / "results/late/report.html").read_text()
    assert "the ranking is that of prior early" in report
    assert "Nothing to be done" in call(project, "late")


@pytest.mark.usefixtures("finished_late")
def test_a_study_that_started_from_a_prior_gives_none(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["models", "save", str(project / "specs/studies/late.yaml"), "--results", str(project / "results/late")]
    assert main([*arguments, "--out", str(project / "models"), "--root", str(project)]) == 2
    assert "started from prior 'early'" in capsys.readouterr().err


def test_another_major_version_stops_the_study(project: Path) -> None:
    prior = yaml.safe_load((project / "models/early.yaml").read_text())
    prior["name"] = "ancient"
    prior["rankings"][0]["dbms_version"] = "2.8.17"
    (project / "models/ancient.yaml").write_text(yaml.safe_dump(prior))
    write_study(project, "late", "prior: ancient, top: 1")
    done = call_unchecked(project, "late")
    assert done.returncode != 0
    log = (project / "results/late/logs/sqlite/here/ycsb-a/priors.log").read_text()
    assert "specs/studies/late.yaml:14: screening.prior: found prior 'ancient', measured with sqlite 2.8.17" in log
    assert "Traceback" not in log

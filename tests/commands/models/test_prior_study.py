"""A real study leaves a prior, and another one starts from it: no screening, the same knobs swept, and what is said."""

from collections.abc import Callable
from pathlib import Path

import pytest
import studies
import yaml
from studies import assert_stays_finished, call, call_unchecked, query

from knobscope.cli import main

pytestmark = [pytest.mark.real, pytest.mark.long]


def write_study(folder: Path, screening: str) -> Path:
    """Write study `late`, which sweeps what screening finds and nothing else."""
    text = studies.SMALL.replace("small", "late", 1)
    text = text.replace(", always: [synchronous, journal_mode, wal_autocheckpoint]", "")
    return studies.write_study(folder, "late", text.replace("screening: {top: 1}", f"screening: {{{screening}}}"))


@pytest.fixture(scope="module")
def project(small_study: Path, device_profile: Path) -> Path:
    """A folder with a finished study `small`, its prior, and no run of `late`."""
    studies.place_profile(small_study, device_profile, "late")
    study, results = small_study / "specs/studies/small.yaml", small_study / "results/small"
    arguments = ["models", "save", str(study), "--results", str(results)]
    assert main([*arguments, "--out", str(small_study / "models"), "--root", str(small_study)]) == 0
    return small_study


def test_the_prior_says_where_it_comes_from(project: Path) -> None:
    content = yaml.safe_load((project / "models/small.yaml").read_text())
    (ranking,) = content["rankings"]
    assert content["study"] == "small"
    assert len(content["study_hash"]) == 16
    assert ranking["dbms_version"].startswith("3.")
    assert ranking["workload_class"] == "write"
    assert "preferred_write_bytes" in ranking["device_profile"]  # empty where the device prefers no size
    assert {knob["knob"] for knob in ranking["knobs"]} == {"synchronous", "journal_mode", "wal_autocheckpoint"}
    assert not ranking["trustworthy"]  # four configurations


@pytest.fixture(scope="module")
def finished_late(project: Path) -> None:
    """The study that starts from the prior, finished."""
    write_study(project, "prior: small, top: 1")
    call(project, "late")


@pytest.mark.usefixtures("finished_late")
def test_a_study_with_a_prior_goes_to_the_sweep_directly(project: Path) -> None:
    assert query(project, "late", "SELECT DISTINCT phase FROM runs") == [("sweep",)]
    ((first,),) = query(project, "small", "SELECT knob FROM importance WHERE rank = 1")
    swept = {knob for (knob,) in query(project, "late", "SELECT DISTINCT knob FROM effects")}
    assert first in swept and swept <= {first, "journal_mode"}  # beside which wal_autocheckpoint counts
    assert query(project, "late", "SELECT round, prior FROM fits") == [(None, "small")]
    report = (project / "results/late/report.html").read_text()
    assert "the ranking is that of prior small" in report
    assert_stays_finished(project, "late")


@pytest.mark.usefixtures("finished_late")
def test_a_study_that_started_from_a_prior_gives_none(project: Path, refuses: Callable[..., str]) -> None:
    arguments = ["models", "save", str(project / "specs/studies/late.yaml"), "--results", str(project / "results/late")]
    assert "started from prior 'small'" in refuses(*arguments, "--out", project / "models", "--root", project)


def test_another_major_version_stops_the_study(project: Path) -> None:
    prior = yaml.safe_load((project / "models/small.yaml").read_text())
    prior["name"] = "ancient"
    prior["rankings"][0]["dbms_version"] = "2.8.17"
    (project / "models/ancient.yaml").write_text(yaml.safe_dump(prior))
    write_study(project, "prior: ancient, top: 1")
    done = call_unchecked(project, "late")
    assert done.returncode != 0
    log = (project / "results/late/logs/sqlite/local-disk/ycsb-a/models.log").read_text()
    assert "specs/studies/late.yaml:14: screening.prior: found prior 'ancient', measured with sqlite 2.8.17" in log
    assert "Traceback" not in log

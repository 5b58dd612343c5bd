"""What a study expects to matter: knobs of priors that fit, and of no other one."""

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from studies import make_folder

from knobscope.specs import load_study
from knobscope.stages.select.warm_start import WarmStart, find_warm_start

STUDY = {
    "name": "later",
    "description": "starts warm",
    "dbms": ["sqlite"],
    "devices": ["local-disk"],
    "workloads": {"ycsb-a": {"records": 300}},
    "knobs": {"sqlite": {"synchronous": None, "journal_mode": None, "cache_size": {"values": [-500, -2000]}}},
}
NOTHING = WarmStart([], [])


def ranked(*names: str, idle: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    figures = {"rank_low": 1, "rank_high": 9, "importance": 0.1, "permutation": 0.1, "above_noise": True}
    return [
        {"knob": name, "rank": rank, "stands_out": name not in idle, **figures}
        for rank, name in enumerate((*names, *idle), start=1)
    ]


def ranking(**changes: Any) -> dict[str, Any]:
    return {
        "dbms": "sqlite",
        "dbms_version": "3.46.1",
        "workload": "ycsb-b",
        "workload_class": "write",
        "device": "elsewhere",
        "device_profile": {},
        "measured": "2026-11-20T08:00:00",
        "model": "auto",
        "runs": 100,
        "holdout_r2": 0.8,
        "trustworthy": True,
        "reason": "held-out R2 is 0.80",
        "knobs": ranked("synchronous", "page_size", "journal_mode", idle=("cache_size",)),
        **changes,
    }


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., WarmStart]:
    """Return a function that writes a study and priors, by name, and finds what its case starts from."""
    make_folder(tmp_path)
    (tmp_path / "models").mkdir()

    def find(screening: dict[str, Any] | None = None, **priors: dict[str, Any]) -> WarmStart:
        for name, one in priors.items():
            about = {"study": name, "study_hash": "0" * 16, "saved": "2026-11-21", "knobscope": "0.2.0"}
            text = yaml.safe_dump({"name": name, **about, "rankings": [one]})
            (tmp_path / "models" / f"{name}.yaml").write_text(text)
        path = tmp_path / "specs/studies/later.yaml"
        path.write_text(yaml.safe_dump({**STUDY, "screening": screening or {}}))
        specs = load_study(path, tmp_path, runnable=False)
        begun = datetime(2026, 11, 20, 8, 30)
        return find_warm_start(
            tmp_path / "models", specs, specs.cases[0], ["synchronous", "journal_mode", "cache_size"], "3.40.0", begun
        )

    return find


def test_knobs_that_stood_out_in_an_earlier_study_are_expected(start: Callable[..., WarmStart]) -> None:
    assert start(earlier=ranking()) == WarmStart(["earlier"], ["synchronous", "journal_mode"])


def test_several_priors_are_joined_by_the_best_rank(start: Callable[..., WarmStart]) -> None:
    other = ranking(knobs=ranked("cache_size", "journal_mode"))
    assert start(a=ranking(), b=other) == WarmStart(["a", "b"], ["cache_size", "synchronous", "journal_mode"])


@pytest.mark.parametrize(
    "changes",
    [
        {"dbms": "mariadb"},
        {"workload_class": "read"},
        {"dbms_version": "4.0"},
        {"trustworthy": False},
        {"measured": "2026-11-20T08:30:00"},
    ],
    ids=["another DBMS", "another class", "another major version", "not to be trusted", "not over before this study"],
)
def test_a_prior_that_does_not_fit_is_left_out(start: Callable[..., WarmStart], changes: dict[str, Any]) -> None:
    assert start(other=ranking(**changes)) == NOTHING


@pytest.mark.parametrize("screening", [{"warm_start": False}, {"model": "lightgbm"}])
def test_a_study_may_start_cold(start: Callable[..., WarmStart], screening: dict[str, Any]) -> None:
    assert start(screening, earlier=ranking()) == NOTHING


def test_a_file_that_is_no_prior_is_reported_and_hinders_nothing(
    start: Callable[..., WarmStart], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "models/broken.yaml").write_text("name: other\n")
    assert start(earlier=ranking()).priors == ["earlier"]
    assert "models/broken.yaml cannot be read as a prior" in capsys.readouterr().err

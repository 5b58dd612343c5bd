"""`knobscope rank`: order, noise floor and trust on data with known truth, and on a measured table."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from known_tables import known_grid, measured

from knobscope.cli import main
from knobscope.commands.table import rank
from knobscope.errors import UserError


def run(table: Path, tmp_path: Path, *arguments: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    rank.add_parser(parser.add_subparsers())
    out = tmp_path / "out.json"
    args = parser.parse_args(["rank", str(table), "--response", "tps", "--json", str(out), "--jobs", "1", *arguments])
    assert args.run(args) == 0
    return json.loads(out.read_text())  # type: ignore[no-any-return]


def make(rows: int, noise: float, seed: int = 0) -> pd.DataFrame:
    """Ten numeric knobs and a switch with two values; `big`, `switch` and `mid` matter, in this order."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({f"idle_{i}": rng.integers(0, 10_000, rows) for i in range(8)})
    table["big"], table["mid"], table["switch"] = rng.random(rows), rng.random(rows), rng.integers(0, 2, rows)
    table["tps"] = 500 + 400 * table.big + 100 * np.sin(3 * table.mid) + 160 * table.switch
    table["tps"] += rng.normal(0, noise, rows)
    return table


def save(table: pd.DataFrame, tmp_path: Path) -> Path:
    table.to_csv(tmp_path / "table.csv")  # with row numbers, as pandas writes them
    return tmp_path / "table.csv"


@pytest.mark.slow
@pytest.mark.parametrize("model", ["extra_trees", pytest.param("lightgbm", marks=pytest.mark.long), "anova"])
def test_order_floor_and_trust(model: str, tmp_path: Path) -> None:
    result = run(save(make(200, 20), tmp_path), tmp_path, "--model", model)
    knobs = {knob["knob"]: knob for knob in result["knobs"]}
    assert [knob["knob"] for knob in result["knobs"]][:3] == ["big", "switch", "mid"]
    assert "Unnamed: 0" not in knobs
    assert knobs["big"]["above_noise"] and knobs["switch"]["above_noise"]
    assert sum(knobs[name]["above_noise"] for name in knobs if name.startswith("idle")) <= 1
    assert knobs["big"]["rank_low"] == knobs["big"]["rank_high"] == 1
    assert result["trustworthy"] and result["holdout_r2"] > 0.7


@pytest.mark.slow
def test_noise_is_not_trusted(tmp_path: Path) -> None:
    result = run(save(make(120, 3000), tmp_path), tmp_path, "--model", "anova")
    assert not result["trustworthy"]
    assert "R2" in result["reason"]


@pytest.mark.slow
def test_few_samples_find_the_leaders(tmp_path: Path) -> None:
    result = run(save(make(250, 20), tmp_path), tmp_path, "--model", "anova", "--samples", "90", "--draws", "2")
    assert len(result["draws"]) == 2
    assert 3 <= result["mean_overlap_top5"] <= 5
    assert result["mean_overlap_top5"] == np.mean([draw["overlap"] for draw in result["draws"]])


@pytest.mark.long
def test_failure_codes_spoil_trust_until_they_are_named(tmp_path: Path) -> None:
    table = make(200, 20)
    table.loc[table.idle_0 < 800, "tps"] = 0.0  # a knob that makes the server crash, not slow
    path = save(table, tmp_path)
    spoiled = run(path, tmp_path, "--model", "anova")
    assert not spoiled["trustworthy"] and "failure code" in spoiled["reason"]
    named = run(path, tmp_path, "--failed-value", "0")
    assert named["trustworthy"] and named["knobs"][0]["knob"] == "big"
    assert named["rows"] == int((table.tps > 0).sum())
    failures = named["failures"]
    assert failures["rows"] == int((table.tps == 0).sum()) and failures["trustworthy"]
    assert failures["knobs"][0]["knob"] == "idle_0" and failures["knobs"][0]["above_noise"]
    assert spoiled["failures"] is None


@pytest.mark.slow
def test_few_failures_are_counted_but_not_ranked(tmp_path: Path) -> None:
    table = make(100, 20)
    table.loc[:3, "tps"] = 0.0
    arguments = ["--model", "anova", "--failed-value", "0"]
    failures = run(save(table, tmp_path), tmp_path, *arguments)["failures"]
    assert failures["rows"] == 4 and failures["knobs"] == [] and "insufficient" in failures["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--samples", "0"], "--samples is 0"),
        (["--samples", "999"], "60 distinct"),
        (["--draws", "3"], "--draws: found no --samples"),
        (["--factors", "x"], "--factors: found no column 'x'"),
    ],
)
def test_wrong_arguments_are_explained(arguments: list[str], message: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=message):
        run(save(make(60, 20), tmp_path), tmp_path, *arguments)


@pytest.mark.long
def test_leaders_of_the_measured_table(tmp_path: Path) -> None:
    table = pd.read_csv(measured("pku_mysql57_sysbench_20knob.csv")).sample(300, random_state=1)
    result = run(save(table.iloc[:, 1:], tmp_path), tmp_path)
    leaders = [knob["knob"] for knob in result["knobs"][:5]]
    assert {"innodb_lru_scan_depth", "innodb_doublewrite"} <= set(leaders)
    assert result["trustworthy"]


@pytest.mark.slow
def test_the_table_is_sorted_by_its_first_figure(tmp_path: Path, prints: Callable[..., str]) -> None:
    """It used to be sorted by the score and to show another figure, without a header: 1.12 stood above 1.19."""
    table = tmp_path / "runs.csv"
    known_grid().iloc[::3].to_csv(table, index=False)
    lines = prints("rank", table, "--response", "y", "--log").splitlines()
    assert lines[0] == "page matters most for ln(y); 3 of 6 knobs are above noise."
    assert lines[2] == "What matters for ln(y), by extra_trees on 144 rows."
    assert lines[4].split() == ["rank", "90", "%", "interval", "knob", "score", "[%]", "R2", "lost", "above", "noise"]
    rows = [line.split() for line in lines[5:11]]
    scores = [float(row[5]) for row in rows]
    assert (
        rows[0][4] == "page" and scores == sorted(scores, reverse=True) and sum(scores) == pytest.approx(100, abs=0.5)
    )
    assert lines[-1].startswith("trustworthy: held-out R2")


@pytest.mark.slow
def test_the_document_can_be_the_output(tmp_path: Path, prints: Callable[..., str]) -> None:
    table = tmp_path / "runs.csv"
    known_grid().head(60).to_csv(table, index=False)
    assert json.loads(prints("rank", table, "--response", "y", "--model", "anova", "--json", "-"))["rows"] == 60


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for command in ("rank", "replay", "trend"):
        with pytest.raises(SystemExit):
            main([command, "--help"])
        assert f"examples:\n  knobscope {command} " in capsys.readouterr().out


@pytest.mark.parametrize("seed", ["-1", "4294967296", "x"])
def test_a_seed_that_no_library_takes_is_refused(seed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["rank", str(tmp_path / "table.csv"), "--response", "tps", f"--seed={seed}"])
    assert ended.value.code == 2
    assert "expected a whole number from 0 to 2147483647" in capsys.readouterr().err

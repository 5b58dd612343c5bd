"""`knobscope trend` on curves with known shape, and on a measured grid."""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from known_tables import grid, measured

from knobscope.commands.table import trend
from knobscope.errors import UserError


def run(table: Path, tmp_path: Path, *arguments: str) -> dict[str, Any]:
    parser = argparse.ArgumentParser()
    trend.add_parser(parser.add_subparsers())
    out = tmp_path / "out.json"
    args = parser.parse_args(["trend", str(table), "--json", str(out), *arguments])
    assert args.run(args) == 0
    return json.loads(out.read_text())  # type: ignore[no-any-return]


def points(result: dict[str, Any]) -> list[tuple[str, float]]:
    return [(point["type"], point["value"]) for point in result["points"]]


def save(table: pd.DataFrame, tmp_path: Path) -> Path:
    table.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def test_one_row_per_level_is_enough(tmp_path: Path) -> None:
    path = save(pd.DataFrame({"depth": [1, 2, 4, 8, 16, 32, 64], "y": [1, 2, 4, 7, 5, 3, 1]}), tmp_path)
    result = run(path, tmp_path, "--response", "y", "--factor", "depth", "--axis", "log")
    assert points(result) == [("turning", 8)]
    assert result["axis"] == "log"
    assert result["coefficients"][3] == [8, 7]


def test_other_factors_and_noise_do_not_hide_a_turn(tmp_path: Path) -> None:
    table = grid(size=[1, 2, 3, 4, 5, 6], mode=[0, 1], other=[1, 2, 3])
    table["y"] = 1000 * table["mode"] + 50 * (4 - (table["size"] - 3).abs())
    table["y"] += np.random.default_rng(1).normal(0, 3, len(table))
    result = run(save(table, tmp_path), tmp_path, "--response", "y", "--factor", "size")
    assert points(result) == [("turning", 3)]
    assert result["standard_error"] < 5


def test_confounded_levels_need_adjustment(tmp_path: Path) -> None:
    table = grid(size=[1, 2, 3, 4], mode=[0, 1], other=[1, 2, 3])
    table = table[(table["mode"] == 0) | (table["size"] > 2)]  # the fast mode only with large sizes
    table["y"] = 10.0 * table["size"] + 500 * table["mode"] + table["other"]
    path = save(table, tmp_path)
    plain = run(path, tmp_path, "--response", "y", "--factor", "size")
    adjusted = run(path, tmp_path, "--response", "y", "--factor", "size", "--adjust")
    assert np.diff([value for _, value in plain["coefficients"]]).max() > 200
    np.testing.assert_allclose(np.diff([value for _, value in adjusted["coefficients"]]), 10)
    assert adjusted["adjusted_for"] == ["mode", "other"]


@pytest.mark.parametrize(
    ("factor", "message"),
    [("absent", "no factor 'absent'"), ("word", "are words"), ("two", "has 2 values")],
)
def test_wrong_factors_are_explained(factor: str, message: str, tmp_path: Path) -> None:
    table = pd.DataFrame({"word": list("abcabc"), "two": [1, 2] * 3, "y": range(6)})
    with pytest.raises(UserError, match=message):
        run(save(table, tmp_path), tmp_path, "--response", "y", "--factor", factor)


def test_log_axis_with_zero_is_explained(tmp_path: Path) -> None:
    path = save(pd.DataFrame({"depth": [0, 1, 2, 3], "y": [1, 3, 2, 1]}), tmp_path)
    with pytest.raises(UserError, match="above 0"):
        run(path, tmp_path, "--response", "y", "--factor", "depth", "--axis", "log")


def test_points_of_the_measured_storm_grid(tmp_path: Path) -> None:
    path = measured("storm_wordcount.csv")

    def find(factor: str, axis: str) -> list[tuple[str, float]]:
        return points(
            run(path, tmp_path, "--response", "throughput", "--factor", factor, "--axis", axis, "--ignore", "latency")
        )

    assert find("counters", "linear") == [("turning", 16)]
    assert find("spliters", "linear") == [("knee", 3)]
    assert find("spliters", "log") == []


def test_the_curve_is_a_table_with_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(pd.DataFrame({"depth": [1, 2, 4, 8, 16, 32, 64], "y": [1, 2, 4, 7, 5, 3, 1]}), tmp_path)
    run(path, tmp_path, "--response", "y", "--factor", "depth", "--axis", "log")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "y over depth has a turning point at 8."
    assert lines[2] == "y by depth (log axis); noise unknown: no replicates"
    assert [line.split() for line in lines[4:7]] == [["depth", "mean", "y"], ["1", "1"], ["2", "2"]]
    assert lines[-1].startswith("turning at depth = 8 (turn ratio |slope above / slope below - 1|: ")


def test_points_as_published_leave_the_lowest_level_out(tmp_path: Path) -> None:
    path = save(pd.DataFrame({"depth": [1, 2, 4, 8, 16, 32, 64], "y": [9, 2, 4, 7, 5, 3, 1]}), tmp_path)
    result = run(path, tmp_path, "--response", "y", "--factor", "depth", "--as-published")
    assert points(result) == [("turning", 8)]
    below, above = np.polyfit([2, 4, 8], [2, 4, 7], 1)[0], np.polyfit([8, 16, 32, 64], [7, 5, 3, 1], 1)[0]
    assert result["points"][0]["turn_ratio"] == pytest.approx(abs((above - below) / below))


def test_points_as_published_know_no_cliff(tmp_path: Path) -> None:
    path = save(pd.DataFrame({"depth": range(9), "y": [0, 1, 2, 3, 4, 3, 2, 1, 0]}), tmp_path)
    assert points(run(path, tmp_path, "--response", "y", "--factor", "depth", "--as-published")) == [("turning", 4)]
    step = save(pd.DataFrame({"depth": range(9), "y": [0, 1, 2, 3, 4, 105, 106, 107, 108]}), tmp_path)
    assert ("cliff", 5) in points(run(step, tmp_path, "--response", "y", "--factor", "depth"))
    published = points(run(step, tmp_path, "--response", "y", "--factor", "depth", "--as-published"))
    assert {kind for kind, _ in published} <= {"knee"}


def test_a_knee_as_published_is_kneeds(tmp_path: Path) -> None:
    from kneed import KneeLocator

    x = np.arange(12.0)
    y = 1 - np.exp(-x / 2)
    path = save(pd.DataFrame({"depth": x, "y": y}), tmp_path)
    found = points(run(path, tmp_path, "--response", "y", "--factor", "depth", "--as-published"))
    assert found == [("knee", KneeLocator(x[1:], y[1:], curve="concave", direction="increasing", online=True).knee)]


@pytest.mark.parametrize("y", [[5, 5, 5, 5, 5, 5], [0, 5, 5, 1, 1, 1], [0, 1, 2]])
def test_flat_pieces_and_short_curves_as_published_have_no_turn(y: list[int], tmp_path: Path) -> None:
    path = save(pd.DataFrame({"depth": range(len(y)), "y": y}), tmp_path)
    result = run(path, tmp_path, "--response", "y", "--factor", "depth", "--as-published")
    assert [kind for kind, _ in points(result) if kind == "turning"] == []


def test_the_published_way_has_no_log_axis(tmp_path: Path) -> None:
    path = save(pd.DataFrame({"depth": [1, 2, 3, 4], "y": [1, 3, 2, 1]}), tmp_path)
    with pytest.raises(UserError, match="linear axis only"):
        run(path, tmp_path, "--response", "y", "--factor", "depth", "--axis", "log", "--as-published")

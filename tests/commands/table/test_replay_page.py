"""The page of `replay`: how much samples of each size say, by sampling method and by model."""

import json
from pathlib import Path

import numpy as np
import pytest
from browser import CHROMIUM, look_at
from known_tables import grid

from knobscope.cli import main
from knobscope.commands.table.accuracy import Accuracy
from knobscope.commands.table.replay_page import render_page
from knobscope.stages.plan import SAMPLERS
from knobscope.statistics.models import MODELS

_NEVER = {"rate": 1.0, "stopped": False, "reason": "R2 reaches 0.9 on 3 of 10 splits (smallest 0.712)"}


def accuracy(sampling: str, model: str, rate: float, *shares: tuple[float, float, float] | None) -> Accuracy:
    figures = dict(zip(("r2", "mismatched"), shares, strict=True))
    return Accuracy(sampling=sampling, model=model, rate=rate, settings=round(1000 * rate), **figures)


def make_page(*, all_stopped: bool = True) -> str:
    """Render a page of made-up figures: long names, curves that end together, and one that no model could fit."""
    rates = np.linspace(0.05, 0.5, 10)
    pairs = [*((name, "auto") for name in SAMPLERS), *(("active", name) for name in MODELS if name != "auto")]
    accuracies = [
        accuracy(sampling, model, rate, (r2 - 0.04, r2, r2), (0.0, 1 - r2, 1 - r2))
        for number, (sampling, model) in enumerate(pairs)
        for rate in rates
        for r2 in [1 - np.exp(-(3 + number) * rate)]
        if model != "mlp"
    ] + [accuracy("active", "mlp", 0.05, None, None)]
    trials = [{"rate": rate, "stopped": True, "reason": "R2"} for rate in (0.1, 0.15, 0.1, 0.2)]
    result = {
        "table": "a/grid.csv",
        **{"settings": 1000, "factors": ["a", "b"], "sampling": "active", "model": "auto"},
        **{"stop": "r2", "threshold": 0.9, "trials": trials if all_stopped else [_NEVER]},
        "summary": {
            "stopped": 4 if all_stopped else 0,
            "rate_median": 0.125 if all_stopped else None,
            "runs_median": 125 if all_stopped else None,
            **dict.fromkeys(("r2_unsampled_min", "r2_unsampled_median"), 0.93 if all_stopped else None),
        },
    }
    return render_page(result, accuracies, "throughput", 10)


def test_the_page_says_what_was_found() -> None:
    page = make_page().replace("\u00a0", " ")
    assert "Screening would have stopped after 12 % of 1,000 settings (125 runs), the median of 4 trials" in page
    assert page.count("<svg") == 5
    never = make_page(all_stopped=False)
    assert "0 of" in never and "R2 reaches 0.9 on 3 of 10 splits" in never


@pytest.mark.real
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize(
    ("width", "dark"),
    [(390, True), *(pytest.param(*one, marks=pytest.mark.long) for one in [(390, False), (1280, False), (1280, True)])],
)
def test_nothing_of_the_page_is_broken(tmp_path: Path, width: int, dark: bool) -> None:
    seen = look_at(make_page(), tmp_path, width, dark=dark)
    assert (seen.width, seen.dark, seen.faults) == (width, dark, [])
    assert seen.texts > 50


@pytest.mark.long
def test_larger_samples_say_more(tmp_path: Path) -> None:
    table = grid(a=[1, 2, 3], b=[1, 2, 3], c=[1, 2], d=[1, 2], e=[1, 2, 3])
    noise = np.random.default_rng(1).normal(0, 0.05, len(table))
    table["y"] = table.a + 2 * (table.b == 2) * (table.c == 1) + noise
    table.to_csv(tmp_path / "grid.csv", index=False)
    page, out = tmp_path / "page.html", tmp_path / "out.json"
    command = ["replay", str(tmp_path / "grid.csv"), "--response", "y", "--trials", "2", "--step", ".2"]
    assert main([*command, "--model", "anova", "--html", str(page), "--json", str(out)]) == 0
    by_rate = {}
    for row in json.loads(out.read_text())["accuracy"]:
        by_rate.setdefault((row["sampling"], row["model"]), []).append(row)
    assert {sampling for sampling, _ in by_rate} == set(SAMPLERS) and {model for _, model in by_rate} == set(MODELS)
    for rows in by_rate.values():
        assert [row["rate"] for row in rows] == [0.05, 0.25, 0.45]
        first, last = rows[0], rows[-1]
        assert first["r2"] is None or first["r2"][1] < last["r2"][1]
    assert by_rate["active", "anova"][-1]["mismatched"][1] == 0
    assert "By sampling method" in page.read_text()

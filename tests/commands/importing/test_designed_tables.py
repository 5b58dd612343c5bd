"""Designed tables, which change many knobs at once, become studies with a ranking and effects from the model."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import pytest
from test_import_runs import run_commands

from knobscope.cli import main
from knobscope.commands.importing.designed import PARTS, choose_levels
from knobscope.commands.importing.knobs import ImportedKnob
from knobscope.specs import Knob, load_study

CASE = ("--set", "dbms=mydb", "--set", "device=disk", "--set", "tier=nvme_ssd", "--set", "workload=load")


def make_sample() -> pd.DataFrame:
    """Return a random sample of 50 knobs: `sync` and `cache` matter, `pool` has ever new values."""
    rng, rows = np.random.default_rng(3), 120
    table = pd.DataFrame({f"idle{number}": rng.integers(0, 3, rows) for number in range(47)})
    table["sync"] = rng.choice(["off", "on"], rows)
    table["cache"] = rng.choice([8, 16, 32], rows)
    table["pool"] = rng.integers(1, 10**6, rows)
    effects = 0.5 * (table.sync == "off") + 0.2 * np.log2(table.cache / 16) + 0.3 * (table.pool > 500_000)
    table["tps"] = (1000 * np.exp(effects + rng.normal(0, 0.03, rows))).round(2)
    return table


@pytest.fixture
def sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    monkeypatch.chdir(tmp_path)
    return make_sample()


def import_sample(table: pd.DataFrame, *more: str) -> int:
    table.to_csv("sample.csv", index=False)
    return main(["import", "sample.csv", "--study", "theirs", "--response", "tps", *CASE, *more])


def test_a_special_value_is_a_level_of_its_own() -> None:
    """A quarter of the rows switch something off with 0; the others spread over six orders of magnitude."""
    rows = Counter({0: 25, **{int(10 ** (i / 12)): 1 for i in range(6, 73)}})
    levels = choose_levels(rows, 1000, {0})
    assert levels is not None
    assert levels.count(0) == 1
    assert len(levels) == 1 + PARTS
    assert 1000 in levels


def test_effects_are_not_against_a_default_that_no_row_has() -> None:
    knob = ImportedKnob(["200", "2000", "20000"], None, {"baseline": "10000"})
    knob.look_at_design({"200": 10, "2000": 20, "20000": 10})
    assert (knob.reference, knob.is_default_measured) == (2000, False)


def test_a_word_of_the_spec_that_no_row_has_is_no_level() -> None:
    known = Knob(
        type="enum", values=["a", "b", "c", "d"], default="a", apply="restart", mechanism="flush", source="http://a"
    )
    knob = ImportedKnob(["d", "a", "c"], known, {})
    knob.look_at_design({"d": 10, "a": 20, "c": 10})
    assert knob.levels == ["a", "c", "d"]


@pytest.mark.long
def test_a_sample_gets_a_ranking_and_effects(sample: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    factors = ",".join(name for name in sample if name != "tps")
    assert import_sample(sample, "--factors", factors, "--baseline", "sync=on", "--baseline", "cache=16") == 0
    run_commands(capsys.readouterr().out)
    with duckdb.connect("results/theirs/study.duckdb", read_only=True) as connection:
        ranked = connection.execute("SELECT knob FROM importance WHERE above_noise ORDER BY rank").fetchall()
        effects = {
            (knob, value): (effect, low, high)
            for knob, value, effect, low, high in connection.execute(
                "SELECT knob, value, effect, effect_low, effect_high FROM predicted_effects"
            ).fetchall()
        }
    assert {knob for (knob,) in ranked} == {"sync", "cache", "pool"}
    for key, truth in {("sync", "false"): 0.5, ("cache", "8"): -0.2, ("cache", "32"): 0.2}.items():
        effect, low, high = effects[key]
        assert effect == pytest.approx(truth, abs=0.06)
        # An interval also allows for interactions that the model may lack, which few rows do not rule out.
        assert low < truth < high < low + 0.4
    page = Path("results/theirs/report.html").read_text().replace("\u00a0", " ")
    assert "What each value does, by the model" in page
    assert "No run changed one knob alone" in page
    assert "Combinations of the first knobs" not in page  # nothing to compare with: no row is the default


def test_values_of_a_sample_are_levels_of_the_study(sample: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    factors = ",".join(name for name in sample if name != "tps")
    assert import_sample(sample, "--factors", factors, "--baseline", "sync=on") == 0
    errors = capsys.readouterr().err
    assert "effects are against typical values" in errors and "cache=16" in errors and "sync=" not in errors
    assert "many values, looked at on a few levels: pool" in errors
    specs = load_study(Path("results/theirs/specs/studies/theirs.yaml"), Path.cwd(), runnable=False)
    assert specs.dbms["mydb"].knobs["sync"].default is True
    choice = specs.study.knobs["mydb"]["pool"]
    assert choice is not None and choice.values is not None and len(choice.values) == 4
    assert set(choice.values) <= set(sample.pool.tolist())


@pytest.mark.parametrize(
    ("change", "more", "message"),
    [
        ({"p95": lambda table: 1e6 / table.tps}, (), "'p95' looks measured or counted, not set"),
        ({"outcome": lambda table: ["failed"] + ["ok"] * (len(table) - 1)}, (), "--failed-value outcome=failed"),
        ({}, ("--set", "block"), "--set is 'block'; expected NAME=VALUE"),
        ({}, ("--ignore", "nothing"), "sample.csv:1: nothing: found no such column"),
        ({}, ("--ignore", "pool", "--baseline", "cach=8"), "cach: found no such knob; expected --baseline of cache"),
        ({}, ("--specs", "nowhere"), "--specs: found no folder nowhere"),
    ],
)
def test_columns_that_are_no_knobs_are_refused(
    sample: pd.DataFrame, capsys: pytest.CaptureFixture[str], change: dict, more: tuple[str, ...], message: str
) -> None:
    assert import_sample(sample.assign(**change), *more) == 2
    assert message in capsys.readouterr().err


def test_runs_that_failed_are_no_measurements(sample: pd.DataFrame) -> None:
    sample = sample.assign(outcome=["crashed"] * 2 + ["fine"] * (len(sample) - 2)).drop(columns="pool")
    sample.loc[2:4, "tps"] = 0
    assert import_sample(sample, "--failed-value", "outcome=crashed", "--failed-value", "0.0") == 0
    runs = next(Path("results").rglob("runs.parquet"))
    with duckdb.connect() as connection:
        query = "SELECT status, count(*) FROM read_parquet(?) GROUP BY ALL ORDER BY ALL"
        counts = connection.execute(query, [str(runs)]).fetchall()
    assert counts == [("failed_run", 5), ("ok", len(sample) - 5)]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (0, "1 problem in the table\nsample.csv:1: file: found a header and no rows; expected one row per run"),
        (1, "found no knob of two or more values among idle0, idle1"),
    ],
)
def test_a_sample_that_varies_nothing_is_no_table_of_single_knobs(
    sample: pd.DataFrame, capsys: pytest.CaptureFixture[str], rows: int, expected: str
) -> None:
    assert import_sample(sample[:rows]) == 2
    assert expected in capsys.readouterr().err


def test_a_failed_value_that_no_run_has_is_told(sample: pd.DataFrame, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_sample(sample.drop(columns="pool"), "--failed-value", "-1") == 0
    assert "tps: no run has the failed value -1" in capsys.readouterr().err


def test_a_table_without_a_case_says_how_to_name_it(sample: pd.DataFrame, refuses: Callable[..., str]) -> None:
    sample.to_csv("sample.csv", index=False)
    errors = refuses("import", "sample.csv", "--study", "theirs", "--response", "tps")
    assert "--set dbms=VALUE" in errors and "4 problems" in errors

"""The run store: whole files, found by what defines a run."""

import json
import random
import shutil
import sys
from pathlib import Path
from typing import Any

from knobscope.stages.measure import RunStore

sys.path.append(str(Path(__file__).parents[3] / "benchmarks/faults"))
from damage import damage_something


def test_a_run_is_found_again_and_is_whole(tmp_path: Path) -> None:
    store = RunStore(tmp_path / "store")
    assert store.load("a") is None
    store.save("a", {"run": {"run_id": "a", "monitor_reason": "no bcc"}, "intervals": []})
    assert store.load("a") == {"run": {"run_id": "a", "monitor_reason": "no bcc"}, "intervals": []}
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["a.json"]


def test_a_store_is_empty_until_a_run_is_stored(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    assert store.is_empty
    store.save("a", {"run": {"run_id": "a", "monitor_reason": None}})
    assert not store.is_empty


def test_one_run_that_bpf_watched_is_enough(tmp_path: Path) -> None:
    """One that did not start was watched by nobody."""
    store = RunStore(tmp_path)
    for name, monitor in (("a", None), ("b", "bpf"), ("c", None)):
        assert not store.was_watched_by_bpf or name == "c"
        store.save(name, {"run": {"run_id": name, "status": "ok" if monitor else "failed_start", "monitor": monitor}})
    assert store.was_watched_by_bpf


def test_a_half_written_run_is_no_run(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    (tmp_path / "a.json.part").write_text(json.dumps({"run": {}})[:5])
    assert store.load("a") is None


def test_a_damaged_run_is_set_aside_or_is_what_was_stored(tmp_path: Path) -> None:
    """200 damages at random: another content is never loaded, that of another run included."""
    runs: dict[str, Any] = {name: {"run": {"run_id": name, "monitor_reason": f"of {name}"}} for name in "abc"}
    for name, run in runs.items():
        RunStore(tmp_path / "whole").save(name, run)
    for seed in range(200):
        store = RunStore(shutil.copytree(tmp_path / "whole", tmp_path / "store"))
        what = damage_something(tmp_path, tmp_path, random.Random(seed))
        for name, run in runs.items():
            loaded = store.load(name)
            is_aside = (store.directory / f"{name}.json.damaged").exists()
            assert loaded == run or (loaded is None and (is_aside or what.endswith("remove"))), what
        shutil.rmtree(store.directory)

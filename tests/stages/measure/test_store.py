"""The run store: whole files, found by what defines a run."""

import json
from pathlib import Path

from knobscope.stages.measure import RunStore


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


def test_a_half_written_run_is_no_run(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    (tmp_path / "a.json.part").write_text(json.dumps({"run": {}})[:5])
    assert store.load("a") is None

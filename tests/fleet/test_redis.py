"""Redis, started for real: every knob arrives, and data is there with and without an append-only file."""

import json
from pathlib import Path

import pytest
from shipped_specs import shipped_study
from short_runs import assert_whole, read_dbms, run_once, unusual_values

from knobscope.stages.plan import plan_screening

pytestmark = pytest.mark.real


def test_every_knob_is_in_force_with_a_value_of_its_own(open_directory: Path) -> None:
    redis = read_dbms("redis")
    configuration = unusual_values(redis)
    assert set(configuration) == set(redis.knobs)
    assert_whole(run_once(redis, configuration, open_directory), configuration, redis)


@pytest.mark.long
def test_defaults_are_what_the_server_says(open_directory: Path) -> None:
    redis = read_dbms("redis")
    configuration = {name: knob.default for name, knob in redis.knobs.items()}
    assert_whole(run_once(redis, configuration, open_directory), configuration, redis)


@pytest.mark.long
def test_what_a_study_of_all_knobs_draws_is_in_force(open_directory: Path) -> None:
    """Of a few configurations, the default one among them: each sets all knobs that are not left out."""
    read_dbms("redis")
    specs = shipped_study("redis-all")
    rows = plan_screening(specs, specs.cases[0], 0)[:4]
    assert {row["is_sentinel"] for row in rows} == {True, False}
    for row in rows:
        configuration = json.loads(row["configuration"])
        assert len(configuration) >= 70
        assert_whole(run_once(specs.dbms["redis"], configuration, open_directory), configuration, specs.dbms["redis"])


@pytest.mark.long
def test_data_survives_loading_without_an_append_only_file(open_directory: Path) -> None:
    redis = read_dbms("redis")
    record = run_once(redis, {"appendonly": False}, open_directory, "ycsb-c")
    assert_whole(record, {"appendonly": False}, redis)  # a read of a record that is not there counts as failed
    assert list(open_directory.glob("snapshots/*/data/dump.rdb")) != []
    assert list(open_directory.glob("snapshots/*/data/appendonlydir")) == []


def test_a_value_that_the_server_clamps_makes_the_run_invalid(open_directory: Path) -> None:
    redis = read_dbms("redis")
    wider = redis.knobs["hz"].model_copy(update={"range": [1, 100000]})
    dbms = redis.model_copy(update={"knobs": {**redis.knobs, "hz": wider}})
    run = run_once(dbms, {"hz": 100000}, open_directory)["run"]
    assert run["status"] == "invalid"
    assert "hz=100000 reads back 500" in run["reason"]

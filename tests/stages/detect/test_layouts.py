"""Rules conclude nothing from requests to the device of the data where a layout sent others elsewhere."""

from collections.abc import Callable
from typing import Any

import duckdb
import pytest
from generated_studies import Study, Truth

Make = Callable[..., Study]

WAITS = (("flush", 300.0), ("write", 100.0), ("cpu", 400.0), ("runnable", 10.0))
FLUSHES = Truth(-0.4, flushes=1.0, waits=(("flush", 900.0),))


def judge_with_a_log_elsewhere(study: Study, requests: int) -> Any:
    """Return the finding of page = 16, where runs with it send so many requests to another device, and 1,000 here."""
    with duckdb.connect(str(study.database)) as connection:
        connection.execute(
            f"""
            INSERT INTO layout_io BY NAME
            SELECT run_id, l.device, 'write' AS op, l.requests
            FROM runs_behind b, (VALUES (b.device, 1000), ('log-drive', {requests})) l(device, requests)
            WHERE (b.knob, b.value, b.side) = ('page', '16', 'value')
            """  # noqa: S608
        )
    return study.judge("flush").set_index(["knob", "value"]).loc[("page", "16")]


def make_flushing(make_study: Make, seed: int, **more: Any) -> Study:
    """Return a study in which page = 16 flushes more; one of its own for each seed."""
    shared = {"noise": 0.006, "repeats": 4, "knobs": ("page",), "cpu_us": 50.0}
    return make_study(truth={("page", "16"): FLUSHES}, seed=seed, **shared, **more)


@pytest.mark.parametrize("requests", [800, 2])
def test_flushes_of_one_device_of_several_are_no_cause(make_study: Make, requests: int) -> None:
    """A file system without files of the DBMS still has a few requests, which are no reason for doubt."""
    row = judge_with_a_log_elsewhere(make_flushing(make_study, requests), requests)
    if requests == 2:
        assert row["verdict"] == "mismatch"
        return
    assert row["verdict"] == "insufficient"
    assert row["penalty"] is None or row["penalty"] != row["penalty"]
    assert row["sentence"].endswith(
        "requests of the DBMS went to log-drive, too, and only those to the device of the data are counted here. "
        "Watching waits would tell (`watch: [waits]`)."
    )


def test_waits_are_those_for_any_device(make_study: Make) -> None:
    row = judge_with_a_log_elsewhere(make_flushing(make_study, 7, waits=WAITS), 800)
    assert row["verdict"] == "mismatch", row["sentence"]

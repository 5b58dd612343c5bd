"""Values that are no longer in force when the window is over, or not for the connections of the load."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from measured_runs import load_and_measure
from shipped_specs import shipped_dbms, shipped_workload

from knobscope.generators import YcsbRun

pytestmark = pytest.mark.real

WORKLOAD = shipped_workload("ycsb-a", records=1000, threads=2, warmup_s=0.5, measure_s=1, interval_s=0.25)


@pytest.mark.parametrize("becomes", ["always", "everysec"])
def test_a_setting_that_changes_in_the_window_makes_the_run_invalid(
    open_directory: Path, monkeypatch: pytest.MonkeyPatch, becomes: str
) -> None:
    end = YcsbRun.wait_measured

    def wait_measured(self: YcsbRun, timeout: float) -> int:
        socket = self._session.connection["redis.socket"]
        subprocess.run(["redis-cli", "-e", "-s", socket, "config", "set", "appendfsync", becomes], check=True)
        return end(self, timeout)

    monkeypatch.setattr(YcsbRun, "wait_measured", wait_measured)
    record = load_and_measure(shipped_dbms("redis"), WORKLOAD, open_directory, {"appendfsync": "everysec"})
    run = record["run"]
    if becomes == "everysec":
        assert run["status"] == "ok", run
        return
    assert run["status"] == "invalid"
    difference = "appendfsync=everysec reads back always (by `readback.query`)"
    assert run["reason"] == f"no longer in force when the window was over: {difference}"
    assert [row["effective"] for row in record["effective_values"]] == ["always"]


@pytest.mark.parametrize("in_url", ["", "&sessionVariables=sort_buffer_size=65536"])
def test_a_session_with_another_value_than_the_server_makes_the_run_invalid(open_directory: Path, in_url: str) -> None:
    mariadb = shipped_dbms("mariadb")
    assert mariadb.connection is not None
    properties: Mapping[str, str] = mariadb.connection.properties
    url = {**properties, "jdbc.url": properties["jdbc.url"] + in_url}
    dbms = mariadb.model_copy(update={"connection": mariadb.connection.model_copy(update={"properties": url})})
    value = next(value for value in mariadb.knobs["sort_buffer_size"].values or [] if value != 65536)
    run = load_and_measure(dbms, WORKLOAD, open_directory, {"sort_buffer_size": value})["run"]
    assert run["status"] == ("invalid" if in_url else "ok"), run
    assert not in_url or f"not in force: sort_buffer_size={value} reads back 65536" in run["reason"]

"""The real client on a real PostgreSQL server."""

import time
from pathlib import Path

import pytest
from generator_databases import Postgres
from waiting import PATIENCE_S

from knobscope.generators import GeneratorError, YcsbRun, read_back

pytestmark = pytest.mark.real


def test_run(postgres: Postgres, tmp_path: Path) -> None:
    with YcsbRun(postgres.session(tmp_path), warmup_s=0.2, measure_s=0.6, interval_ms=200) as run:
        connected = run.wait_connected(PATIENCE_S)
        run.wait_measured(PATIENCE_S)
        result = run.result()
    assert connected.effective["synchronous_commit"] == "off"
    assert connected.effective["fsync"] == "off"
    assert connected.disagree == {}
    assert set(result.operations) == {"ALL", "READ", "UPDATE"}
    for name, totals in result.operations.items():
        assert totals["ok"] > 0
        assert totals["failed"] == 0
        assert totals["ok"] == sum(row["ops"] for row in result.intervals if row["op"] == name and row["t_s"] > 0)


def test_what_conflicts_is_repeated_and_counted(postgres: Postgres, tmp_path: Path) -> None:
    """Under repeatable read, PostgreSQL refuses to change a row that somebody else has just changed."""
    session = postgres.session(
        tmp_path,
        properties={"recordcount": "2", "updateproportion": "1"},
        init=["set default_transaction_isolation = 'repeatable read'"],
        threads=8,
    )
    with YcsbRun(session, warmup_s=0, measure_s=0.6, interval_ms=200) as run:
        run.wait_measured(PATIENCE_S)
        result = run.result()
    updates = result.operations["UPDATE"]
    assert updates["retried"] > 0
    assert updates["failed"] <= 0.01 * updates["ok"]
    assert postgres.ask("select count(*) from usertable where '' in (field0, field1, field2, field3, field4)") == "0"


def test_what_fails_for_itself_is_not_repeated(postgres: Postgres, tmp_path: Path) -> None:
    session = postgres.session(
        tmp_path,
        properties={"recordcount": "2", "readproportion": "0.9", "updateproportion": "0.1"},
        init=["set default_transaction_read_only = on"],
    )
    with YcsbRun(session, warmup_s=0, measure_s=0.6, interval_ms=200) as run:
        run.wait_measured(PATIENCE_S)
        result = run.result()
    assert (result.operations["UPDATE"]["ok"], result.operations["UPDATE"]["retried"]) == (0, 0)
    assert result.operations["UPDATE"]["failed"] > 0
    assert result.first_failure == "UPDATE: ERROR: cannot execute UPDATE in a read-only transaction"


def test_a_refused_value_comes_with_the_words_of_the_server(postgres: Postgres, tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match="invalid value for parameter") as caught:
        read_back(postgres.session(tmp_path, init=["set synchronous_commit=purple"]))
    assert caught.value.kind == "refused"


def test_a_wrong_question_is_reported(postgres: Postgres, tmp_path: Path) -> None:
    with pytest.raises(GeneratorError, match=r'relation "nowhere" does not exist'):
        read_back(postgres.session(tmp_path, readback={"query": "select a, b from nowhere"}))


def test_a_server_that_is_not_there_is_reported(postgres: Postgres, tmp_path: Path) -> None:
    nowhere = {"jdbc.url": "jdbc:postgresql://127.0.0.1:1/postgres", "jdbc.user": "postgres"}
    with pytest.raises(GeneratorError, match=r"cannot connect: .*127\.0\.0\.1:1 refused"):
        read_back(postgres.session(tmp_path, connection=nowhere))


@pytest.mark.long
def test_a_server_that_goes_away_is_noticed_before_the_window_ends(postgres: Postgres, tmp_path: Path) -> None:
    with YcsbRun(postgres.session(tmp_path), warmup_s=0, measure_s=600, interval_ms=500) as run:
        run.wait_measuring(PATIENCE_S)
        time.sleep(0.2)
        postgres.stop()
        with pytest.raises(GeneratorError, match="no operation succeeds any more") as caught:
            run.wait_measured(PATIENCE_S)
    postgres.start()
    assert caught.value.kind == "failed"
    assert "connection" in caught.value.log_tail

"""How TPC-H is asked for in YAML."""

from pathlib import Path

import pytest

from knobscope.errors import UserError
from knobscope.generators import TPCH_TABLES, make_tpch_data, tpch_properties
from knobscope.specs import Workload


def workload(records: int) -> Workload:
    return Workload.model_validate({"name": "books", "generator": "tpch", "class": "read", "records": records})


def test_records_are_thousandths_of_the_scale_factor() -> None:
    assert tpch_properties(workload(10)) == {
        "workload": "knobscope.tpch.TpchWorkload",
        "recordcount": "100",
        "table": "supplier",
        "tpch.scale_factor": "0.01",
    }
    assert tpch_properties(workload(10_000))["tpch.scale_factor"] == "10"
    assert tpch_properties(workload(1_234_567))["tpch.scale_factor"] == "1234.567"


@pytest.mark.slow
def test_the_generator_writes_a_file_per_table(tmp_path: Path) -> None:
    books = workload(43)  # 0.043 times 10,000 is less than 430 to a computer
    assert make_tpch_data(books, tmp_path) == {"queries.data": str(tmp_path)}
    assert {path.name for path in tmp_path.iterdir()} == {f"{table}.tbl" for table in TPCH_TABLES}
    assert str((tmp_path / "supplier.tbl").read_text().count("\n")) == tpch_properties(books)["recordcount"]


def test_a_missing_generator_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(UserError, match="tpchgen-cli, which is not there; run `make setup`"):
        make_tpch_data(workload(1), tmp_path)

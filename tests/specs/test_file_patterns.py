"""What a file is for and which table it holds, by the patterns and answers of a spec."""

from typing import Any

import pytest
from pydantic import ValidationError

from knobscope.specs import Dbms
from knobscope.specs.models.file_patterns import Files


def files(**keys: Any) -> Files:
    return Files.model_validate(keys)


INNODB = {
    "data": ["*.ibd", "ibdata1"],
    "log": ["ib_logfile*"],
    "temp": ["ibtmp1"],
    "tables": {"patterns": ["*/{table}.ibd"]},
}


@pytest.mark.parametrize(
    ("file", "role", "table"),
    [
        ("test/usertable.ibd", "data", "usertable"),
        ("deep/er/usertable.ibd", "data", "usertable"),
        ("ibdata1", "data", None),
        ("ib_logfile0", "log", None),
        ("ibtmp1", "temp", None),
        ("ibtmp12", "other", None),
        ("usertable.ibd", "data", None),  # the pattern wants a folder
        ("mysql/a+b.ibd", "data", "a+b"),
    ],
)
def test_patterns_give_role_and_table(file: str, role: str, table: str | None) -> None:
    spec = files(**INNODB)
    assert (spec.role_of(file), spec.table_of(file, {})) == (role, table)


def test_the_first_group_counts_and_only_stars_are_special() -> None:
    spec = files(data=["base/*"], log=["base/log?"], temp=["*/tmp*"])
    assert spec.role_of("base/5/tmp1") == "temp"
    assert spec.role_of("base/log?") == "log"
    assert spec.role_of("base/log1") == "data"
    assert spec.role_of("pg_xact/0000") == "other"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("pgsql_tmp123.0", "temp"),
        ("16384", "other"),  # `base/*` says where files lie, nothing about their names
        ("db-journal", "log"),
    ],
)
def test_of_a_file_that_is_gone_only_the_name_is_matched(name: str, role: str) -> None:
    spec = files(data=["base/*"], log=["db-journal"], temp=["base/pgsql_tmp/pgsql_tmp*"])
    assert spec.role_of(name, is_path=False) == role


def test_answers_cover_segments_and_forks() -> None:
    known = {"base/5/16384": "usertable", "base/5/163": "other"}
    spec = files(tables={"query": "select 1"})
    paths = ("base/5/16384", "base/5/16384.1", "base/5/16384_fsm", "base/5/16384_vm.2")
    assert {spec.table_of(path, known) for path in paths} == {"usertable"}
    assert spec.table_of("base/5/163845", known) is None
    assert spec.table_of("base/5/163", known) == "other"
    assert spec.table_of("base/4/16384", known) is None


@pytest.mark.parametrize("tables", [{}, {"patterns": ["*.ibd"]}, {"patterns": ["{table}/{table}"]}])
def test_what_says_nothing_about_tables_is_refused(tables: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        files(tables=tables)


def test_shipped_specs_know_their_files(postgresql: Dbms, sqlite: Dbms) -> None:
    assert postgresql.files.role_of("pg_wal/000000010000000000000001") == "log"
    assert postgresql.files.role_of("base/pgsql_tmp/pgsql_tmp42.0") == "temp"
    assert postgresql.files.role_of("pgsql_tmp42.0", is_path=False) == "temp"
    assert postgresql.files.role_of("base/5/16384") == "data"
    assert sqlite.files.role_of("ycsb.db-journal", is_path=False) == "log"
    assert sqlite.files.role_of("ycsb.db") == "data"

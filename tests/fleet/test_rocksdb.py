"""RocksDB in the load client, for real: every option arrives, and the library's words are kept when it refuses one."""

from pathlib import Path

import pytest
from short_runs import assert_whole, read_dbms, run_once, unusual_values

pytestmark = [pytest.mark.real, pytest.mark.long]


def test_every_knob_is_in_force_with_a_value_of_its_own(open_directory: Path) -> None:
    rocksdb = read_dbms("rocksdb")
    configuration = unusual_values(rocksdb)
    # these exclude others: disable_wal and sync, unordered and pipelined writes, mapped and direct reads, no cache
    excluded = {"disable_wal", "unordered_write", "allow_mmap_reads", "no_block_cache"}
    assert set(rocksdb.knobs) - set(configuration) <= excluded | {"min_write_buffer_number_to_merge"}
    assert_whole(run_once(rocksdb, configuration, open_directory), configuration, rocksdb)


def test_the_other_ones_are_in_force_too(open_directory: Path) -> None:
    rocksdb = read_dbms("rocksdb")
    configuration = {"disable_wal": True, "unordered_write": True, "allow_mmap_reads": True, "no_block_cache": True}
    assert_whole(run_once(rocksdb, configuration, open_directory), configuration, rocksdb)


def test_defaults_are_what_the_library_says(open_directory: Path) -> None:
    rocksdb = read_dbms("rocksdb")
    configuration = {name: knob.default for name, knob in rocksdb.knobs.items()}
    assert_whole(run_once(rocksdb, configuration, open_directory), configuration, rocksdb)


def test_a_combination_that_rocksdb_refuses_is_a_result_with_its_words(open_directory: Path) -> None:
    configuration = {"use_direct_reads": True, "allow_mmap_reads": True}
    run = run_once(read_dbms("rocksdb"), configuration, open_directory)["run"]
    assert run["status"] == "rejected_value"
    assert "mmap" in run["reason"]

"""`knobscope introspect` on real servers: complete, valid as a spec, in agreement with the curated part."""

import contextlib
import io
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
import yaml
from json_documents import read_document
from shipped_specs import ROOT, shipped_dbms
from waiting import wait_until

from knobscope.cli import main
from knobscope.commands.introspect import ask_catalogue
from knobscope.errors import UserError
from knobscope.servers import compare_effective
from knobscope.specs import Dbms, Introspection, Trial, find_program, read_spec

Introspect = Callable[[str], tuple[Dbms, str]]  # as fixture `introspect`

#: Curated in another way, and why.
ON_PURPOSE = {
    "wal_buffers",  # the catalogue says -1, decided at start
    "max_wal_size",  # with the default of wal_segment_size; the catalogue has that of a file without initdb
    "innodb_io_capacity_max",  # 4294967295 stands for "decided at start"
    "io_max_concurrency",  # the same, -1
    *("key_cache_size", "memtable_heap_space", "memtable_offheap_space"),  # unset, they are shares of the heap
    "cache_spill",  # unset, it depends on the size of the cache
    "temp_store",  # SQLite answers a number for the word
}


@pytest.fixture(scope="module")
def introspect(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Dbms, str]]:
    """Return a function that introspects a DBMS once: a copy of its spec with the list as its knobs, and the list."""

    @cache
    def introspect_once(name: str) -> tuple[Dbms, str]:
        return replace_knobs(name, tmp_path_factory.mktemp(name))

    return introspect_once


def replace_knobs(name: str, folder: Path) -> tuple[Dbms, str]:
    """Introspect, replace the knobs of a copy of the spec by the list, and read that back whole."""
    out = folder / "knobs.yaml"
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["introspect", name, "--out", str(out), "--json", "--root", str(ROOT)]) == 0
    document = read_document("introspect", printed.getvalue())
    assert document["knobs"].keys() == yaml.safe_load(out.read_text())["knobs"].keys()
    for base in ("postgresql", "redis"):
        shutil.copy(ROOT / f"specs/dbms/{base}.yaml", folder)
    text = (ROOT / f"specs/dbms/{name}.yaml").read_text()
    whole = folder / f"{name}.yaml"
    whole.write_text(text[: text.index("\nknobs:\n") + 1] + out.read_text())
    return read_spec(whole, Dbms, None)[1], out.read_text()


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("postgresql", 230),
        pytest.param("mariadb", 400, marks=pytest.mark.long),
        pytest.param("mysql", 370, marks=pytest.mark.fleet),
        pytest.param("postgresql18", 260, marks=pytest.mark.fleet),
    ],
)
def test_the_list_is_a_spec_and_agrees_with_the_curated_part(name: str, least: int, introspect: Introspect) -> None:
    by_hand = shipped_dbms(name)
    if any(find_program(program) is None for program in by_hand.programs.values()):
        pytest.skip(f"{name} is not installed; `knobscope doctor` says how to get it")
    told, text = introspect(name)
    assert len(told.knobs) >= least
    if platform.machine() == "x86_64":
        assert text.count("# read by ") >= 50  # of functions that lead to storage
    shared = set(told.knobs) & set(by_hand.knobs) - ON_PURPOSE
    assert len(shared) >= 25
    for knob in sorted(shared):
        mine, its = by_hand.knobs[knob], told.knobs[knob]
        assert _plain(mine.own_default) == _plain(its.default), knob
        if mine.range is not None and its.range is not None:
            assert its.range[0] <= mine.range[0] < mine.range[1] <= its.range[1], knob
        if mine.values is not None and its.values is not None:
            assert set(map(_plain, mine.values)) <= set(map(_plain, its.values)), knob


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "least", "shared"),
    [
        ("sqlite", 15, 2),
        ("rocksdb", 60, 15),
        ("redis", 60, 12),
        pytest.param("duckdb", 60, 8, marks=pytest.mark.long),
        pytest.param("valkey", 60, 12, marks=pytest.mark.fleet),
        pytest.param("cassandra", 60, 8, marks=pytest.mark.fleet),
    ],
)
def test_settings_without_a_catalogue_are_learnt(name: str, least: int, shared: int, introspect: Introspect) -> None:
    by_hand = shipped_dbms(name)
    if any(find_program(program) is None for program in by_hand.programs.values()):
        pytest.skip(f"{name} is not installed; `knobscope doctor` says how to get it")
    told, _ = introspect(name)
    assert len(told.knobs) >= least
    both = sorted(set(told.knobs) & set(by_hand.knobs) - ON_PURPOSE)
    assert len(both) >= shared
    for knob in both:
        own = by_hand.knobs[knob].own_default
        if own is None:  # it depends on the machine
            assert told.knobs[knob].built_in == by_hand.knobs[knob].built_in, knob
        else:
            assert _plain(own) == _plain(told.knobs[knob].default), knob


def _plain(value: object) -> float | str:
    """One spelling of a value, whatever type two people took for it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    try:
        return float(str(value))
    except ValueError:
        return str(value).lower()


@pytest.mark.real
@pytest.mark.parametrize(
    ("name", "knob", "category"),
    [("postgresql", "wal_compression", "Write-Ahead Log / Settings"), ("redis", "appendfsync", "Append only mode")],
)
def test_categories_and_descriptions_are_the_dbms_own(
    name: str, knob: str, category: str, introspect: Introspect
) -> None:
    by_hand = shipped_dbms(name)
    if any(find_program(program) is None for program in by_hand.programs.values()):
        pytest.skip(f"{name} is not installed; `knobscope doctor` says how to get it")
    assert by_hand.introspect is not None
    if by_hand.introspect.comments is not None and not os.access(by_hand.introspect.comments, os.R_OK):
        pytest.skip(f"{by_hand.introspect.comments} cannot be read by this user")
    told = introspect(name)[0].knobs[knob]
    assert told.category == category
    assert told.description


def test_a_dbms_without_a_question_is_refused_before_anything_starts(sqlite: Dbms) -> None:
    with pytest.raises(UserError, match="no `introspect`"):
        ask_catalogue(sqlite.model_copy(update={"introspect": None}))


@pytest.mark.real
def test_a_client_without_a_server_is_asked_too(sqlite: Dbms) -> None:
    row = json.dumps({"type": "int", "default": 0, "unit": None})
    asked = {
        "query": f"select 'answer', '{row}'",
        "types": {"int": "integer"},
        "apply": {"any": "restart"},
        "source": "https://www.sqlite.org/pragma.html",
    }
    answer = ask_catalogue(sqlite.model_copy(update={"introspect": Introspection.model_validate(asked)}))
    assert answer.rows == {"answer": {"type": "int", "default": 0}}
    assert answer.version.startswith("3.")
    broken = Introspection.model_validate({**asked, "query": "select 'answer', 'no object'"})
    with pytest.raises(UserError, match="'no object' for answer; expected a JSON object"):
        ask_catalogue(sqlite.model_copy(update={"introspect": broken}))


@pytest.mark.real
def test_what_the_spec_calls_the_default_is_that_of_a_redis_that_nobody_configured(tmp_path: Path) -> None:
    redis = shipped_dbms("redis")
    socket = tmp_path / "s"
    server = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(socket), "--dir", str(tmp_path)], stdout=subprocess.DEVNULL
    )
    try:
        assert wait_until(socket.exists)
        asked = ["redis-cli", "-s", str(socket), "config", "get", "*"]
        lines = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.splitlines()
    finally:
        server.terminate()
        server.wait()
    own = {name: knob.model_copy(update={"default": knob.own_default}) for name, knob in redis.knobs.items()}
    defaults = {name: knob.default for name, knob in own.items()}
    in_force = dict(zip(lines[::2], lines[1::2], strict=True))
    assert compare_effective(redis.model_copy(update={"knobs": own}), defaults, in_force)[1] == {}


@pytest.mark.real
def test_words_of_a_broken_connection_are_no_answers() -> None:
    redis = shipped_dbms("redis")
    if any(find_program(program) is None for program in redis.programs.values()):
        pytest.skip("redis is not installed; `knobscope doctor` says how to get it")
    assert redis.introspect is not None
    deadly = Trial(statements=["SHUTDOWN NOSAVE"], says={"": {"type": "integer"}})
    asked = redis.introspect.model_copy(update={"trials": [deadly]})
    with pytest.raises(UserError, match="redis did not answer"):
        ask_catalogue(redis.model_copy(update={"introspect": asked}))


def test_an_unknown_name_lists_those_there_are(refuses: Callable[..., str]) -> None:
    assert "oracle (did you mean that?)" in refuses("introspect", "oracel", "--root", ROOT)


@pytest.mark.real
def test_a_program_that_cannot_be_read_is_an_error_where_it_was_named(
    tmp_path: Path, refuses: Callable[..., str]
) -> None:
    script = tmp_path / "server"
    script.write_text("#!/bin/sh\n")
    out = tmp_path / "knobs.yaml"
    assert "no program in ELF form" in refuses("introspect", "redis", "--program", script, "--out", out, "--root", ROOT)
    assert not out.exists()

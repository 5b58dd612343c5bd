"""`all` in a study: the shipped catalogues become knobs, dangerous ones are left out with a reason, names win."""

import json
import re
import shutil
from pathlib import Path

import pytest

from knobscope.identity import run_identity
from knobscope.specs import (
    Dbms,
    KnobCatalogue,
    KnobChoice,
    SpecErrors,
    StudySpecs,
    catalogue_file,
    load_study,
    read_knob_catalogue,
    read_spec,
)
from knobscope.specs.completing.exclusions import find_reason, read_exclusions

ROOT = Path(__file__).parents[2]
CATALOGUES = sorted(path.stem for path in (ROOT / "specs/dbms/catalogue").glob("*.json"))

STUDY = """\
name: mine
description: all knobs
dbms: [redis]
devices: [memory]
workloads: {ycsb-a: }
knobs:
  redis:
"""


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    for kind in ("dbms", "devices", "workloads", "generators", "exclusions", "startable"):
        shutil.copytree(ROOT / "specs" / kind, tmp_path / kind)
    (tmp_path / "studies").mkdir()
    return tmp_path


def load(shelf: Path, knobs: str, more: str = "", study: str = STUDY) -> StudySpecs:
    path = shelf / "studies/mine.yaml"
    path.write_text(f"{study.rstrip()} {knobs}\n{more}")
    return load_study(path, shelf, runnable=False)


def read_dbms(name: str) -> tuple[Dbms, KnobCatalogue]:
    spec = ROOT / f"specs/dbms/{name}.yaml"
    catalogue = read_knob_catalogue(catalogue_file(spec))
    assert catalogue is not None
    return read_spec(spec, Dbms, None)[1], catalogue


def problems_of(shelf: Path, knobs: str, more: str = "") -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        load(shelf, knobs, more)
    return [f"{one.line}: {one.key}: found {one.found}; expected {one.expected}" for one in caught.value.problems]


@pytest.mark.parametrize("name", CATALOGUES)
def test_every_knob_is_varied_or_left_out_with_a_reason(shelf: Path, name: str) -> None:
    described, catalogue = read_dbms(name)
    study = STUDY.replace("redis", name)
    specs = load(shelf, "all", study=study.replace("ycsb-a", "wtperf-mixed") if name == "wiredtiger" else study)
    varied, left_out = set(specs.study.knobs[name]), specs.left_out[name]
    assert varied | set(left_out) == set(described.knobs) | set(catalogue.knobs)
    assert not varied & set(left_out)
    assert varied <= set(specs.dbms[name].knobs)
    assert all(reason.strip() for reason in left_out.values())
    unreadable = [name for name, reason in left_out.items() if "cannot be asked" in reason]
    assert len(varied) > len(left_out) - len(unreadable)


def test_described_knobs_stay_as_they_are_and_others_come_from_the_catalogue(shelf: Path) -> None:
    described, catalogue = read_dbms("redis")
    knobs = load(shelf, "all").dbms["redis"].knobs
    assert {name: knobs[name] for name in described.knobs} == described.knobs
    tail = knobs["zset-max-listpack-value"]
    assert tail == catalogue.knobs["zset-max-listpack-value"], "a range that is not wide is that of the catalogue"
    assert knobs["databases"].apply == "restart"


def test_all_knobs_without_a_catalogue_are_those_of_the_spec(shelf: Path) -> None:
    (shelf / "dbms/catalogue/redis.json").unlink()
    shutil.rmtree(shelf / "exclusions")
    specs = load(shelf, "all")
    described = read_dbms("redis")[0].knobs
    assert set(specs.study.knobs["redis"]) | set(specs.left_out["redis"]) == set(described)
    assert len(specs.study.knobs["redis"]) > 20


def test_the_word_is_the_key_without_a_filter(shelf: Path) -> None:
    word = load(shelf, "all")
    key = load(shelf, "\n    all:")
    assert (word.study.knobs, word.left_out) == (key.study.knobs, key.left_out)
    assert load(shelf, "{all: {}}").study.knobs == word.study.knobs


def test_what_is_said_by_name_wins_also_over_exclusions(shelf: Path) -> None:
    specs = load(shelf, "{all: , timeout: {values: [0, 300]}, hz: {range: [1, 20]}, slowlog-max-len: }")
    chosen = specs.study.knobs["redis"]
    assert "timeout" in load(shelf, "all").left_out["redis"]
    assert "timeout" not in specs.left_out["redis"]
    assert chosen["timeout"] == KnobChoice(values=[0, 300])
    assert chosen["hz"] == KnobChoice(range=[1, 20])
    assert specs.dbms["redis"].knobs["slowlog-max-len"].range == [0, 2**63 - 1]


def test_filters_choose_by_name_and_by_when_a_change_takes_effect(shelf: Path) -> None:
    by_name = load(shelf, '{all: {names: ["lazyfree-*", hz], except: [lazyfree-lazy-user-*]}}')
    chosen = set(by_name.study.knobs["redis"])
    assert chosen == {"hz", "lazyfree-lazy-eviction", "lazyfree-lazy-expire", "lazyfree-lazy-server-del"}
    assert by_name.left_out["redis"] == {}, "what a filter does not ask for is not left out"
    restart = load(shelf, "{all: {apply: [restart]}}")
    knobs = restart.dbms["redis"].knobs
    assert {knobs[name].apply for name in restart.study.knobs["redis"]} == {"restart"}


def test_knobs_of_several_dbms_are_chosen_by_mechanism(shelf: Path) -> None:
    study = STUDY.replace("[redis]", "[redis, postgresql]")
    specs = load(
        shelf, "{all: {mechanism: [flush]}}\n  postgresql: {all: {mechanism: [flush, double_write]}}", "", study
    )
    for name, mechanisms in (("redis", {"flush"}), ("postgresql", {"flush", "double_write"})):
        dbms, listed = read_dbms(name)
        every = {**listed.knobs, **dbms.knobs}
        wanted = {knob for knob, spec in every.items() if spec.mechanism in mechanisms and knob not in dbms.without}
        left_out = set(specs.left_out[name])
        assert set(specs.study.knobs[name]) == wanted - left_out
        assert left_out <= wanted - set(dbms.knobs), "what a spec describes is never left out"
    narrower = load(shelf, "{all: {mechanism: [flush], except: [rdb-*], apply: [dynamic]}}").study.knobs["redis"]
    assert "appendfsync" in narrower
    assert not {"appendonly", "rdb-save-incremental-fsync"} & set(narrower)


def test_knobs_are_chosen_by_category(shelf: Path) -> None:
    log = load(shelf, "{all: {category: [Append only*]}}")
    dbms, listed = read_dbms("redis")
    wanted = {name for name, knob in listed.knobs.items() if knob.category == "Append only mode"}
    assert set(log.study.knobs["redis"]) == wanted - set(log.left_out["redis"])
    assert "appendfsync" in dbms.knobs and "appendfsync" in wanted, "the catalogue tells it of a knob of the spec, too"
    assert "hz" not in log.study.knobs["redis"]


def test_a_category_that_a_dbms_does_not_have_is_a_problem(shelf: Path) -> None:
    found = problems_of(shelf, "{all: {category: [Append*, WAL*]}}")
    assert len(found) == 1
    assert found[0].startswith("7: knobs.redis.all.category.1: found 'WAL*'; expected one that its knobs have: [")
    (shelf / "dbms/catalogue/redis.json").write_text(
        re.sub(r'"category": "[^"]*", ', "", (shelf / "dbms/catalogue/redis.json").read_text())
    )
    found = problems_of(shelf, "{all: {category: [Append*]}}")
    assert found[0].endswith("found 'Append*'; expected no category: redis has none")


def test_a_mechanism_that_a_dbms_does_not_have_is_a_problem(shelf: Path) -> None:
    found = problems_of(shelf, "{all: {mechanism: [flush, double_write]}}")
    assert len(found) == 1
    assert found[0].startswith(
        "7: knobs.redis.all.mechanism.1: found 'double_write', which no knob of redis has; expected one that its knobs"
    )


def test_wide_ranges_come_near_the_default_and_small_ones_stay(shelf: Path) -> None:
    knobs = load(shelf, "all").dbms["redis"].knobs
    told = read_dbms("redis")[1].knobs
    assert told["slowlog-max-len"].range == [0, 2**63 - 1]
    assert (knobs["slowlog-max-len"].range, knobs["slowlog-max-len"].scale) == ([13, 1280], "log")
    assert knobs["active-expire-effort"].range == told["active-expire-effort"].range == [1, 10]
    assert knobs["repl-diskless-sync-max-replicas"].range == [1, 1000], "its default is 0, of no order of magnitude"
    assert knobs["repl-diskless-sync-max-replicas"].problem_with(0) is None


def test_a_wide_range_is_narrowed_around_the_baseline(shelf: Path) -> None:
    specs = load(shelf, "all", "baseline: {redis: {slowlog-max-len: 5000}}")
    assert specs.dbms["redis"].knobs["slowlog-max-len"].range == [500, 50000]


def test_values_stay_within_what_is_known_to_start(shelf: Path) -> None:
    refused = {"value": 500, "words": "no"}
    knob = {"asked": [1, 10**6], "startable": [100, 400], "below": {"value": 90, "words": "no"}, "above": refused}
    record = {"dbms": "redis", "version": "9", "tried": "2026-01-01", "knobs": {"slowlog-max-len": knob}}
    (shelf / "startable/redis-9.json").write_text(json.dumps(record))
    assert load(shelf, "all").dbms["redis"].knobs["slowlog-max-len"].range == [100, 400]


def test_a_knob_without_readback_is_left_out(shelf: Path) -> None:
    text = (shelf / "dbms/redis.yaml").read_text()
    (shelf / "dbms/redis.yaml").write_text(text.replace("  dynamic-hz:\n", "  dynamic-hz:\n    readable: false\n"))
    assert load(shelf, "all").left_out["redis"]["dynamic-hz"] == "the DBMS cannot be asked for its value in force"


def test_wrong_filters_are_reported_at_once(shelf: Path) -> None:
    found = problems_of(shelf, "\n    all: {names: [hz, lazzyfree-*], except: [hertz]}", "sweep: {always: [hz, hzz]}")
    assert [line.split(";")[0] for line in found] == [
        "8: knobs.redis.all.except.0: found 'hertz'",
        "8: knobs.redis.all.names.1: found 'lazzyfree-*'",
    ]
    found = problems_of(
        shelf, "\n    all: {apply: [now], mechanism: [sync], mechanisms: [flush]}\n    hz: {values: [0.5]}"
    )
    assert [line.split(";")[0] for line in found] == [
        "8: knobs.redis.all.apply.0: found 'now'",
        "8: knobs.redis.all.mechanism.0: found 'sync'",
        "8: knobs.redis.all.mechanisms: found an unknown key",
        "9: knobs.redis.hz.values.0: found 0.5",
    ]


def test_filters_that_leave_nothing_are_a_problem(shelf: Path) -> None:
    assert problems_of(shelf, "{all: {names: [timeout]}}") == [
        "7: knobs.redis: found no knob that is left; expected filters that some knob passes"
    ]


def test_a_knob_that_is_always_swept_may_come_from_the_catalogue_but_must_be_varied(shelf: Path) -> None:
    always = "sweep: {always: [lfu-log-factor, timeout]}"
    found = problems_of(shelf, "all", always)
    assert len(found) == 1
    assert found[0].startswith("8: sweep.always.1: found 'timeout'; expected a knob that the study varies: ")
    assert load(shelf, "all", always.replace(", timeout", "")).study.sweep.always == ["lfu-log-factor"]


def test_a_folder_without_exclusions_is_a_problem(shelf: Path) -> None:
    shutil.rmtree(shelf / "exclusions")
    assert [line.split(";")[0] for line in problems_of(shelf, "all")] == [
        "7: knobs.redis: found all knobs of redis without exclusions"
    ]


def test_a_broken_file_of_exclusions_names_its_line(shelf: Path) -> None:
    (shelf / "exclusions/mine.yaml").write_text("description: x\nexclusions:\n  - {reason: x, knobs: []}\n")
    with pytest.raises(SpecErrors, match=r"exclusions/mine.yaml:3: exclusions.0.knobs: found \[\]"):
        load(shelf, "all")


def test_exclusions_of_a_users_own_count_too(shelf: Path) -> None:
    mine = "description: x\nexclusions:\n  - {reason: mine, knobs: [lfu-*, hz], dbms: [redis]}\n"
    (shelf / "exclusions/mine.yaml").write_text(mine)
    left_out = load(shelf, "all").left_out["redis"]
    assert (left_out["lfu-log-factor"], left_out["lfu-decay-time"]) == ("mine", "mine")
    assert "hz" not in left_out, "the spec describes it"


def test_every_shipped_exclusion_fits_a_shipped_catalogue() -> None:
    pairs = [read_dbms(name) for name in CATALOGUES]
    for exclusion in read_exclusions(ROOT / "specs/exclusions"):
        assert any(exclusion.concerns(dbms, knob) for dbms, catalogue in pairs for knob in catalogue.knobs), exclusion


@pytest.mark.parametrize(
    ("name", "dangerous"),
    [
        ("redis", ["acl-pubsub-default", "timeout", "tcp-backlog", "shutdown-on-sigterm", "min-replicas-to-write"]),
        ("postgresql", ["max_connections", "statement_timeout", "password_encryption", "syslog_facility"]),
        ("mariadb", ["max_connections", "wait_timeout", "skip_name_resolve", "completion_type", "max_allowed_packet"]),
        ("mysql", ["max_connections", "auto_generate_certs", "autocommit", "log_raw", "net_read_timeout"]),
        ("cassandra", ["read_request_timeout", "write_request_timeout", "auto_snapshot"]),
    ],
)
def test_what_endangers_a_run_is_left_out(name: str, dangerous: list[str]) -> None:
    dbms, catalogue = read_dbms(name)
    exclusions = read_exclusions(ROOT / "specs/exclusions")
    assert set(dangerous) <= set(catalogue.knobs)
    assert [knob for knob in dangerous if find_reason(exclusions, dbms, knob) is None] == []


def test_a_rule_for_a_dbms_holds_for_those_that_extend_it() -> None:
    exclusions = read_exclusions(ROOT / "specs/exclusions")
    assert find_reason(exclusions, read_dbms("postgresql18")[0], "log_parser_stats") is not None
    assert find_reason(exclusions, read_dbms("mariadb")[0], "log_parser_stats") is None


def test_a_run_is_the_same_whether_its_knobs_were_named_or_all_were_asked_for(shelf: Path) -> None:
    asked = load(shelf, "{all: {names: [hz, slowlog-max-len]}}")
    named = load(shelf, "{hz: , slowlog-max-len: }")
    identities = [run_identity(one, one.cases[0], "screen", one.study.knobs["redis"]) for one in (asked, named)]
    assert identities[0] == identities[1]

"""What differs between two set-ups, and what that means for the speed of the default configuration."""

import math
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from shipped_specs import ROOT

from knobscope.commands.compare import Comparison
from knobscope.commands.compare.words import default_sentences, equal_sentence, summarise

Make = Callable[..., Path]
Compare = Callable[..., Comparison]
Changed = Callable[..., Path]


def differences(comparison: Comparison) -> dict[str, tuple[str, str]]:
    return {one.what: (one.a, one.b) for one in comparison.setup.differences}


def sentences(comparison: Comparison) -> str:
    return " ".join(default_sentences(comparison.cases[0]))


def test_equal_set_ups_have_no_difference(make_database: Make, compare: Compare) -> None:
    comparison = compare(make_database(seed=1), make_database(seed=2))
    assert comparison.setup.differences == []
    assert {"knobscope version", "DBMS", "device", "workload", "workload's records"} <= set(comparison.setup.equal)
    assert comparison.setup.unknown == []
    assert summarise(comparison)[-1] == "Nothing that the databases record of the set-ups differs."
    assert comparison.cases[0].workloads.comparable is True


def test_the_page_names_facts_as_the_command_does(make_database: Make, compare: Compare) -> None:
    page = (ROOT / "docs/how-to/comparing.md").read_text()
    (shown,) = re.findall(r"\nEqual: (.*?), digest of", page, re.DOTALL)
    comparison = compare(make_database(seed=1), make_database(seed=2))
    names = {*" ".join(shown.split()).split(", ")}
    assert names - {"kernel", "processor", "memory", "DBMS version"} <= {*comparison.setup.equal}  # of real runs only


def test_only_what_differs_is_listed(make_database: Make, compare: Compare, changed: Changed) -> None:
    a = changed(
        make_database(seed=1),
        "UPDATE runs SET machine = 'Linux 6.1, 4 cores of a processor, 8 GiB of memory', dbms_version = '15.3'",
    )
    b = changed(
        make_database(seed=2),
        "UPDATE runs SET machine = 'Linux 6.12, 4 cores of a processor, 8 GiB of memory', dbms_version = '18.1'",
        "UPDATE device_profile SET random_read_iops_qd1 = 7000, random_read_iops_best = 1.05 * random_read_iops_best",
        "UPDATE knob_values SET value = '16' WHERE knob = 'buffer' AND value = '8'",
    )
    comparison = compare(a, b)
    assert differences(comparison) == {
        "kernel": ("Linux 6.1", "Linux 6.12"),
        "DBMS version": ("15.3", "18.1"),
        "random 4 KiB reads, one at a time (fio)": ("5,000\u00a0/s", "7,000\u00a0/s"),
        "default of buffer": ("8", "16"),
    }
    assert "processor" in comparison.setup.equal
    assert "memory" in comparison.setup.equal
    assert "random 4 KiB reads, at best (fio)" in comparison.setup.equal  # 5 % is within what counts as equal
    assert "4 values of the default configuration" in equal_sentence(comparison).replace("\u00a0", " ")
    assert summarise(comparison)[-1].startswith("The set-ups of A and B differ in kernel, DBMS version")


def test_a_device_that_measures_otherwise_is_a_warning(make_database: Make, compare: Compare, changed: Changed) -> None:
    a = make_database(seed=1)
    slower = changed(make_database(seed=2), "UPDATE device_profile SET random_read_iops_qd1 = 2000")
    warning = "The same device measured otherwise"
    assert warning in equal_sentence(compare(a, slower))
    assert warning not in equal_sentence(compare(a, make_database(seed=2)))
    other = changed(slower, "UPDATE setup SET value = 'hdd' WHERE part = 'device' AND property = 'tier'",
                    "UPDATE setup SET value = 'false' WHERE property = 'dedicated'")  # fmt: skip
    assert warning not in equal_sentence(compare(a, other))


def test_what_one_database_lacks_is_no_difference(make_database: Make, compare: Compare, changed: Changed) -> None:
    b = changed(make_database(seed=2), "UPDATE runs SET machine = 'Linux 6.1, 4 cores of a processor'")
    comparison = compare(make_database(seed=1), b)
    assert comparison.setup.differences == []
    assert comparison.setup.unknown == ["kernel", "processor"]
    assert "Recorded in one database only: kernel and processor." in equal_sentence(comparison)


@pytest.mark.parametrize(("name", "shown"), [("loop4", {}), ("sda", {"block device": ("sda", "loop2")})])
def test_the_number_of_a_loop_device_is_no_difference(
    make_database: Make, compare: Compare, changed: Changed, name: str, shown: dict[str, tuple[str, str]]
) -> None:
    sides = [
        changed(make_database(seed=seed), f"UPDATE device_profile SET block_device = '{block}'")  # noqa: S608 - ours
        for seed, block in ((1, name), (2, "loop2"))
    ]
    assert differences(compare(*sides)) == shown


def test_devices_of_other_names_are_shown_with_their_figures(make_database: Make, compare: Compare) -> None:
    a = make_database(seed=1)
    b = make_database(seed=2, devices=("nvme2",), write_iops=3000.0, device_gain=18.0)
    comparison = compare(a, b)
    found = differences(comparison)
    assert found["device"] == ("nvme", "nvme2")
    assert found["random 4 KiB reads, at best (fio)"] == ("45,000\u00a0/s", "90,000\u00a0/s")
    assert {one.subject for one in comparison.setup.differences} == {"nvme, nvme2"}


def test_the_speed_of_the_default_configuration_has_an_interval_of_blocks(
    make_database: Make, compare: Compare
) -> None:
    comparison = compare(
        make_database(seed=1, repeats=5), make_database(seed=2, repeats=5, levels={"nvme": math.log(2)})
    )
    throughput, latency = comparison.cases[0].levels
    assert (throughput.a.blocks, throughput.b.blocks) == (5, 5)
    assert throughput.low is not None and throughput.high is not None
    assert throughput.low < math.log(2) < throughput.high
    assert 0.1 < throughput.high - throughput.low < 0.6  # blocks differ by 10 %, runs by 2 %
    assert latency.estimate == pytest.approx(-(throughput.estimate or 0), abs=0.05)
    assert "B is" in summarise(comparison)[0] and "faster" in summarise(comparison)[0]


def test_one_block_has_no_interval(make_database: Make, compare: Compare, changed: Changed) -> None:
    b = changed(make_database(seed=2), "DELETE FROM runs WHERE block_id <> (SELECT min(block_id) FROM runs)")
    measured = compare(make_database(seed=1), b).cases[0].levels[0]
    assert measured.estimate is not None
    assert measured.low is None and measured.p_value is None
    assert measured.reason == "B measured it in one block only, and one block tells nothing about the next"


def test_blocks_that_cannot_be_compared_are_left_out(make_database: Make, compare: Compare, changed: Changed) -> None:
    b = changed(
        make_database(seed=2),
        "UPDATE blocks SET treatment = 'dropped' WHERE block_id = (SELECT min(block_id) FROM runs)",
    )
    assert compare(make_database(seed=1), b).cases[0].levels[0].b.blocks == 2


def test_sessions_on_another_level_are_left_out(make_database: Make, compare: Compare, changed: Changed) -> None:
    b = changed(
        make_database(seed=2),
        "UPDATE runs SET throughput_ops = 5 * throughput_ops WHERE block_id = (SELECT min(block_id) FROM runs)",
        "UPDATE blocks SET level = 0.0, other_level = block_id = (SELECT min(block_id) FROM runs)",
    )
    measured = compare(make_database(seed=1), b).cases[0].levels[0]
    assert measured.b.blocks == 2
    assert (measured.b.mean or 0) < 2000
    all_unusual = changed(b, "UPDATE blocks SET other_level = true")
    assert compare(make_database(seed=1), all_unusual).cases[0].levels[0].b.blocks == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("UPDATE setup SET value = '200' WHERE property = 'records'", "the workloads differ in records"),
        ("UPDATE setup SET value = '9' WHERE property = 'threads'", "the workloads differ in threads"),
        ("INSERT INTO setup VALUES ('workload', 'ycsb-a', 'parameters.readproportion', '0.9')", "readproportion"),
    ],
)
def test_other_workloads_are_compared_in_effects_only(
    make_database: Make, compare: Compare, changed: Changed, change: str, reason: str
) -> None:
    comparison = compare(make_database(seed=1), changed(make_database(seed=2), change))
    throughput, latency = comparison.cases[0].levels
    assert throughput.estimate is None and latency.estimate is None
    assert reason in throughput.reason
    assert "throughput is not compared" in summarise(comparison)[0]
    assert "Effects of knobs are ratios within each study" in sentences(comparison)
    assert sum(one.verdict == "no_difference" for one in comparison.effects) == 18


def test_a_client_host_is_part_of_the_set_up(make_database: Make, compare: Compare, changed: Changed) -> None:
    b = changed(make_database(seed=2), "INSERT INTO setup VALUES ('study', 'x', 'client.host', 'loadgen')")
    assert differences(compare(make_database(seed=1), b)) == {"load generator on": ("the DBMS's machine", "loadgen")}


def test_lengths_of_the_window_do_not_hinder(make_database: Make, compare: Compare, changed: Changed) -> None:
    b = changed(make_database(seed=2), "UPDATE setup SET value = '60' WHERE property = 'measure_s'")
    comparison = compare(make_database(seed=1), b)
    assert comparison.cases[0].workloads.comparable is True
    assert differences(comparison) == {"workload's measure_s": ("5", "60")}


def test_studies_one_after_the_other_are_distinguished(make_database: Make, compare: Compare, changed: Changed) -> None:
    def at(seed: int, start: str) -> Path:
        told = f"UPDATE runs SET started_at = TIMESTAMP '{start}' + INTERVAL (position) MINUTE"  # noqa: S608
        return changed(make_database(seed=seed), told)

    first = at(1, "2026-01-01 10:00:00")
    later = compare(first, at(2, "2026-01-03 10:00:00"))
    assert later.cases[0].times.interleaved is False
    said = sentences(later)
    assert "all runs of A were over before those of B began, so a difference may be the machine's" in said
    assert [(level.estimate is None, level.low) for level in later.cases[0].levels] == [(False, None)] * 2
    assert "time and system cannot be distinguished" in said
    assert later.cases[0].others.reason == later.cases[0].levels[0].reason
    assert all(level.low is not None for level in compare(first, at(2, "2026-01-01 14:00:00")).cases[0].levels)
    assert "2026-01-01 10:00" in said and "2026-01-03 10:00" in said
    earlier = compare(at(3, "2026-01-03 10:00:00"), first)
    assert "all runs of B were over before those of A began" in sentences(earlier)
    among = compare(first, at(2, "2026-01-01 10:02:00"))
    assert among.cases[0].times.interleaved is True
    assert "overlap in time. Where two ran at the same moment on one machine" in sentences(among)


def test_runs_of_both_studies_are_noticed(make_database: Make, compare: Compare, changed: Changed) -> None:
    a = changed(make_database(seed=1), "UPDATE runs SET started_at = TIMESTAMP '2026-01-01 10:00:00'")
    (note,) = compare(a, changed(a, "DELETE FROM runs WHERE position = 3")).notes
    assert "runs of A are in B, too" in note.replace("\u00a0", " ")


def test_specs_of_imported_studies_are_not_believed(make_database: Make, compare: Compare, changed: Changed) -> None:
    b = changed(make_database(seed=2), "UPDATE runs SET session = 'imported'")
    comparison = compare(make_database(seed=1), b)
    assert comparison.cases[0].workloads.comparable is None
    assert "Whether both were asked for the same cannot be told: the database of B does not record" in sentences(
        comparison
    )
    assert "workload's records" in comparison.setup.unknown

"""SQLite on a device whose flush is slow, without it, and with an even slower one: the flush is found as the cause."""

import math
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from emulated import find_direct_memory, require_models
from studies import make_folder
from waiting import wait_until

from knobscope.devices import bring_up, load_device, take_down
from knobscope.durable_files import write_sealed
from knobscope.specs import Case, load_study
from knobscope.specs.models.transport import Transport, write_transport
from knobscope.stages.remeasure import answering
from knobscope.stages.remeasure.answering import answer_questions
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import Bench, measure_pairs
from knobscope.stages.remeasure.judging import judge_finding
from knobscope.stages.remeasure.properties import layered_devices, what_if_devices
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import Amount

STUDY = """
name: tiny
description: SQLite, asked for causes in miniature
dbms: [sqlite]
devices: [slow-flush]
workloads:
  ycsb-a: {records: 100, threads: 1, warmup_s: 0.1, measure_s: 0.4}
knobs:
  sqlite:
    synchronous: {values: [off, full]}
monitor: procfs
remeasure: {what_if: 4, repeats: 3}
"""
DEVICE = """
name: slow-flush
description: nothing takes time but the flush
tier: nvme_ssd
emulate:
  image_directory: %s
  size: 64MiB
  model: {kind: flash, channels: 1, read: 0us, write: 0us, cache: 16MiB, drain: 900MB/s, flush: 20ms}
"""

pytestmark = pytest.mark.real


@pytest.fixture
def project(open_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    require_models()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write_transport(Transport(0, 0, 0, 0, 0, 1e9, 1e9, 1e12, 1e12))
    make_folder(tmp_path, "devices")
    (tmp_path / "specs/devices/slow-flush.yaml").write_text(DEVICE % open_directory)
    (tmp_path / "specs/studies/tiny.yaml").write_text(STUDY)
    write_sealed(tmp_path / "slow-flush.json", {"preferred_write_bytes": 4096, "tier": "nvme_ssd"})
    return tmp_path


def ask_until_decided(bench: Bench, ask: Callable[[Bench], tuple[list[Answer], list[dict[str, Any]]]]) -> Any:
    """Ask in new runs while noise leaves the first answer open: other work on the machine is noise, and passes."""
    for round_ in range(4):
        answers, runs = ask(replace(bench, round=round_))
        if answers[0].conclusion != "undecided":
            break
    return answers, runs


def test_the_flush_is_found_as_the_cause(project: Path) -> None:
    specs = load_study(project / "specs/studies/tiny.yaml", project)
    device = specs.devices["slow-flush"]
    bench = Bench(specs, project, project / "store", {"slow-flush": project / "slow-flush.json"}, repeats=4)
    case = Case("sqlite", "slow-flush", "ycsb-a")
    full = {"synchronous": "full"}
    blamed = frozenset({"flush"})
    question = Question(case, "synchronous", "off", {"synchronous": "off"}, full, (0,), blamed=blamed)
    idle = Question(case, "temp_store", "memory", {**full, "temp_store": "memory"}, full, (1,), blamed=blamed)
    what_ifs = what_if_devices(device)
    try:
        (answer, _), runs = ask_until_decided(
            bench, lambda bench: answer_questions(bench, device, what_ifs, [question, idle])
        )
        images = Path(str(device.emulate and device.emulate.image_directory)) / ".knobscope-devices"
        assert [path.name for path in images.iterdir()] == ["slow-flush"]  # the what-if device is gone with its data
    finally:
        take_down(device, project)
    assert {row["status"] for row in runs} == {"ok"}
    references = {
        knob: [
            row["run_id"] for row in runs if row["is_reference"] and (row["knob"], row["property"]) == (knob, "none")
        ]
        for knob in ("synchronous", "temp_store")
    }
    assert references["synchronous"] == references["temp_store"]  # both values ran beside the same ones
    assert len(set(references["synchronous"])) == 4
    assert len([row for row in runs if row["knob"] == "synchronous"]) == 2 * 2 * 4
    assert answer.conclusion == "cause", answer.describe()
    assert answer.causes[0][0] == "flush"
    assert answer.amounts["none"].mean < -15000  # a flush and more, saved for each update of two operations
    assert len(list((project / "store").glob("*.json"))) >= len({row["run_id"] for row in runs})


@pytest.mark.skipif(os.geteuid() != 0, reason="makes a mount namespace")
def test_runs_count_though_something_holds_their_device_at_the_end(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mount namespace that is made while a device is up has its file system mounted, too, until it ends."""
    monkeypatch.setattr("knobscope.devices.folder._PATIENCE_S", 0.2)
    specs = load_study(project / "specs/studies/tiny.yaml", project)
    bench = Bench(specs, project, project / "store", {"slow-flush": project / "slow-flush.json"}, repeats=1)
    case, full = Case("sqlite", "slow-flush", "ycsb-a"), {"synchronous": "full"}
    question = Question(case, "synchronous", "off", {"synchronous": "off"}, full, (0,), blamed=frozenset({"flush"}))
    what_if = what_if_devices(specs.devices["slow-flush"])["flush"]
    bring_up(what_if, project)
    with subprocess.Popen(["unshare", "--mount", "sleep", "600"]) as holder:
        try:
            wait_until(lambda: Path(f"/proc/{holder.pid}/comm").read_text() == "sleep\n")
            ((_, rows),) = measure_pairs(bench, what_if, "flush", [question])
        finally:
            holder.kill()
            holder.wait()
            take_down(what_if, project)
    assert [row["status"] for row in rows] == ["ok", "ok"]
    assert f"{what_if.name} stays up: " in capsys.readouterr().err


@pytest.mark.long
def test_what_merging_flushed_writes_gains_is_measured_and_said(project: Path) -> None:
    specs = load_study(project / "specs/studies/tiny.yaml", project)
    device = specs.devices["slow-flush"]
    bench = Bench(specs, project, project / "store", {"slow-flush": project / "slow-flush.json"}, repeats=4)
    changed, full = {"synchronous": "off"}, {"synchronous": "full"}
    case, blamed = Case("sqlite", "slow-flush", "ycsb-a"), frozenset({"flush"})
    question = Question(case, "synchronous", "off", changed, full, (0,), blamed=blamed)
    layers = {"merged": layered_devices(device)["merged"]}
    try:
        for round_ in range(4):  # other work on the machine is noise, and passes
            (answer,), _ = answer_questions(replace(bench, round=round_), device, layers, [question])
            if answer.describe_gains():
                break
    finally:
        take_down(device, project)
    gain = answer.gains["merged"]
    assert (gain.setting, layers["merged"].change) == ("synchronous = full", {"merge": "32KiB"})
    assert gain.log_ratio.interval()[0] > math.log(1.2)  # an update writes a few pages for each flush of 20 ms
    assert "With a flush only when 32 KiB have been written, synchronous = full would be " in answer.describe_gains()
    (row,) = (row for row in answer.rows() if row["property"] == "merged")
    assert row["gain"] == gain.log_ratio.mean


@pytest.mark.long
def test_on_a_device_without_a_model_an_effect_that_is_not_there_is_withdrawn(
    project: Path, open_directory: Path
) -> None:
    (project / "specs/devices/plain.yaml").write_text(
        f"name: plain\ndescription: a folder\ntier: nvme_ssd\npath: {open_directory}\n"
    )
    study = project / "specs/studies/plain.yaml"
    study.write_text(STUDY.replace("tiny", "plain").replace("slow-flush", "plain"))
    write_sealed(project / "plain.json", {"preferred_write_bytes": 4096, "tier": "nvme_ssd"})
    specs = load_study(study, project)
    bench = Bench(specs, project, project / "store", {"plain": project / "plain.json"}, repeats=4)
    changed, full = {"temp_store": "memory"}, {"synchronous": "full"}
    case = Case("sqlite", "plain", "ycsb-a")
    seen = Amount(-2.0, 0.1, 6)
    question = Question(case, "temp_store", "memory", full | changed, full, (0,), swept=seen, followed=False)
    (answer,), runs = answer_questions(bench, specs.devices["plain"], {}, [question])
    assert {(row["property"], row["status"]) for row in runs} == {("none", "ok")}
    assert answer.pairs["none"] in (4, 8, 12)
    assert sorted({row["pair"] for row in runs}) == list(range(answer.pairs["none"]))
    assert answer.conclusion == "gone", answer.describe()
    assert judge_finding(answer, None, "It is slow.")["confirmed"] == "no"
    known = {row["run_id"] for row in runs}
    repeated = [row for _, rows in measure_pairs(bench, specs.devices["plain"], "none", [question]) for row in rows]
    assert {row["run_id"] for row in repeated} <= known
    others = measure_pairs(replace(bench, round=2), specs.devices["plain"], "none", [question])
    assert known.isdisjoint(row["run_id"] for _, rows in others for row in rows)


@pytest.mark.long
def test_on_a_device_that_can_only_be_made_slower_waiting_for_flushes_is_found(
    project: Path, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The drive is a modelled one, of which nobody knows that here: what its flush costs is known."""
    monkeypatch.setattr(answering, "_LEAST_ROOM", 64 << 20)
    file = project / "specs/devices/slow-flush.yaml"
    memory = str(find_direct_memory(open_directory))
    text = file.read_text().replace("64MiB", "320MiB").replace("20ms", "5ms").replace(str(open_directory), memory)
    file.unlink()
    own = f"slow-flush-{os.getpid()}"
    (file.with_name(f"{own}.yaml")).write_text(text.replace("name: slow-flush", f"name: {own}"))
    drive = load_device(own, project)
    try:
        study = project / "specs/studies/drive.yaml"
        (project / "specs/devices/drive.yaml").write_text(
            f"name: drive\ndescription: a drive\ntier: nvme_ssd\ndedicated: true\npath: {bring_up(drive, project)}\n"
        )
        study.write_text(STUDY.replace("tiny", "drive").replace("slow-flush", "drive").replace("procfs", "bpf"))
        write_sealed(project / "drive.json", {"preferred_write_bytes": 4096, "tier": "nvme_ssd"})
        specs = load_study(study, project)
        bench = Bench(specs, project, project / "store", {"drive": project / "drive.json"}, repeats=4)
        case, full = Case("sqlite", "drive", "ycsb-a"), {"synchronous": "full"}
        question = Question(case, "synchronous", "off", {"synchronous": "off"}, full, (0,))
        (answer,), runs = ask_until_decided(
            bench, lambda bench: answering.answer_with_delays(bench, specs.devices["drive"], [question])
        )
        left = Path(str(specs.devices["drive"].path)) / ".knobscope-devices"
        assert not left.exists()  # the files that were put on the drive are gone
    finally:
        take_down(drive, project)
    if not answer.is_watched:
        pytest.skip("BPF cannot be used here")
    assert {row["status"] for row in runs} == {"ok"}
    assert {row["property"] for row in runs} >= {"none", "no_delay", "write_delay", "flush_delay"}
    assert answer.conclusion == "cause", answer.describe()
    assert answer.causes[0][0] == "flush_delay"
    assert 0.5 < answer.shares["flush_delay"].estimate < 1.5
    (of_flushes,) = [row for row in answer.list_sensitivities() if row["op"] == "flush" and row["is_reference"]]
    assert of_flushes["request_us"] > 4000
    assert -1.5 < of_flushes["sensitivity"] < -0.5

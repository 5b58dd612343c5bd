"""Settings of the kernel become knobs: what is planned with them, and what is refused."""

import re
from pathlib import Path

import pytest

from knobscope.specs import Case, SpecErrors, StudySpecs, load_study, select_fields, split_kernel, with_filesystem
from knobscope.stages.plan import case_space
from knobscope.stages.plan.search_space import search_space

STUDY = """name: varied
description: x
dbms: [server]
devices: [DEVICE]
workloads: {mix: }
knobs:
  server:
    flush:
factors:
  FAMILY: {SETTINGS}
"""


def load(shelf: Path, settings: str, device: str = "image", family: str = "queue") -> StudySpecs:
    text = STUDY.replace("FAMILY", family).replace("SETTINGS", settings).replace("DEVICE", device)
    (shelf / "studies/varied.yaml").write_text(text)
    return load_study(shelf / "studies/varied.yaml", shelf, runnable=False)


def problems(shelf: Path, settings: str, device: str = "image", family: str = "queue") -> list[str]:
    with pytest.raises(SpecErrors) as raised:
        load(shelf, settings, device, family)
    return [f"{one.key}: found {one.found}; expected {one.expected}" for one in raised.value.problems]


def test_the_first_value_is_the_default(shelf: Path) -> None:
    specs = load(shelf, "scheduler: [none, mq-deadline], read_ahead_kb: [128, 4096, 0]")
    space = case_space(specs, Case("server", "image", "mix"))
    assert space.levels["queue.scheduler"] == ["none", "mq-deadline"]
    assert space.levels["queue.read_ahead_kb"] == [0, 128, 4096]
    assert space.default == {"flush": True, "queue.scheduler": "none", "queue.read_ahead_kb": 128}


def test_settings_of_the_mount_are_knobs_too_and_one_of_them_risks_data(shelf: Path) -> None:
    device = shelf / "devices/image.yaml"
    device.write_text(device.read_text().replace("xfs", "ext4"))
    specs = load(shelf, "barrier: [true, false], commit_s: [5, 60], atime: [relatime, noatime]", family="mount")
    space = case_space(specs, Case("server", "image", "mix"))
    assert space.default["mount.barrier"] is True
    assert space.levels["mount.barrier"] == [False, True]
    assert space.levels["mount.commit_s"] == [5, 60]
    assert space.levels["mount.atime"] == ["relatime", "noatime"]
    assert specs.dbms["server"].knobs["mount.barrier"].durability == [False]
    assert specs.dbms["server"].knobs["mount.atime"].mechanism == "kernel"


def test_the_settings_of_the_page_go_together(shelf: Path) -> None:
    device = shelf / "devices/image.yaml"
    device.write_text(device.read_text().replace("xfs", "ext4"))
    page = (Path(__file__).parents[2] / "docs/how-to/workload-factors.md").read_text()
    blocks = re.findall(r"^```yaml\n(factors:\n.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        text = STUDY.partition("factors:")[0].replace("DEVICE", "image") + block
        (shelf / "studies/varied.yaml").write_text(text)
        load_study(shelf / "studies/varied.yaml", shelf, runnable=False)


def test_file_systems_are_loaded_each_by_itself(shelf: Path) -> None:
    specs = load(shelf, "type: [ext4, xfs], block_bytes: [4096, 1024]", family="filesystem")
    space = case_space(specs, Case("server", "image", "mix"))
    assert space.default == {"flush": True, "filesystem.type": "ext4", "filesystem.block_bytes": 4096}
    assert specs.dbms["server"].knobs["filesystem.type"].apply == "load"
    image = specs.devices["image"]  # has xfs
    assert with_filesystem(image, {"type": "xfs", "block_bytes": 4096}) is image
    other = with_filesystem(image, {"type": "ext4", "block_bytes": 1024})
    assert (other.name, other.emulate and other.emulate.filesystem) == ("image.ext4-1024", "ext4")
    assert select_fields(other, "run") != select_fields(image, "run")


@pytest.mark.parametrize(
    ("settings", "device", "expected"),
    [
        ("type: [ext4, zfs]", "image", "factors.filesystem.type.1: found 'zfs'; expected 'ext4' or 'xfs'"),
        ("type: [ext4]", "image", "factors.filesystem.type: found ['ext4']"),
        ("type: [ext4, xfs]", "disk", "factors.filesystem: found disk, which others use too"),
        (
            "journal: [true, false]",
            "image",
            "factors.filesystem.journal: found image, whose file system has no such setting; expected",
        ),
        (
            "type: [ext4, xfs]",
            "fast",
            "factors.filesystem: found fast.xfs-4096: 64MiB; expected at least 300MiB for xfs",
        ),
    ],
)
def test_what_no_file_system_has_is_refused(shelf: Path, settings: str, device: str, expected: str) -> None:
    (problem,) = problems(shelf, settings, device, "filesystem")
    assert problem.startswith(expected)


def test_a_configuration_is_split_into_kernel_and_the_rest() -> None:
    configuration = {"flush": False, "queue.scheduler": "bfq", "workload.threads": 2, "queue.read_ahead_kb": 0}
    assert split_kernel({**configuration, "mount.barrier": True}) == (
        {"queue": {"scheduler": "bfq", "read_ahead_kb": 0}, "mount": {"barrier": True}},
        {"flush": False, "workload.threads": 2},
    )


def test_the_dbms_is_tuned_to_the_queue_and_not_the_queue_to_the_dbms(shelf: Path) -> None:
    specs = load(shelf, "read_ahead_kb: [128, 0]")
    space = search_space(specs, Case("server", "image", "mix"), ["queue.read_ahead_kb"], None, with_durability=True)
    assert [one.name for one in space.parameters] == ["flush"]
    assert space.fixed == {"queue.read_ahead_kb": 128}


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ("scheduler: [none, deadline]", "'deadline'"),
        ("scheduler: [none]", "['none']"),
        ("read_ahead_kb: [128, 128]", "128 a second time"),
        ("read_ahead_kb: [128, -1]", "-1"),
        ("depth: [1, 2]", "depth"),
    ],
)
def test_what_no_queue_has_is_refused(shelf: Path, settings: str, found: str) -> None:
    (problem,) = problems(shelf, settings)
    assert problem.startswith("factors.queue")
    assert found in problem


def test_the_queue_of_a_disk_that_others_use_is_left_alone(shelf: Path) -> None:
    (problem,) = problems(shelf, "read_ahead_kb: [128, 0]", "disk")
    assert problem == "factors.queue: found disk, which others use too; expected emulated devices only"


@pytest.mark.parametrize(
    ("settings", "found"),
    [
        ("atime: [relatime]", "['relatime']"),
        ("barrier: [true, 2]", "2"),
        ("commit_s: [5, 0]", "0"),
        ("atime: [relatime, never]", "'never'"),
        ("data: [ordered, none]", "'none'"),
    ],
)
def test_what_no_mount_has_is_refused(shelf: Path, settings: str, found: str) -> None:
    (problem,) = problems(shelf, settings, family="mount")
    assert problem.startswith("factors.mount")
    assert found in problem


def test_xfs_has_no_barrier_that_could_be_left_out(shelf: Path) -> None:
    problem = problems(shelf, "barrier: [true, false], atime: [relatime, noatime]", family="mount")
    assert problem == [
        "factors.mount.barrier: found image, whose file system has no such setting; expected devices with ext4"
    ]

"""The study to run next, from a window whose truth is known."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from loop_devices import Loop
from studies import command, make_folder
from test_conclusion import facts

from knobscope.commands.attach.conclusion import conclude
from knobscope.commands.attach.data import DataPlace
from knobscope.commands.attach.diagnosis import Diagnosis, Subject
from knobscope.commands.attach.program import Running
from knobscope.commands.attach.study import _render, write_study
from knobscope.commands.attach.target import Target
from knobscope.devices import BlockDevice, find_block_device
from knobscope.devices.mounts import Mount
from knobscope.specs import Dbms
from knobscope.watch import Place, Profile

SDA = BlockDevice("sda", 8, 0)


def see_flushes(dbms: Dbms, settings: Mapping[str, str], block: BlockDevice = SDA) -> Diagnosis:
    """A window in which PostgreSQL waited for flushes."""
    pid, directory = os.getpid(), Path("/data")
    data = DataPlace(pid, directory, block, Mount(directory, "ext4", f"/dev/{block.name}", block.major, block.minor))
    subject = Subject(Target(pid, {pid: 1}, Place([pid])), Running("postgres", dbms, "15.14"), data, settings)
    window = facts(flushes=900, writes=900, busy_share=0.9)
    profile = cast(Profile, {"monitor": "bpf"})
    return Diagnosis(subject, profile, 4096, window, None, conclude(window, None), None, [], [], [], [], [])


@pytest.mark.parametrize(
    ("settings", "has_baseline", "words"),
    [
        ({}, False, "There is no baseline: no known setting"),
        ({"shared_buffers": "16384", "fsync": "on"}, False, "There is no baseline: no known setting"),
        ({"shared_buffers": "2048"}, True, "The baseline has the settings in force"),
        ({"wal_sync_method": "by_magic"}, False, "Left out, since the spec does not allow the value: wal_sync_method"),
    ],
)
def test_a_study_speaks_of_its_baseline_where_it_has_one(
    postgresql: Dbms, settings: Mapping[str, str], *, has_baseline: bool, words: str
) -> None:
    text = _render("next", postgresql, see_flushes(postgresql, settings), "disk", ["fsync"])
    assert ("\nbaseline:\n" in text) == has_baseline
    assert ("The baseline has" in text) == has_baseline
    assert words in text


@pytest.mark.real
def test_files_are_named_as_the_user_names_the_study_which_runs(
    postgresql: Dbms, device: Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert device.mount is not None
    seen = see_flushes(postgresql, {"shared_buffers": "2048"}, find_block_device(device.mount))
    monkeypatch.chdir(make_folder(tmp_path, "devices"))
    study, spec = Path("specs/studies/next.yaml"), Path("specs/devices/next-device.yaml")
    assert write_study(study, seen, Path()) == [study, spec]
    dry = subprocess.run(command(tmp_path, "next", "-n"), capture_output=True, text=True, check=False)
    assert dry.returncode == 0, dry.stderr
    assert "rule measure" in dry.stdout + dry.stderr
    spec.unlink()
    assert write_study(tmp_path / study, seen, Path()) == [tmp_path / study, tmp_path / spec]
    spec.unlink()
    monkeypatch.chdir("specs/studies")
    assert write_study(Path("next.yaml"), seen, tmp_path)[1] == Path("../devices/next-device.yaml")

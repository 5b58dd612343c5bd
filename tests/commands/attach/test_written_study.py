"""The study to run next, from a window whose truth is known."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest
from test_conclusion import facts

from knobscope.commands.attach.conclusion import conclude
from knobscope.commands.attach.data import DataPlace
from knobscope.commands.attach.diagnosis import Diagnosis, Subject
from knobscope.commands.attach.program import Running
from knobscope.commands.attach.study import _render
from knobscope.commands.attach.target import Target
from knobscope.devices import BlockDevice
from knobscope.devices.mounts import Mount
from knobscope.specs import Dbms
from knobscope.watch import Place, Profile


def write(dbms: Dbms, settings: Mapping[str, str]) -> str:
    """The study after a window in which PostgreSQL waited for flushes."""
    pid, directory = os.getpid(), Path("/data")
    data = DataPlace(pid, directory, BlockDevice("sda", 8, 0), Mount(directory, "ext4", "/dev/sda", 8, 0))
    subject = Subject(Target(pid, {pid: 1}, Place([pid])), Running("postgres", dbms, "15.14"), data, settings)
    window = facts(flushes=900, writes=900, busy_share=0.9)
    profile = cast(Profile, {"monitor": "bpf"})
    diagnosis = Diagnosis(subject, profile, 4096, window, None, conclude(window, None), None, [], [], [], [], [])
    return _render("next", dbms, diagnosis, "disk", ["fsync"])


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
    text = write(postgresql, settings)
    assert ("\nbaseline:\n" in text) == has_baseline
    assert ("The baseline has" in text) == has_baseline
    assert words in text

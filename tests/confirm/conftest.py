"""A small emulated device, open."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from knobscope.devices import OpenDevice, open_device, take_down
from knobscope.specs import Device, Emulation


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDevice]:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root and /dev/loop-control")
    images = tmp_path_factory.mktemp("images")
    emulation = Emulation(image_directory=str(images), size_mib=192)
    device = Device(name="loop", description="emulated", tier="auto", emulate=emulation)
    with open_device(device, images, "study") as opened:
        yield opened
    take_down(device, images)


_SPECS = {
    "dbms/toy.yaml": """
name: toy
description: a DBMS that nobody starts
version_sql: SELECT 1
writing: {dynamic: {sql: "SET {knob} = {value}"}}
readback: {each: "SHOW {knob}"}
connection: {binding: knobscope.JdbcBinding, properties: {jdbc.url: "jdbc:toy:{data}"}}
loading: {tables: ["CREATE TABLE t (k TEXT)"]}
knobs:
  page:
    {type: integer, range: [1, 128], default: 64, apply: dynamic, mechanism: page_size, source: "https://example.org"}
""",
    "devices/here.yaml": "name: here\ndescription: a directory\ntier: auto\npath: .\n",
    "workloads/w.yaml": "name: w\ngenerator: ycsb\nclass: write\nrecords: 10\nparameters: {}\n",
    "studies/toys.yaml": """
name: toys
description: one of each
dbms: [toy]
devices: [here]
workloads: {w: null}
knobs: {toy: {page: null}}
""",
}


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A study file with all that it names, on a directory beside it."""
    for name, text in _SPECS.items():
        file = tmp_path / "specs" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text.lstrip())
    return tmp_path / "specs" / "studies" / "toys.yaml"

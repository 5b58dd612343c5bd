"""A modelled device, open, and a study of one of each."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from emulated import require_models

from knobscope.devices import OpenDevice, open_device, take_down
from knobscope.specs import Device
from knobscope.specs.models.transport import Transport, write_transport


@pytest.fixture
def modelled(
    open_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[OpenDevice]:
    """A device that stores each write at once, with what the parameter says; slow enough to be seen anywhere."""
    require_models()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write_transport(
        Transport(0, 0, 0, 0, 0, 1e9, 1e9, 1e12, 1e12)
    )  # what the way to the device costs does not matter here
    model = {"kind": "flash", "channels": 4, "read": "100us", "write": "100us", "cache": "0B", "drain": "500MB/s"}
    emulate = {"image_directory": str(open_directory), "size": "192MiB", "model": {**model, **request.param}}
    device = Device.model_validate({"name": "loop", "description": "x", "tier": "auto", "emulate": emulate})
    with open_device(device, open_directory, "study") as opened:
        yield opened
    take_down(device, open_directory)


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

"""What devices tell around a run, and what is done to them before a block."""

from pathlib import Path

import pytest

from knobscope.devices import open_device
from knobscope.specs import Device
from knobscope.stages.measure import BlockProgress
from knobscope.stages.measure.care import DeviceCare

pytestmark = pytest.mark.real  # as root it starts smartctl or nvme, where they are installed


def test_devices_are_asked_before_and_after_a_run_and_prepared_before_a_block(
    open_directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = {"description": "x", "tier": "auto", "path": str(open_directory)}
    asked = Device.model_validate({"name": "asked", "health": True, "precondition": {"fill": "1MiB"}, **content})
    silent = Device.model_validate({"name": "silent", **content})
    with open_device(asked, open_directory, "study") as opened:
        care = DeviceCare({"asked": (asked, opened), "silent": (silent, opened)})
        with care.reading_health() as rows:
            assert {(row["device"], row["moment"]) for row in rows} == {("asked", "before")}
        assert {(row["device"], row["moment"]) for row in rows} == {("asked", "before"), ("asked", "after")}
        assert all(row["disk"] for row in rows)
        care.precondition(BlockProgress("block", 1, {}))
        assert list(opened.directory.iterdir()) == []
    said = capsys.readouterr().err
    assert "device asked is prepared" in said
    assert "silent" not in said

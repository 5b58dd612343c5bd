"""Section "Devices": how certain the figures of a device are."""

from collections.abc import Callable
from pathlib import Path

from pages import plain

from knobscope.specs import StudySpecs
from knobscope.stages.characterise.others import Others
from knobscope.stages.report.sections.devices import build_devices
from knobscope.study_data.study import StudyData


def test_what_others_did_meanwhile_is_said_in_full_once(changed_study: Callable[..., Path], specs: StudySpecs) -> None:
    pauses = Others(processors=0.98, waiting=0.96, device=0.0).describe()
    changed = changed_study(
        "INSERT INTO device_property BY NAME "
        "SELECT 'fast-flash' AS device, property, 1 AS value, 'low' AS confidence, 'median of 9' AS because, "
        "? AS others "
        "FROM (VALUES ('flush'), ('saturating_depth'), ('write_unit')) AS one(property)",
        parameters=[pauses],
    )
    with StudyData.open(changed, specs) as data:
        tables = [plain(str(device.properties)) for device in build_devices(data).devices]
    (table,) = (table for table in tables if "median of 9" in table)
    assert table.count("median of 9") == 3
    assert table.count("processors were 98 % busy") == 1
    assert table.count("the machine was busy, as above") == 2

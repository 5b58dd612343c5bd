"""Section "Devices": how certain the figures of a device are."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pages import plain

from knobscope.specs import StudySpecs
from knobscope.stages.characterise.others import Others
from knobscope.stages.report.sections.devices import build_devices
from knobscope.study_data.study import StudyData


@pytest.fixture
def table(changed_study: Callable[..., Path], specs: StudySpecs) -> Callable[[str], str]:
    """Return a function that gives three properties a reason (SQL), and returns their table."""

    def show(because: str) -> str:
        pauses = Others(processors=0.98, waiting=0.96, device=0.0).describe()
        changed = changed_study(
            f"INSERT INTO device_property BY NAME "  # noqa: S608 - ours
            f"SELECT 'fast-flash' AS device, property, 1 AS value, 'low' AS confidence, {because} AS because, "
            "? AS others FROM (VALUES ('flush'), ('saturating_depth'), ('write_unit')) AS one(property)",
            parameters=[pauses],
        )
        with StudyData.open(changed, specs) as data:
            tables = [plain(str(device.properties)) for device in build_devices(data).devices]
        (shown,) = (text for text in tables if "median of 9" in text)
        return shown

    return show


def test_what_others_did_meanwhile_is_said_in_full_once(table: Callable[[str], str]) -> None:
    shown = table("'median of 9, ' || property")
    assert shown.count("median of 9") == 3
    assert shown.count("processors were 98 % busy") == 1
    assert shown.count("the machine was busy, as above") == 2


def test_a_reason_that_several_properties_have_is_said_in_full_once(table: Callable[[str], str]) -> None:
    shown = table("'median of 9'")
    assert shown.count("median of 9") == 1
    assert shown.count("as for Flush") == 2

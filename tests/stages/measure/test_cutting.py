"""What is made of the power cuts of a configuration, and of those of the default configuration."""

import os
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from shipped_specs import shipped_study

from knobscope.specs import Dbms, StudySpecs, Value, Workload
from knobscope.stages.measure import PowerCut, cut_case
from knobscope.tables import CutColumns

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root cuts power")
KEPT, LOST, GONE = PowerCut(100, 0), PowerCut(100, 30), PowerCut(100, None, "it does not start")


@pytest.fixture
def specs() -> StudySpecs:
    return shipped_study("quickstart")


def judge(specs: StudySpecs, tried: list[PowerCut], default: list[PowerCut], reason: str = "") -> CutColumns:
    """Return the columns for `synchronous = off`, of which `tried` came out; `reason`: of the default configuration."""

    def cut(_: Dbms, workload: Workload, configuration: Mapping[str, Value], cuts: int) -> tuple[list[PowerCut], str]:
        assert (workload.name, cuts) == (specs.cases[0].workload, 5)
        return (tried, "") if configuration["synchronous"] == "off" else (default, reason)

    (case, usual) = specs.cases[0], {"synchronous": "full"}
    return cut_case(specs, case, {"synchronous": "off"}, usual, 5, cut)


@pytest.mark.parametrize(
    ("tried", "default", "expected"),
    [
        ([KEPT] * 5, [LOST] * 5, {"cuts": 5, "cuts_lost": 0, "rows_lost": 0}),
        ([LOST] * 5, [KEPT] * 5, {"cuts_lost": 5, "rows_lost": 30, "default_cuts_lost": 0, "loses_more": True}),
        ([LOST] * 5, [LOST] * 5, {"cuts_lost": 5, "default_cuts_lost": 5, "loses_more": False}),
        ([KEPT, LOST, GONE, KEPT, KEPT], [LOST] * 5, {"cuts_lost": 2, "rows_lost": None, "default_cuts_lost": 5}),
    ],
)
def test_losses_are_held_against_those_of_the_default(
    specs: StudySpecs, tried: list[PowerCut], default: list[PowerCut], expected: dict[str, Any]
) -> None:
    columns: dict[str, Any] = {**judge(specs, tried, default)}
    assert {name: columns.get(name) for name in expected} == expected
    assert "uncut" not in columns


def test_losses_without_as_many_cuts_of_the_default_are_not_judged(specs: StudySpecs) -> None:
    columns = judge(specs, [LOST] * 5, [KEPT], "the disk was full")
    assert columns["uncut"] == "the default configuration could not be cut as often: the disk was full"
    assert "loses_more" not in columns


def test_parts_on_other_devices_are_not_cut(specs: StudySpecs, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: Callable[[Dbms], Any] = lambda _: {"table": object()}  # noqa: E731
    monkeypatch.setattr(Dbms, "layout_parts", property(parts))
    assert judge(specs, [KEPT] * 5, []) == {"uncut": "parts of its data lie on other devices"}

"""What identifies runs and devices stays the same from version to version: stores of earlier versions are found again.

Where a hash changes, every run of every user is measured again. That is meant only where MEASURE_VERSION was raised, as
earlier runs can no longer be compared.
"""

from typing import Any

import pytest
from shipped_specs import ROOT, shipped_study

from knobscope import identity
from knobscope.identity import MEASURE_VERSION, hash_identity, run_identity, varied_knobs
from knobscope.specs import Case, Device, load_study, read_spec, select_fields

GOOD = ROOT / "tests/specs/good"
CARE: dict[str, Any] = {
    "name": "care",
    "description": "behind a delay, filled first",
    "tier": "nvme_ssd",
    "emulate": {"size": "128MiB", "model": {"kind": "delay", "flush": "1.50ms", "read": "0us"}},
    "precondition": {"trim": True, "fill": "1.5GiB"},
}


@pytest.mark.parametrize(
    ("case", "phase", "expected"),
    [
        (Case("server", "disk", "mix"), "screen", "233c11f7809e9376"),
        (Case("server", "image", "mix"), "sweep", "05b376cddbe49f73"),
        (Case("embedded", "disk", "mix"), "sweep", "2b63befa3eb3e419"),
    ],
)
def test_runs_keep_their_identity(case: Case, phase: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "_installed", lambda *_: {})  # digests of programs of this machine
    assert MEASURE_VERSION == 3
    specs = load_study(GOOD / "studies/small.yaml", GOOD, runnable=False)
    assert hash_identity(run_identity(specs, case, phase, varied_knobs(specs, case.dbms)), 16) == expected


@pytest.mark.parametrize(
    ("study", "case", "expected"),
    [
        ("flush-across", Case("mariadb", "loop", "ycsb-a"), "3cbb39cae5355f20"),
        ("flush-across", Case("postgresql", "loop", "ycsb-a"), "266d64d5add416aa"),
        ("flush-across", Case("redis", "loop", "ycsb-a"), "028a6d727fcd7aec"),
        ("flush-across", Case("sqlite", "loop", "ycsb-a"), "cb043d18ef5d9f41"),
        ("report-io-method", Case("postgresql18", "memory", "pgbench-range"), "907e0149c5783372"),
        ("report-rocksdb-small-writes", Case("rocksdb", "slow-unit", "ycsb-a"), "ded3a1c3aff9b43b"),
    ],
)
def test_runs_of_shipped_studies_keep_their_identity(
    study: str, case: Case, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shipped spec says something new: it must not measure studies again that do not use it."""
    monkeypatch.setattr(identity, "_installed", lambda *_: {})
    specs = shipped_study(study)
    assert hash_identity(run_identity(specs, case, "sweep", varied_knobs(specs, case.dbms)), 16) == expected


@pytest.mark.parametrize(
    ("name", "run", "profile"),
    [
        ("disk", "b722008748404106", "7a7d7997f683a6f5"),
        ("image", "ce5c619d83ecff8f", "c351763df4a78a1d"),
        ("fast", "6f223f35adc6e370", "3d8968be159ef71e"),
        ("fast-flush", "7d6dcbde6b54a107", "3ac0f7c1044c7b2e"),
        ("care", "f1ebcdead2aa2ad0", "670886bb407fc9b0"),
    ],
)
def test_devices_keep_their_identity(name: str, run: str, profile: str) -> None:
    file = GOOD / f"devices/{name}.yaml"
    device = read_spec(file, Device, None)[1] if file.exists() else Device.model_validate(CARE)
    precondition = device.precondition.model_dump(mode="json") if device.precondition else None
    assert hash_identity({**select_fields(device, "run"), "precondition": precondition}, 16) == run
    assert hash_identity(select_fields(device, "profile"), 16) == profile

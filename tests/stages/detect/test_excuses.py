"""What a knob is there for, or what is no choice of the DBMS, is no mismatch, whatever it does."""

from collections.abc import Callable

import pytest
from generated_knobs import KNOBS
from generated_studies import Study, Truth, verdicts

Make = Callable[..., Study]


@pytest.mark.parametrize(
    ("mechanism", "noise", "excuse"),
    [
        ("throttle", 0.008, "limit is there to hold I/O back, so that it does is no mismatch. Raising"),
        ("workload", 0.0081, "limit is part of the load and no choice of the DBMS, so that it matters is no mismatch."),
        (
            "kernel",
            0.0082,
            "limit is a setting of the kernel below the DBMS, so that it matters is no mismatch of the DBMS.",
        ),
    ],
)
def test_what_must_have_an_effect_is_no_mismatch(
    make_study: Make, monkeypatch: pytest.MonkeyPatch, mechanism: str, noise: float, excuse: str
) -> None:
    monkeypatch.setitem(KNOBS["limit"], "mechanism", mechanism)
    loss = Truth(throughput=-0.4, unaligned=0.4)
    study = make_study(
        devices=("hdd", "nvme"),
        truth={("nvme", "limit", "100"): loss},
        noise=noise,  # a study of its own: equal ones are made once
        knobs=("limit", "buffer"),
        unit_us=500.0,
    )
    for rule in ("tier", "intuition", "io_size"):
        found = study.judge(rule)
        assert "mismatch" not in set(found["verdict"])
        row = found[(found["device"] == "nvme") & (found["value"] == "100")].iloc[0]
        assert excuse in row["sentence"]


def test_what_can_be_no_mismatch_needs_no_evidence(make_study: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """An effect that noise hides: whether it is one of the load's setting, nobody has to know."""
    monkeypatch.setitem(KNOBS["limit"], "mechanism", "workload")
    study = make_study(noise=0.4, knobs=("limit", "buffer"))
    found = verdicts(study.judge("intuition"))
    assert "insufficient" in {verdict for (knob, _), verdict in found.items() if knob == "buffer"}
    assert {verdict for (knob, _), verdict in found.items() if knob == "limit"} == {"none"}

"""What a knob can be expected to do, proposed from its documentation."""

import json
from pathlib import Path
from typing import Any

import pytest

from knobscope.knob_texts import PropertyModel, propose_expectations, read_labelled, read_properties

SPECS = Path(__file__).parents[2] / "specs/dbms"
#: Texts are a reading of public documentation; no label of these DBMSs was learned from.
UNSEEN = {
    "shared_buffers": ("integer", "Sets the number of shared memory buffers used by the server.", "resource", "faster"),
    "log_statement_stats": ("boolean", "Logs statistics of each statement to the server log.", "function", "slower"),
    "unix_socket_directory": ("boolean", "Sets the directory in which the socket is created.", "none", "none"),
    "checkpoint_timeout": ("integer", "Sets the maximum time between checkpoints.", "trade_off", None),
    "prefetch_pages": ("boolean", "Whether to prefetch pages to improve performance.", "optimisation", "faster"),
    "disable_prefetch_pages": (
        "boolean",
        "Whether to prefetch pages to improve performance.",
        "optimisation",
        "slower",
    ),
}


@pytest.fixture(scope="module")
def properties() -> dict[str, dict[str, dict[str, Any]]]:
    return read_properties(SPECS, read_labelled(SPECS))


@pytest.fixture(scope="module")
def proposed(properties: dict[str, dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    knobs = {name: {"type": kind, "description": text} for name, (kind, text, *_) in UNSEEN.items()}
    return propose_expectations({**knobs, "undescribed": {"type": "boolean", "description": None}}, properties)


@pytest.mark.parametrize("name", UNSEEN)
def test_a_property_says_what_raising_does(proposed: dict[str, dict[str, Any]], name: str) -> None:
    *_, property_name, expect = UNSEEN[name]
    proposal = proposed[name]["proposal"]
    assert (proposal["property"], proposal.get("expect")) == (property_name, expect)
    assert 0.2 < proposal["confidence"] <= 1


def test_without_a_description_nothing_is_proposed(proposed: dict[str, dict[str, Any]]) -> None:
    assert "proposal" not in proposed["undescribed"]


def test_no_labels_no_proposals() -> None:
    knobs = {"shared_buffers": {"type": "integer", "description": "Sets the number of buffers."}}
    assert propose_expectations(knobs, {}) == knobs


def test_labels_of_a_dbms_that_is_not_learned_from(properties: dict[str, dict[str, dict[str, Any]]]) -> None:
    """Far better than chance (a fifth); benchmarks/expectations.py has the figures."""
    unseen = {"kafka", "spark", "kudu", "hdfs", "trino"}
    model = PropertyModel({dbms: knobs for dbms, knobs in properties.items() if dbms not in unseen})
    hits = [model.propose(properties[dbms])[name][0] == knob["property"] for dbms in unseen
            for name, knob in properties[dbms].items()]  # fmt: skip
    assert sum(hits) >= 0.55 * len(hits)


@pytest.mark.parametrize("dbms", ["postgresql", "mariadb", "redis"])
def test_shipped_catalogues_propose(dbms: str) -> None:
    knobs = json.loads((SPECS / f"catalogue/{dbms}.json").read_text())["knobs"].values()
    assert all("proposal" in knob for knob in knobs if knob.get("description"))
    assert {knob["proposal"].get("expect") for knob in knobs if knob.get("description")} == {
        "faster",
        "slower",
        "none",
        None,
    }

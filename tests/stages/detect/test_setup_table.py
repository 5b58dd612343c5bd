"""What a database records of the specs, so that it can be compared with another one."""

import json
from collections.abc import Callable
from dataclasses import replace

from generated_studies import Study

from knobscope import __version__
from knobscope.stages.detect.setup import setup_rows


def facts(study: Study, part: str) -> dict[str, str]:
    rows = study.query("FROM setup").to_dict("records")
    return {row["property"]: row["value"] for row in rows if row["part"] == part}


def test_a_database_records_what_was_asked(make_study: Callable[..., Study]) -> None:
    study = make_study()
    assert facts(study, "knobscope") == {"version": __version__}
    assert facts(study, "study")["thresholds.min_effect"] == "0.05"
    workload = facts(study, "workload")
    assert (workload["generator"], workload["records"], workload["class"]) == ("ycsb", "100", "write")
    assert json.loads(workload["measure_s"]) == 5
    assert facts(study, "device") == {"tier": "nvme_ssd", "dedicated": "true"}  # where it is says not what it is


def test_equal_numbers_are_equal_texts(make_study: Callable[..., Study]) -> None:
    specs = make_study().specs
    texts = []
    for seconds in (5, 5.0):
        workload = specs.workloads["ycsb-a"].model_copy(update={"measure_s": seconds})
        texts.append(setup_rows(replace(specs, workloads={"ycsb-a": workload})))
    assert texts[0] == texts[1]


def test_the_digest_of_a_dbms_is_that_of_all_but_its_knobs_and_its_name(make_study: Callable[..., Study]) -> None:
    specs = make_study().specs
    dbms = specs.dbms["simdb"]

    def digest(**update: object) -> str:
        changed = replace(specs, dbms={"simdb": dbms.model_copy(update=update)})
        return next(row["value"] for row in setup_rows(changed) if row["part"] == "dbms")

    assert digest() == digest(knobs={}) == digest(name="other", description="another text")
    assert digest() != digest(booleans=["no", "yes"])

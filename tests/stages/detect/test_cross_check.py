"""The rule that looks for a guilty mechanism in other DBMSs of the study."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import duckdb
from generated_studies import Study, Truth
from test_file_rules import evidence_of, the_row

from knobscope.stages.detect import run_rules

Make = Callable[..., Study]
TWO = ("simdb", "otherdb")
SLOW = Truth(throughput=-0.4)


def test_a_guilty_mechanism_that_was_not_tested_elsewhere_is_named(make_study: Make) -> None:
    study = make_study(dbms=TWO, unswept=("buffer",), truth={("simdb", "buffer", "32"): SLOW})
    findings = study.judge("cross_check", "intuition")
    row = the_row(findings, dbms="otherdb")
    assert row.verdict == "insufficient"
    assert evidence_of(row)["state"] == "not_tested"
    assert row.sentence == (
        "The mechanism cache is at fault in another DBMS on nvme with ycsb-a (simdb's buffer, rule intuition); "
        "otherdb has it too, but none of its knobs was tested: try buffer."
    )
    assert the_row(findings, dbms="simdb").verdict == "none"


def test_a_guilty_mechanism_that_screening_alone_varied_elsewhere_is_named(make_study: Make) -> None:
    study = make_study(
        dbms=TWO, unswept=("buffer",), screened=("buffer", "page"), truth={("simdb", "buffer", "32"): SLOW}
    )
    row = the_row(study.judge("cross_check", "intuition"), dbms="otherdb")
    found = evidence_of(row)
    assert (row.verdict, found["state"]) == ("insufficient", "screened")
    assert (found["screened_here"], found["swept_here"], found["untested_here"]) == (["buffer"], None, None)
    assert row.sentence.endswith(
        "otherdb has it too, but buffer was only screened and not selected for the sweep, without which there is no "
        "verdict."
    )


def test_a_guilty_mechanism_that_is_innocent_elsewhere_is_none_there(make_study: Make) -> None:
    row = the_row(
        make_study(dbms=TWO, truth={("simdb", "buffer", "32"): SLOW}).judge("cross_check", "intuition"), dbms="otherdb"
    )
    assert (row.verdict, evidence_of(row)["state"]) == ("none", "not_flagged")
    assert row.sentence.endswith("otherdb has it too, and buffer was tested in it, and not flagged.")


def test_a_mechanism_that_is_guilty_everywhere_needs_no_check(make_study: Make) -> None:
    findings = make_study(dbms=TWO, truth={("buffer", "32"): SLOW}).judge("cross_check", "intuition")
    assert findings["verdict"].unique().tolist() == ["none"]
    assert findings["sentence"].str.contains("was flagged as well").all()


def test_what_could_not_be_judged_elsewhere_stays_open(make_study: Make) -> None:
    def fail(run: dict[str, Any]) -> None:
        if run["dbms"] == "otherdb" and not run["is_sentinel"] and run["repeat"] == 1:
            run["status"] = "timeout"

    study = make_study(dbms=TWO, truth={("simdb", "buffer", "32"): SLOW}, tweak=fail, repeats=2)
    row = the_row(study.judge("cross_check", "intuition"), dbms="otherdb")
    assert (row.verdict, evidence_of(row)["state"]) == ("insufficient", "not_judged")


def test_one_dbms_cannot_be_checked_against_another(make_study: Make) -> None:
    row = the_row(make_study(truth={("buffer", "32"): SLOW}).judge("cross_check", "intuition"))
    assert row.verdict == "insufficient"
    assert "the study has only one" in row.sentence


def test_only_the_same_device_is_compared(make_study: Make) -> None:
    study = make_study(dbms=TWO, devices=("hdd", "nvme"), unswept=("buffer",), truth={("simdb", "buffer", "32"): SLOW})
    found = study.judge("cross_check", "intuition")
    assert set(found.loc[found["verdict"] == "insufficient", "device"]) == {"hdd", "nvme"}


def test_what_an_experiment_withdrew_is_guilty_nowhere(make_study: Make) -> None:
    study = make_study(dbms=TWO, unswept=("buffer",), truth={("simdb", "buffer", "32"): SLOW})
    specs = replace(study.specs, rules={name: study.specs.rules[name] for name in ("cross_check", "intuition")})
    with duckdb.connect(str(study.database), read_only=True) as connection:
        before = run_rules(connection, specs)
        tested = [{**row, "confirmed": "no"} if row["verdict"] == "mismatch" else row for row in before]
        after = run_rules(connection, specs, tested)
    rules = [row["rule"] for row in before]
    assert [row["rule"] for row in after] == rules
    of_others = [index for index, rule in enumerate(rules) if rule != "cross_check"]
    assert [after[index] for index in of_others] == [tested[index] for index in of_others]
    assert "insufficient" in {row["verdict"] for row in before if row["rule"] == "cross_check"}
    assert {row["verdict"] for row in after if row["rule"] == "cross_check"} == {"none"}


def test_cross_check_comes_last_whatever_its_position(make_study: Make) -> None:
    study = make_study(dbms=TWO, truth={("simdb", "buffer", "32"): SLOW})
    assert study.judge("intuition", "cross_check")["rule"].unique().tolist() == ["intuition"]
    found = study.judge("cross_check", "intuition")
    assert "otherdb has it too" in the_row(found, dbms="otherdb").sentence

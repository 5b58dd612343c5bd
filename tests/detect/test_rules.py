"""Rules as files: thresholds reach them, and a rule that does not keep to the interface is refused."""

from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from generated_studies import RULES_DIR, Study, Truth

from knobscope.detect import FINDING_COLUMNS, run_rules
from knobscope.errors import UserError
from knobscope.specs.study import RuleSettings

GOOD = """
SELECT 'mine' AS rule, 'd' AS dbms, 'v' AS device, 'w' AS workload, 'k' AS knob, '1' AS value, 'none' AS verdict,
    getvariable('tier_gap') AS effect, NULL AS effect_low, NULL AS effect_high, NULL AS penalty,
    '{}' AS evidence, 'Nothing.' AS sentence
"""


def run_mine(tmp_path: Path, sql: str) -> list[dict[str, object]]:
    (tmp_path / "mine.sql").write_text(sql)
    with duckdb.connect() as connection:
        rows: list[dict[str, object]] = run_rules(connection, tmp_path, RuleSettings(), ["mine"]).to_dict("records")
    return rows


def test_a_rule_is_one_file_and_sees_the_thresholds(tmp_path: Path) -> None:
    rows = run_mine(tmp_path, GOOD)
    assert list(rows[0]) == FINDING_COLUMNS
    assert rows[0]["effect"] == RuleSettings().tier_gap


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("'w' AS workload,", "", "expected rule, dbms"),
        ("'none' AS verdict", "'maybe' AS verdict", "verdict 'maybe'; expected one of mismatch, none, insufficient"),
        ("'mine' AS rule", "'other' AS rule", "rule 'other'; expected 'mine'"),
        ("'Nothing.'", "NULL", "without a sentence"),
        ("SELECT", "SELEKT", "no valid query"),
    ],
)
def test_a_rule_that_breaks_the_interface_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(UserError, match=said) as caught:
        run_mine(tmp_path, GOOD.replace(old, new))
    assert "mine.sql" in str(caught.value)


def test_a_missing_rule_is_named_with_those_that_exist() -> None:
    with duckdb.connect() as connection, pytest.raises(UserError, match=r"no mismatch rule 'teer'.*io_size.*tier"):
        run_rules(connection, RULES_DIR, RuleSettings(), ["teer"])


def test_thresholds_decide(make_study: Callable[..., Study]) -> None:
    study = make_study(truth={("buffer", "32"): Truth(throughput=-0.2)})
    found = {}
    for min_effect in (0.05, 0.5):
        with duckdb.connect(str(study.database), read_only=True) as connection:
            findings = run_rules(connection, RULES_DIR, RuleSettings(min_effect=min_effect), ["intuition"])
        found[min_effect] = (findings["verdict"] == "mismatch").sum()
    assert found == {0.05: 1, 0.5: 0}

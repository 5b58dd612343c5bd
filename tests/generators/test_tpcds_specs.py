"""How TPC-DS is asked for in YAML, and what becomes of the texts of its queries."""

from pathlib import Path

import pytest
from pydantic import ValidationError
from shipped_specs import shipped_workload

from knobscope.errors import UserError
from knobscope.generators import make_tpcds_data, record_bytes, tpcds_properties
from knobscope.generators.tpcds_texts import in_order, translate, with_safe_divisors
from knobscope.specs import Workload


def workload(records: int = 10) -> Workload:
    return Workload.model_validate({"name": "shops", "generator": "tpcds", "class": "read", "records": records})


def test_the_shipped_workload_counts_thousandths_of_the_scale_factor() -> None:
    shipped = shipped_workload("tpcds")
    assert tpcds_properties(shipped) == {
        "workload": "knobscope.tpcds.TpcdsWorkload",
        "recordcount": "73049",
        "table": "date_dim",
    }
    assert shipped.records * record_bytes(shipped) == 20 * 1024**2


def test_a_scale_factor_that_the_generator_cannot_do_is_refused() -> None:
    with pytest.raises(ValidationError, match=r"10 or more, scale factor 0\.01"):
        workload(9)


def test_a_missing_generator_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KNOBSCOPE_FLEET", str(tmp_path))
    with pytest.raises(UserError, match=r"TPC-DS needs its generator, which is not there; run setup/fleet\.sh tpcds"):
        make_tpcds_data(workload(), tmp_path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select a, b from t\nORDER BY a NULLS FIRST\nLIMIT 100;\n\n", "ORDER BY a NULLS FIRST, 1, 2\nLIMIT 100"),
        ("select a, b from t order by all limit 5;", "t ORDER BY 1, 2 limit 5"),
        ("select a, b from (select * from t order by a) limit 5", "order by a)\nORDER BY 1, 2\nlimit 5"),
        ("select a, b from t order by (select max(c) from u) limit 5", "(select max(c) from u), 1, 2\nlimit 5"),
        ("select a, b from t limit 5", "t\nORDER BY 1, 2\nlimit 5"),
        ("select a, b from t order by a;", "from t order by a"),
    ],
)
def test_an_order_with_a_limit_goes_on_over_all_columns(text: str, expected: str) -> None:
    assert in_order(text, 2).endswith(expected)


def test_postgresql_texts_say_where_nulls_go() -> None:
    text = "select i_item_desc from t order by a desc, b desc nulls first, rank() over (order by c)"
    assert translate(1, text, "DuckDB") == text
    assert translate(1, text, "PostgreSQL") == (
        "select i_item_desc from t order by a DESC NULLS LAST, b desc nulls first, rank() over (order by c)"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a/b.c, d / (e+f)/3.0", "a/nullif(b.c, 0), d / nullif((e+f), 0)/3.0"),
        ("a/((b+c)/3) * 100", "a/nullif(((b+c)/3), 0) * 100"),
        ("a/(b/c)", "a/nullif((b/nullif(c, 0)), 0)"),
        ("a/sum(sum(b)) OVER (PARTITION BY (c)) AS d", "a/nullif(sum(sum(b)) OVER (PARTITION BY (c)), 0) AS d"),
        ("i_size = 'N/A' or 1/2 > 0", "i_size = 'N/A' or 1/2 > 0"),
    ],
)
def test_dividing_by_zero_gives_null(text: str, expected: str) -> None:
    assert with_safe_divisors(text) == expected


def test_a_text_that_nobody_has_looked_at_is_refused() -> None:
    with pytest.raises(ValueError, match='query 84 of TPC-DS has no "concat'):
        translate(84, "select 1", "PostgreSQL")

import pytest

from knobscope.commands.compare.matching import CasePair, match_cases, read_matches
from knobscope.errors import UserError
from knobscope.specs import Case


def cases(*texts: str) -> list[Case]:
    return [Case(*text.split("/")) for text in texts]


def matched(a: list[Case], b: list[Case]) -> list[tuple[str, str]]:
    return [(str(pair.a), str(pair.b)) for pair in match_cases(a, b)]


def test_equal_names_belong_together() -> None:
    a, b = cases("pg/nvme/ycsb", "pg/hdd/ycsb"), cases("pg/hdd/ycsb", "pg/sata/ycsb")
    assert matched(a, b) == [("pg/hdd/ycsb", "pg/hdd/ycsb")]


def test_a_single_case_belongs_to_the_single_other_one_whatever_they_are_called() -> None:
    a, b = cases("pg/nvme-a/ycsb"), cases("pg18/nvme-b/ycsb")
    assert matched(a, b) == [("pg/nvme-a/ycsb", "pg18/nvme-b/ycsb")]


def test_one_kind_of_name_may_differ_where_nothing_else_can_be_meant() -> None:
    a, b = cases("pg/nvme-a/ycsb", "pg/nvme-a/tpcc"), cases("pg/nvme-b/ycsb", "pg/nvme-b/tpcc")
    assert matched(a, b) == [("pg/nvme-a/ycsb", "pg/nvme-b/ycsb"), ("pg/nvme-a/tpcc", "pg/nvme-b/tpcc")]


def test_what_is_ambiguous_stays_unmatched() -> None:
    assert matched(cases("pg/nvme/ycsb", "pg/hdd/ycsb"), cases("pg/sata/ycsb")) == []
    assert matched(cases("pg/a/x", "my/b/y"), cases("pg/a/y", "my/c/y")) == []  # two kinds of names
    assert matched(cases("pg/a/x", "pg/a/y"), cases("my/b/x", "my/b/y")) == []  # two kinds in each


def test_given_matches_come_first_and_use_up_their_cases() -> None:
    a, b = cases("pg/nvme/ycsb", "pg/hdd/ycsb"), cases("pg/nvme/ycsb", "pg/sata/ycsb")
    given = read_matches(["pg/hdd/ycsb=pg/sata/ycsb"], a, b)
    assert given == [CasePair(a[1], b[1])]
    assert match_cases(a, b, given) == [CasePair(a[0], b[0]), CasePair(a[1], b[1])]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pg/nvme/ycsb", "expected A_CASE=B_CASE"),
        ("pg/other/ycsb=pg/nvme/ycsb", "found 'pg/other/ycsb'; expected a case of A: pg/nvme/ycsb"),
        ("pg/nvme/ycsb=pg/other", "expected a case of B: pg/sata/ycsb"),
    ],
)
def test_a_wrong_match_is_refused(text: str, said: str) -> None:
    with pytest.raises(UserError, match="--match") as error:
        read_matches([text], cases("pg/nvme/ycsb"), cases("pg/sata/ycsb"))
    assert said in str(error.value)


def test_a_case_is_given_once() -> None:
    text = "pg/nvme/ycsb=pg/sata/ycsb"
    with pytest.raises(UserError, match="twice"):
        read_matches([text, text], cases("pg/nvme/ycsb"), cases("pg/sata/ycsb"))

"""Which case of one study belongs to which of the other: by name, or where only one name can be meant."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import PlainSerializer

from knobscope.errors import UserError
from knobscope.specs import Case

#: A case, in JSON by its name.
CaseName = Annotated[Case, PlainSerializer(str, return_type=str)]


@dataclass(frozen=True)
class CasePair:
    """A case of A with the one of B that it is compared with."""

    a: CaseName
    b: CaseName

    @property
    def title(self) -> str:
        """Both names as people say them; one where they are equal."""
        return f"{self.a}" if self.a == self.b else f"{self.a} (A) and {self.b} (B)"


def read_matches(texts: Sequence[str], a: Sequence[Case], b: Sequence[Case]) -> list[CasePair]:
    """Return the pairs of `--match A_CASE=B_CASE`. UserError: one names no case of its study, or a case twice."""
    pairs = []
    for text in texts:
        left, sign, right = text.partition("=")
        if not sign:
            raise UserError(f"--match: found {text!r}; expected A_CASE=B_CASE, each as DBMS/DEVICE/WORKLOAD")
        pairs.append(CasePair(_find(left, "A", a), _find(right, "B", b)))
    for letter, cases in (("A", [pair.a for pair in pairs]), ("B", [pair.b for pair in pairs])):
        if twice := next((case for case in cases if cases.count(case) > 1), None):
            raise UserError(f"--match: found the case {twice} of {letter} twice; expected each case once")
    return pairs


def _find(text: str, letter: str, cases: Sequence[Case]) -> Case:
    for case in cases:
        if str(case) == text.strip():
            return case
    raise UserError(f"--match: found {text!r}; expected a case of {letter}: {', '.join(map(str, cases))}")


def match_cases(a: Sequence[Case], b: Sequence[Case], matches: Sequence[CasePair] = ()) -> list[CasePair]:
    """Return the pairs of cases in the order of A: those given, then those of equal names, then what is unambiguous.

    Names that differ are matched only where no case has the same names in both studies: two studies with one case each;
    or cases that differ in one kind of name (DBMS, device or workload), where each has just one that it can mean.
    """
    left = [case for case in a if case not in {pair.a for pair in matches}]
    right = [case for case in b if case not in {pair.b for pair in matches}]
    pairs = [*matches, *(CasePair(case, case) for case in left if case in right)]
    if not pairs:
        pairs = [CasePair(left[0], right[0])] if len(left) == len(right) == 1 else _match_one_kind(left, right)
    return sorted(pairs, key=lambda pair: a.index(pair.a))


def _match_one_kind(a: Sequence[Case], b: Sequence[Case]) -> list[CasePair]:
    """Return the pairs that differ in one kind of name, the same one for all, and whose cases fit no other one."""
    candidates = {
        (case_a, case_b): kinds[0] for case_a in a for case_b in b if len(kinds := _differing(case_a, case_b)) == 1
    }
    if len(set(candidates.values())) != 1:
        return []
    lefts, rights = [case_a for case_a, _ in candidates], [case_b for _, case_b in candidates]
    return [
        CasePair(case_a, case_b) for case_a, case_b in candidates if lefts.count(case_a) == rights.count(case_b) == 1
    ]


def _differing(a: Case, b: Case) -> list[str]:
    return [kind for kind, of_a, of_b in zip(Case._fields, a, b, strict=True) if of_a != of_b]

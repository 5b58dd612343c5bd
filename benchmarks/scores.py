"""How often rules are right, against a known truth: counts of cases, and the table of them."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

_HEAD = """
| cases | rule | known | true | found | wrong | missed | precision | recall | unclear | fixed thresholds |
|---|---|---|---|---|---|---|---|---|---|---|"""


@dataclass
class Score:
    """The cases of a rule: (what it said, what the naive rule said, the truth), and how many have no clear truth."""

    known: list[tuple[bool, bool, bool]] = field(default_factory=list)
    unclear: int = 0

    def add(self, is_finding: bool, naive: bool, truth: bool | None) -> bool:
        """Add a case; return whether the rule misses it or is wrong."""
        if truth is None:
            self.unclear += 1
            return False
        self.known.append((is_finding, naive, truth))
        return is_finding != truth

    def __str__(self) -> str:
        """Return a row of the table without cases and rule; '-' where nothing was found, or was to be found."""
        true = sum(truth for *_, truth in self.known)
        right, wrong = self._count_findings(0)
        precision, recall = tell_share(right, right + wrong), tell_share(right, true)
        naive = "{} found, {} wrong".format(*self._count_findings(1))
        cells = (len(self.known), true, right, wrong, true - right, precision, recall, self.unclear, naive)
        return " | ".join(map(str, cells))

    def _count_findings(self, column: int) -> tuple[int, int]:
        """Return how many findings are right and wrong: of the rule (0), or of the naive one (1)."""
        truth_counts = Counter(case[2] for case in self.known if case[column])
        return truth_counts[True], truth_counts[False]


def tell_share(part: int, whole: int) -> str:
    """Return a share with the lower end of its 95 % interval (Wilson 1927)."""
    if not whole:
        return "-"
    z, share = 1.96, part / whole
    middle, width = share + z * z / (2 * whole), z * math.sqrt(share * (1 - share) / whole + (z / (2 * whole)) ** 2)
    return f"{share:.2f} (from {max((middle - width) / (1 + z * z / whole), 0):.2f})"


def print_table(scores: Mapping[str, Mapping[str, Score]]) -> None:
    """Print the scores by group of cases and rule, in Markdown."""
    print(_HEAD)
    for group, of_rules in scores.items():
        for rule, score in of_rules.items():
            print(f"| {group} | `{rule}` | {score} |")

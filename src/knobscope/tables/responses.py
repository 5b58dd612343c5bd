"""What screening explains: a column of table `runs`, turned so that more is better."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Response:
    """A column of runs, which is also a metric of `effects`; latencies count as so many of them in a second."""

    column: str
    words: str
    more: str  # what a run with a higher response is
    less: str
    is_latency: bool

    @property
    def sql(self) -> str:
        """The response of a row of table `runs`."""
        return f"1e6 / {self.column}" if self.is_latency else self.column

    @property
    def sign(self) -> int:
        """What a natural-log ratio of the response has to be multiplied by for that of the column: more is longer."""
        return -1 if self.is_latency else 1

    @property
    def words_of_column(self) -> tuple[str, str]:
        """Words for more and for less of the column itself: a latency that is halved is 50 % shorter."""
        return (self.less, self.more) if self.is_latency else (self.more, self.less)

    def of(self, figure: float) -> float:
        """Return the response of a figure in the unit of its column, and the other way round."""
        return 1e6 / figure if self.is_latency else figure


#: By the names of `screening.response`.
RESPONSES: Mapping[str, Response] = MappingProxyType(
    {
        "throughput": Response("throughput_ops", "throughput", "faster", "slower", is_latency=False),
        "latency_p95": Response("latency_p95_us", "95th percentile of latency", "shorter", "longer", is_latency=True),
        "latency_p99": Response("latency_p99_us", "99th percentile of latency", "shorter", "longer", is_latency=True),
    }
)

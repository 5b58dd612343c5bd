"""What is compared: the metrics of a run, and whether their effects are ratios or differences."""

from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.ranks import normal_scores
from knobscope.text.budgets import REASONS, WAIT_METRICS


@dataclass(frozen=True)
class Metric:
    """One column of view `run_metrics`."""

    title: str
    is_ratio: bool  # effects are natural-log ratios; else differences, for shares and for counts that may be 0
    may_be_none: bool = False  # a run may have none of it, which is no missing value
    is_optional: bool = False  # a case whose runs do not have it has no rows of it
    by_ranks: bool = False  # only the order of the runs counts

    def response(self, values: Floats) -> Floats:
        """Return what is fitted; NaN where a run has no value, or none that a logarithm can take.

        A run that has none of what others have counts as half of the least that any of them has: a change that removes
        all writes has an effect, of at least that size.
        """
        if self.by_ranks:
            scores = np.full(len(values), np.nan)
            finite = np.isfinite(values)
            scores[finite] = normal_scores(values[finite])
            return scores
        if not self.is_ratio:
            return values
        positive = values[values > 0]
        if self.may_be_none and len(positive):
            values = np.where(values == 0, positive.min() / 2, values)
        return np.log(np.where(values > 0, values, np.nan))

    def on_own_scale(self, response: Floats) -> Floats:
        """Return fitted means in the metric's unit."""
        return np.asarray(np.exp(response)) if self.is_ratio else response


METRICS: dict[str, Metric] = {
    "throughput_ops": Metric("throughput, operations per second", is_ratio=True),
    "latency_p95_us": Metric("95th percentile of latency, microseconds", is_ratio=True),
    "latency_p99_us": Metric("99th percentile of latency, microseconds", is_ratio=True),
    "latency_p95_rank": Metric("95th percentile of latency, normal scores of ranks", is_ratio=False, by_ranks=True),
    "latency_p99_rank": Metric("99th percentile of latency, normal scores of ranks", is_ratio=False, by_ranks=True),
    "recovery_s": Metric("seconds until a killed server answers again", is_ratio=True),
    "lost_s": Metric("seconds of acknowledged writes lost with a killed server", is_ratio=False),
    "cpu_s_per_op": Metric("CPU seconds per operation", is_ratio=True),
    "reads_per_op": Metric("read requests per operation", is_ratio=True, may_be_none=True),
    "read_bytes_per_op": Metric("bytes read per operation", is_ratio=True, may_be_none=True),
    "read_us_per_op": Metric("waiting for reads per operation, microseconds, at least", is_ratio=False),
    "read_busy_us_per_op": Metric("waiting for reads per operation, microseconds, at most", is_ratio=False),
    "writes_per_op": Metric("write requests per operation", is_ratio=True, may_be_none=True),
    "write_bytes_per_op": Metric("bytes written per operation", is_ratio=True, may_be_none=True),
    "flushes_per_op": Metric("flushes per operation", is_ratio=False),
    "unaligned_write_share": Metric("share of writes off the preferred size", is_ratio=False),
    "unaligned_writes_per_op": Metric("writes off the preferred size per operation", is_ratio=False),
    "write_sequential_share": Metric("sequential share of writes", is_ratio=False),
    "read_sequential_share": Metric("sequential share of reads", is_ratio=False),
    "busy_depth": Metric("mean queue depth while the device is busy", is_ratio=False),
    **{
        metric: Metric(f"microseconds of client-serving threads per operation: {REASONS[reason]}", False, False, True)
        for reason, metric in WAIT_METRICS.items()
    },
}

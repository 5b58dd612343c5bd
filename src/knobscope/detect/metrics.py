"""What is compared: the metrics of a run, and whether their effects are ratios or differences."""

from dataclasses import dataclass

import numpy as np

from knobscope.detect.regression import Floats

__all__ = ["METRICS", "Metric"]


@dataclass(frozen=True)
class Metric:
    """One column of view `run_metrics`."""

    title: str
    is_ratio: bool  # effects are natural-log ratios; else differences, for shares and for counts that may be 0

    def response(self, values: Floats) -> Floats:
        """Return what is fitted; NaN where a run has no value, or none that a logarithm can take."""
        if not self.is_ratio:
            return values
        return np.log(np.where(values > 0, values, np.nan))

    def on_own_scale(self, response: float) -> float:
        """Return a fitted mean in the metric's unit."""
        return float(np.exp(response)) if self.is_ratio else response


METRICS: dict[str, Metric] = {
    "throughput_ops": Metric("throughput, operations per second", is_ratio=True),
    "latency_p95_us": Metric("95th percentile of latency, microseconds", is_ratio=True),
    "latency_p99_us": Metric("99th percentile of latency, microseconds", is_ratio=True),
    "cpu_s_per_op": Metric("CPU seconds per operation", is_ratio=True),
    "writes_per_op": Metric("write requests per operation", is_ratio=True),
    "write_bytes_per_op": Metric("bytes written per operation", is_ratio=True),
    "flushes_per_op": Metric("flushes per operation", is_ratio=False),
    "unaligned_write_share": Metric("share of writes off the preferred size", is_ratio=False),
    "unaligned_writes_per_op": Metric("writes off the preferred size per operation", is_ratio=False),
    "write_sequential_share": Metric("sequential share of writes", is_ratio=False),
    "read_sequential_share": Metric("sequential share of reads", is_ratio=False),
    "busy_depth": Metric("mean queue depth while the device is busy", is_ratio=False),
}

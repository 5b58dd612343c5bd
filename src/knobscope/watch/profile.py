"""What a watch says of a run."""

from typing import Any

__all__ = ["Profile"]

#: What `end` returns. `monitor` is bpf or procfs; `machine_cpu_share` is the share of all processors' time in which
#: anything ran on this machine; numbers that this monitor cannot know are None. Lists of rows:
#: `io_profile` (one row per operation), `io_sizes`, `queue_depth` (queue -1: the whole device), `io_latency`,
#: `queue_wait`, `files` and `series`, empty with procfs. Columns are those of the tables of the same names.
Profile = dict[str, Any]

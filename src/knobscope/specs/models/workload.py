"""A workload: a load generator, its parameters, and how long it runs."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from knobscope.specs.models.generator import BUILT_IN, TPCC, TPCDS, TPCH, YCSB
from knobscope.specs.models.tpcc import find_wrong_tpcc
from knobscope.specs.models.ycsb import find_wrong_properties
from knobscope.specs.reading.base import Misfit, Name, SpecModel, Value

_FACTOR_PREFIX = "workload."

#: Scale factor 0.01; at 0.005 the generator of TPC-DS does not come to an end.
_TPCDS_SMALLEST = 10

#: A run of more than a day is a mistake, as is one that is over before a second operation is.
_LONGEST_S = 86_400
_SHORTEST_S = 0.1
Seconds = Annotated[float, Field(ge=0, le=_LONGEST_S)]
MeasuredSeconds = Annotated[float, Field(ge=_SHORTEST_S, le=_LONGEST_S)]
MeasuredOperations = Annotated[int, Field(ge=1, le=10**12)]
#: Intervals of a window are this long at most; one that may end early has short ones.
_INTERVAL_S, _SHORT_INTERVAL_S = 1.0, 0.25
Records = Annotated[int, Field(ge=1, le=10**12)]
FailedShare = Annotated[float, Field(ge=0, lt=1)]
Threads = Annotated[int, Field(ge=1, le=10_000)]
#: Below it no process that knobscope starts could live; most DBMSs need more and say so (`min_memory_mib`).
MemoryMib = Annotated[int, Field(ge=16, le=2**24)]

_ENOUGH = (
    "The window ends once so many operations succeeded, after a second at least and `measure_s` at most: a slow device "
    "gets the time that it needs, a fast one takes no longer than it must. For the built-in generators."
)


def factor_knob(setting: str) -> str:
    """Return the name of the knob that stands for a setting of the workload, which a study varies."""
    return f"{_FACTOR_PREFIX}{setting}"


def is_workload_knob(knob: str) -> bool:
    """Whether a knob stands for a setting of the workload."""
    return knob.startswith(_FACTOR_PREFIX)


class Workload(SpecModel):
    """One workload."""

    name: Name = Field(description="The file's name without .yaml.")
    description: str | None = Field(default=None, description="What it stands for.")
    generator: Name = Field(description="The load generator: ycsb, tpcc, tpch, tpcds, or a file in specs/generators.")
    class_: Literal["read", "write"] = Field(alias="class", description="What dominates it.")
    records: Records = Field(
        description="Size of the data set, in records; for tpcc in warehouses, for tpch and tpcds in thousandths of "
        "SF 1.",
    )
    threads: Threads = Field(default=2, description="Client threads, each with a connection.")
    warmup_s: Seconds = Field(default=1, description="Seconds before measuring begins.")
    measure_s: MeasuredSeconds = Field(default=5, description="Seconds that are measured.")
    measure_operations: MeasuredOperations | None = Field(default=None, description=_ENOUGH)
    memory_mib: MemoryMib | None = Field(
        default=None,
        description="Memory that the DBMS may use, its share of the page cache included (a control group; needs root); "
        "no limit when absent.",
    )
    max_failed_share: FailedShare = Field(
        default=0.01,
        description="Share of operations that may fail before a run counts as failed. What conflicts with other "
        "operations (a deadlock, a lock that could not be taken) is repeated up to nine times first, and counted.",
    )
    cold: bool = Field(default=False, description="Whether a run begins with nothing of its data in the page cache.")
    read_order: Literal["sequential", "random"] | None = Field(
        default=None,
        description="The order in which it asks for the data that it reads: sequential for whole tables or for records "
        "in the order of their key, random for single records. Rule access_pattern holds the system calls and the "
        "device against it. Absent: neither, or a mixture.",
    )
    parameters: dict[str, Value] = Field(default_factory=dict, description="Properties of the generator.")
    source: str | None = Field(default=None, pattern=r"^https?://", description="Where the workload was defined first.")

    @property
    def interval_s(self) -> float:
        """Length of the intervals of a window, of which it has four or more."""
        longest = _INTERVAL_S if self.measure_operations is None else _SHORT_INTERVAL_S
        return longest if self.measure_s >= 2 * longest else self.measure_s / 4

    @property
    def scale_factor(self) -> str:
        """What `records` of tpch and tpcds are thousandths of."""
        return f"{self.records / 1000:.12g}"

    @property
    def size(self) -> str:
        """How large its data set is, in the generator's words: 20,000 records, 2 warehouses, scale factor 0.1."""
        if self.generator in (TPCH, TPCDS):
            return f"scale factor {self.scale_factor}"
        noun = "warehouse" if self.generator == TPCC else "record"
        return f"{self.records:,} {noun}{'' if self.records == 1 else 's'}"

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield what its generator cannot do: parameters that it does not have, values, an end by operations."""
        if self.measure_operations is not None and self.generator not in BUILT_IN:
            expected = f"measure_s alone: {self.generator} decides itself when it ends"
            yield Misfit(("measure_operations",), str(self.measure_operations), expected)
        if self.generator == YCSB:
            yield from find_wrong_properties(self.parameters)
        elif self.generator == TPCC:
            yield from find_wrong_tpcc(self.parameters)
        elif self.generator in (TPCH, TPCDS):
            for name in self.parameters:
                expected = "none: `records` is all that it has"
                yield Misfit(("parameters", name), f"a parameter of {self.generator}", expected)
            if self.generator == TPCDS and self.records < _TPCDS_SMALLEST:
                yield Misfit(("records",), str(self.records), f"{_TPCDS_SMALLEST} or more, scale factor 0.01")


class WorkloadChange(SpecModel):
    """What a study may change in a workload."""

    records: Records | None = Field(default=None, description="Size of the data set, as in a workload.")
    threads: Threads | None = Field(default=None, description="Client threads, each with a connection.")
    warmup_s: Seconds | None = Field(default=None, description="Seconds before measuring begins.")
    measure_s: MeasuredSeconds | None = Field(default=None, description="Seconds that are measured.")
    measure_operations: MeasuredOperations | None = Field(default=None, description=_ENOUGH)
    memory_mib: MemoryMib | None = Field(default=None, description="Memory that the DBMS may use.")
    max_failed_share: FailedShare | None = Field(default=None, description="Share of operations that may fail.")
    cold: bool | None = Field(default=None, description="Whether the page cache holds nothing of the data at first.")

"""A workload: a load generator, its parameters, and how long it runs."""

import math
from typing import Literal

from pydantic import Field, model_validator

from knobscope.specs.base import Misfit, Name, SpecModel, Value, suggest
from knobscope.specs.generator import TPCC, TPCDS, TPCH, YCSB

__all__ = ["Workload", "WorkloadChange"]

#: YCSB's operation mix with the defaults of its CoreWorkload (0.17.0), which hold for a part that is left out.
_MIX = {
    "readproportion": 0.95,
    "updateproportion": 0.05,
    "insertproportion": 0.0,
    "scanproportion": 0.0,
    "readmodifywriteproportion": 0.0,
}
#: The other properties that CoreWorkload reads. It ignores what it does not know, so a slip would pass unseen.
_OTHER = {
    "core_workload_insertion_retry_interval",
    "core_workload_insertion_retry_limit",
    "dataintegrity",
    "exponential.frac",
    "exponential.percentile",
    "fieldcount",
    "fieldlength",
    "fieldlengthdistribution",
    "fieldlengthhistogram",
    "fieldnameprefix",
    "hotspotdatafraction",
    "hotspotopnfraction",
    "insertorder",
    "maxscanlength",
    "minfieldlength",
    "minscanlength",
    "readallfields",
    "readallfieldsbyname",
    "requestdistribution",
    "scanlengthdistribution",
    "table",
    "writeallfields",
    "zeropadding",
}
#: Parameters of TPC-C: whether terminals wait as people do; what the tables of a test are divided by.
_TPCC = {"think_times", "scale"}
_TPCC_SMALLEST = 100
#: Scale factor 0.01; at 0.005 the generator of TPC-DS does not come to an end.
_TPCDS_SMALLEST = 10


class Workload(SpecModel):
    """One workload."""

    name: Name = Field(description="The file's name without .yaml.")
    description: str | None = Field(default=None, description="What it stands for.")
    generator: Name = Field(description="The load generator: ycsb, tpcc, tpch, tpcds, or a file in specs/generators.")
    class_: Literal["read", "write"] = Field(alias="class", description="What dominates it.")
    records: int = Field(
        gt=0,
        description="Size of the data set, in records; for tpcc in warehouses, for tpch and tpcds in thousandths of "
        "SF 1.",
    )
    threads: int = Field(default=2, gt=0, description="Client threads, each with a connection.")
    warmup_s: float = Field(default=1, ge=0, description="Seconds before measuring begins.")
    measure_s: float = Field(default=5, gt=0, description="Seconds that are measured.")
    memory_mib: int | None = Field(
        default=None,
        gt=0,
        description="Memory that the DBMS may use, its share of the page cache included (a control group; needs root); "
        "no limit when absent.",
    )
    cold: bool = Field(default=False, description="Whether a run begins with nothing of its data in the page cache.")
    parameters: dict[str, Value] = Field(default_factory=dict, description="Properties of the generator.")
    source: str | None = Field(default=None, pattern=r"^https?://", description="Where the workload was defined first.")

    @model_validator(mode="after")
    def _is_consistent(self) -> "Workload":
        if self.generator == YCSB:
            self._check_mix()
        elif self.generator == TPCC:
            self._check_tpcc()
        elif self.generator in (TPCH, TPCDS):
            for name in self.parameters:
                raise Misfit(
                    ("parameters", name), f"a parameter of {self.generator}", "none: `records` is all that it has"
                )
            if self.generator == TPCDS and self.records < _TPCDS_SMALLEST:
                raise Misfit(("records",), str(self.records), f"{_TPCDS_SMALLEST} or more, scale factor 0.01")
        return self

    def _check_tpcc(self) -> None:
        """Raise Misfit for parameters that TPC-C does not have, and for their values."""
        for name, value in self.parameters.items():
            if name not in _TPCC:
                raise Misfit(("parameters", name), "an unknown parameter", suggest(name, sorted(_TPCC)))
            if name == "think_times" and not isinstance(value, bool):
                raise Misfit(("parameters", name), repr(value), "true or false")
            if name == "scale" and (type(value) is not int or not 1 <= value <= _TPCC_SMALLEST):
                raise Misfit(("parameters", name), repr(value), f"a whole number from 1 to {_TPCC_SMALLEST}")

    def _check_mix(self) -> None:
        """Raise Misfit for properties that YCSB does not know, and a mix that does not add up."""
        for name, value in self.parameters.items():
            if name not in _OTHER and name not in _MIX:
                raise Misfit(("parameters", name), "an unknown property", suggest(name, sorted([*_MIX, *_OTHER])))
            if name in _MIX and (isinstance(value, bool | str) or not 0 <= value <= 1):
                raise Misfit(("parameters", name), repr(value), "a number between 0 and 1")
        mix = {name: self.parameters.get(name, default) for name, default in _MIX.items()}
        if not math.isclose(sum(map(float, mix.values())), 1):
            shown = ", ".join(f"{name} {share}" for name, share in mix.items() if share)
            raise Misfit(("parameters",), f"the mix {shown}", "proportions that add up to 1, all of them stated")


class WorkloadChange(SpecModel):
    """What a study may change in a workload."""

    records: int | None = Field(default=None, gt=0, description="Size of the data set, in records.")
    threads: int | None = Field(default=None, gt=0, description="Client threads, each with a connection.")
    warmup_s: float | None = Field(default=None, ge=0, description="Seconds before measuring begins.")
    measure_s: float | None = Field(default=None, gt=0, description="Seconds that are measured.")
    memory_mib: int | None = Field(default=None, gt=0, description="Memory that the DBMS may use.")
    cold: bool | None = Field(default=None, description="Whether the page cache holds nothing of the data at first.")

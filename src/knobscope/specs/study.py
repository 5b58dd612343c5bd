"""A study: which DBMSs, devices and workloads, which knobs, how many runs, how results are judged."""

from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator, model_validator

from knobscope.specs.base import Misfit, Name, SpecModel, Value
from knobscope.specs.knob import check_range
from knobscope.specs.workload import WorkloadChange

__all__ = ["RULES", "Budget", "KnobChoice", "RuleSettings", "Sampling", "Screening", "Study", "Sweep"]

RuleName = Literal["tier", "io_size", "io_parallelism", "io_sequentiality", "intuition"]
RULES: tuple[str, ...] = get_args(RuleName)


class KnobChoice(SpecModel):
    """Which values of a knob the study looks at; all, or a spread over its range, when nothing is said."""

    values: Annotated[list[Value], Field(min_length=2)] | None = Field(
        default=None, description="Just these values (the baseline is always one more)."
    )
    range: Annotated[list[int | float], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="A part of the knob's range."
    )

    @field_validator("range")
    @classmethod
    def _ascends(cls, ends: list[int | float] | None) -> list[int | float] | None:
        return ends if ends is None else check_range(ends)

    @model_validator(mode="after")
    def _is_one(self) -> "KnobChoice":
        if self.values is not None and self.range is not None:
            raise Misfit(("range",), "both `values` and `range`", "one of them")
        return self


class Sampling(SpecModel):
    """How screening configurations are drawn, round by round."""

    method: Literal["lhs", "random"] = Field(default="lhs", description="Latin hypercube, or plain random.")
    levels: int = Field(default=4, ge=2, description="Levels that a number is cut into (ANOVA wants categories).")
    runs_per_round: int = Field(default=20, ge=4, description="New configurations of one round.")
    max_rounds: int = Field(default=5, ge=1, description="Rounds at most, whatever the model says.")
    block_runs: int = Field(default=30, ge=4, description="Runs of one block at most, sentinels not counted.")


class Screening(SpecModel):
    """When screening may stop, and what it hands on."""

    model: Literal["anova", "lightgbm", "random_forest", "extra_trees", "mlp", "auto"] = Field(
        default="anova", description="Model that ranks the knobs."
    )
    threshold: float = Field(default=0.9, gt=0, lt=1, description="R2 that all splits must reach.")
    splits: int = Field(default=10, ge=2, description="Random splits into training and test runs.")
    top: int = Field(default=5, ge=1, description="Knobs that go on to the one-at-a-time round.")


class Sweep(SpecModel):
    """The one-at-a-time round of the selected knobs."""

    repeats: int = Field(default=3, ge=2, description="Complete blocks, each with every value once.")
    always: list[str] = Field(default_factory=list, description="Knobs that are swept whatever the ranking says.")


class RuleSettings(SpecModel):
    """Thresholds of the mismatch rules."""

    fdr: float = Field(default=0.05, gt=0, lt=1, description="False discovery rate over all comparisons.")
    min_effect: float = Field(default=0.05, ge=0, description="Smallest relative change that is worth a finding.")
    busy_share: float = Field(default=0.95, gt=0, lt=1, description="Share of busy time at depth one.")
    tier_gap: float = Field(default=0.2, ge=0, description="Relative gap between tiers that is worth a finding.")


class Budget(SpecModel):
    """Where the study ends whatever it has found."""

    runs: int | None = Field(default=None, gt=0, description="Runs at most; no limit when absent.")


class Study(SpecModel):
    """One study."""

    name: Name = Field(description="The file's name without .yaml.")
    description: str = Field(description="What it asks, for the report.")
    dbms: list[Name] = Field(min_length=1, description="DBMSs, by the names of their files.")
    devices: list[Name] = Field(min_length=1, description="Devices, by the names of their files.")
    workloads: dict[Name, WorkloadChange | None] = Field(
        min_length=1, description="Workloads, with what to change in each."
    )
    knobs: dict[Name, dict[str, KnobChoice | None]] = Field(description="Per DBMS, the knobs to vary.")
    baseline: dict[Name, dict[str, Value]] = Field(
        default_factory=dict, description="Per DBMS, values that replace its defaults; the sentinel."
    )
    seed: int = Field(default=1, ge=0, le=2**32 - 1, description="Seed of everything that is drawn.")
    sampling: Sampling = Field(default=Sampling(), description="How configurations are drawn.")
    screening: Screening = Field(default=Screening(), description="When screening stops.")
    sweep: Sweep = Field(default=Sweep(), description="One knob at a time.")
    characterise: Literal["quick", "full"] = Field(
        default="quick", description="How thoroughly fio measures each device first."
    )
    monitor: Literal["bpf", "procfs"] = Field(default="bpf", description="bpf falls back to procfs, and says so.")
    rules: list[RuleName] = Field(default=list(get_args(RuleName)), description="Mismatch rules to apply.")
    thresholds: RuleSettings = Field(default=RuleSettings(), description="Thresholds of the rules.")
    budget: Budget = Field(default=Budget(), description="A limit for the whole study.")

    @model_validator(mode="after")
    def _is_consistent(self) -> "Study":
        for key in ("dbms", "devices", "rules"):
            names = getattr(self, key)
            for index, name in enumerate(names):
                if name in names[:index]:
                    raise Misfit((key, index), f"{name!r} a second time", "each name once")
        for key, group in (("knobs", self.knobs), ("baseline", self.baseline)):
            for name in group:
                if name not in self.dbms:
                    raise Misfit((key, name), "a DBMS that the study does not use", f"one of `dbms`: {self.dbms}")
        for name in self.dbms:
            if not self.knobs.get(name):
                raise Misfit(("knobs", name), "no knob", "at least one knob to vary")
        varied = sorted({knob for group in self.knobs.values() for knob in group})
        for index, knob in enumerate(self.sweep.always):
            if knob not in varied:
                raise Misfit(("sweep", "always", index), repr(knob), f"a knob that the study varies: {varied}")
        return self

"""A study: which DBMSs, devices and workloads, which knobs, how many runs, how results are judged."""

from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator, model_validator

from knobscope.specs.base import Misfit, Name, SpecModel, Value
from knobscope.specs.knob import check_range
from knobscope.specs.workload import WorkloadChange

__all__ = ["RULES", "Budget", "KnobChoice", "RuleSettings", "Sampling", "Screening", "Study", "Sweep", "Tune"]

RuleName = Literal[
    "tier",
    "io_size",
    "io_parallelism",
    "io_sequentiality",
    "intuition",
    "read_write_interference",
    "access_pattern",
    "cross_check",
]
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

    method: Literal["lhs", "random", "balanced", "stratified", "distribution_aware", "active"] = Field(
        default="lhs",
        description="Latin hypercube, plain random, every level equally often, strata of one knob, where the response "
        "varies most, or pairs of levels that are least known. The last two go by what earlier rounds measured: every "
        "case gets configurations of its own.",
    )
    levels: int = Field(default=4, ge=2, description="Levels that a number is cut into (ANOVA wants categories).")
    runs_per_round: int = Field(default=20, ge=4, description="New configurations of one round.")
    max_rounds: int = Field(default=5, ge=1, description="Rounds at most, whatever the model says.")
    block_runs: int = Field(default=30, ge=4, description="Runs of one block at most, sentinels not counted.")


class Screening(SpecModel):
    """When screening may stop, and what it hands on."""

    model: Literal["anova", "lightgbm", "random_forest", "extra_trees", "mlp", "auto"] = Field(
        default="auto", description="Model that ranks the knobs; auto is the simplest of several that suffices."
    )
    threshold: float = Field(default=0.9, gt=0, lt=1, description="R2 that all splits must reach.")
    splits: int = Field(default=10, ge=2, description="Random splits into training and test runs.")
    stop: Literal["r2", "stability", "both"] = Field(
        default="r2",
        description="Stop when R2 reaches the threshold on all splits, when the conclusions (significant terms and "
        "important points) have stayed the same, or when both is so.",
    )
    stable_rounds: int = Field(default=3, ge=2, description="Rounds in which the conclusions have to be the same.")
    top: int = Field(default=5, ge=1, description="Knobs that go on to the one-at-a-time round.")
    prior: str | None = Field(
        default=None,
        min_length=1,
        description="Model to take the ranking from instead of screening: a name in models/, or a YAML file.",
    )


class Sweep(SpecModel):
    """The one-at-a-time round of the selected knobs."""

    repeats: int = Field(default=3, ge=2, description="Complete blocks, each with every value once.")
    always: list[str] = Field(default_factory=list, description="Knobs that are swept whatever the ranking says.")


class Tune(SpecModel):
    """Optuna on the knobs that matter and on all knobs, through the same measured runs."""

    sampler: Literal["tpe", "random"] = Field(
        default="tpe", description="Tree-structured Parzen estimator, or random configurations to compare with."
    )
    trials: int = Field(default=25, ge=2, description="Configurations that each tuner tries.")
    seeds: int = Field(default=3, ge=1, description="Tuners of each space, which differ in their seed only.")
    spaces: list[Annotated[str, Field(pattern=r"^(all|top[1-9][0-9]*)$")]] = Field(
        default=["top5", "all"],
        min_length=1,
        description="Knobs to tune: topK are the first K of the ranking, all are those that the study varies.",
    )
    with_durability: bool = Field(
        default=False, description="Whether knobs that risk committed data are tuned, too; a tuner takes that risk."
    )
    repeats: int = Field(default=3, ge=2, description="Times that the best configuration of each is measured again.")


class RuleSettings(SpecModel):
    """Thresholds of the mismatch rules."""

    fdr: float = Field(default=0.05, gt=0, lt=1, description="False discovery rate over all comparisons.")
    min_effect: float = Field(default=0.05, ge=0, description="Smallest relative change that is worth a finding.")
    busy_share: float = Field(default=0.95, gt=0, lt=1, description="Share of busy time at depth one.")
    tier_gap: float = Field(default=0.2, ge=0, description="Relative gap between tiers that is worth a finding.")


class Budget(SpecModel):
    """Where the study ends whatever it has found."""

    runs: int | None = Field(default=None, gt=0, description="Runs at most; no limit when absent.")
    disk_gb: float = Field(
        default=50,
        gt=0,
        description="Gigabytes (10^9 bytes) that results and loaded data may take, for each device. Loaded data that "
        "is not in use is removed first, that of the longest time ago before others, and loaded again when needed.",
    )


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
    tune: Tune | None = Field(default=None, description="Tuners at the end; absent: none.")
    characterise: Literal["quick", "full"] = Field(
        default="quick", description="How thoroughly fio measures each device first."
    )
    monitor: Literal["bpf", "procfs"] = Field(default="bpf", description="bpf falls back to procfs, and says so.")
    watch: list[Literal["syscalls", "faults"]] = Field(
        default_factory=list,
        description="What to watch beside the block layer: system calls on the files of the device (about 1 us each), "
        "page faults on mapped files (1 to 2 us each).",
    )
    trace: bool = Field(
        default=False,
        description="Whether every request of every run of the sweep is kept, for `knobscope trace` and the report: "
        "in traces/RUN_ID below the study's results, at most 4 million requests of a run, about 20 bytes each.",
    )
    rules: list[RuleName] = Field(default=list(get_args(RuleName)), description="Mismatch rules to apply.")
    thresholds: RuleSettings = Field(default=RuleSettings(), description="Thresholds of the rules.")
    budget: Budget = Field(default=Budget(), description="A limit for the whole study.")

    @model_validator(mode="after")
    def _is_consistent(self) -> "Study":
        for key in ("dbms", "devices", "rules", "watch"):
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
        for index, space in enumerate(self.tune.spaces if self.tune else []):
            if self.tune and space in self.tune.spaces[:index]:
                raise Misfit(("tune", "spaces", index), f"{space!r} a second time", "each space once")
        varied = sorted({knob for group in self.knobs.values() for knob in group})
        for index, knob in enumerate(self.sweep.always):
            if knob not in varied:
                raise Misfit(("sweep", "always", index), repr(knob), f"a knob that the study varies: {varied}")
        return self

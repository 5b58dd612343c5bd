"""A study: which DBMSs, devices and workloads, which knobs, how many runs, how results are judged."""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import AliasChoices, ConfigDict, Field

from knobscope.specs.models.choice import AllKnobs, KnobGroup
from knobscope.specs.models.client_host import ClientHost
from knobscope.specs.models.kernel import KernelFactors
from knobscope.specs.models.knob import find_repeated
from knobscope.specs.models.part import WITH_DATA, part_knob
from knobscope.specs.models.workload import WorkloadChange, factor_knob
from knobscope.specs.reading.base import Misfit, Name, SpecModel, Value

#: A part of a DBMS as a layout names it: `log`, or `table.stock` where a part is one of many.
LayoutPart = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$")]


class Sampling(SpecModel):
    """How screening configurations are drawn, round by round."""

    method: Literal["auto", "lhs", "random", "balanced", "stratified", "distribution_aware", "active", "narrowing"] = (
        Field(
            default="auto",
            description="Latin hypercube, plain random, every level equally often, strata of one knob, where the "
            "response varies most, pairs of levels that are least known, or a Latin hypercube without levels that "
            "turned out to be several times slower. The last three go by what earlier rounds measured: every case gets "
            "configurations of its own. auto is `active` where a DBMS has one case and few knobs, `narrowing` where it "
            "has one case and many knobs, else `lhs` (docs/evidence/statistics.md).",
        )
    )
    levels: int = Field(
        default=4, ge=2, le=1000, description="Levels that a number is cut into (ANOVA wants categories)."
    )
    varied: float = Field(
        default=1,
        gt=0,
        le=1,
        description="Share of the knobs that a configuration draws, on average; the others keep their defaults. A "
        "small share stays near the default, where the sweep measures: a knob that is badly set hides what the others "
        "do in few configurations only, but of two knobs that matter only together fewer configurations tell.",
    )
    runs_per_round: int = Field(default=20, ge=4, le=100_000, description="New configurations of one round.")
    max_rounds: int = Field(default=5, ge=1, le=10_000, description="Rounds at most, whatever the model says.")
    block_runs: int = Field(
        default=30, ge=4, le=100_000, description="Runs of one block at most, sentinels not counted."
    )


class Screening(SpecModel):
    """When screening may stop, and what it passes on."""

    model: Literal["anova", "lightgbm", "random_forest", "extra_trees", "gaussian_process", "mlp", "auto"] = Field(
        default="auto",
        description="Statistical model that ranks the knobs; auto is the best of several, or the mean of two.",
    )
    response: Literal["throughput", "latency_p95", "latency_p99"] = Field(
        default="throughput",
        description="What the model explains, and knobs are ranked by. The sweep measures both throughput and latency "
        "of the knobs that go on; priors are for throughput alone.",
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
    warm_start: bool = Field(
        default=True,
        description="Whether knobs that stood out in a fitting prior of models/ have to show less than others do, "
        "where there are more knobs than runs (model auto).",
    )
    prior: str | None = Field(
        default=None,
        min_length=1,
        description="Prior to take the ranking from instead of screening: a name in models/, or a YAML file.",
    )


class Sweep(SpecModel):
    """The one-at-a-time round of the selected knobs."""

    repeats: int = Field(
        default=3,
        ge=2,
        le=1000,
        description="Complete blocks, each with every value once; with `most` the least of them.",
    )
    always: list[str] = Field(default_factory=list, description="Knobs that are swept whatever the ranking says.")
    pairs: int = Field(
        default=0,
        ge=0,
        le=100,
        description="Pairs of knobs to sweep together, of those that screening shows to interact, the strongest first: "
        "values of the one together with values of the other (docs/evidence/statistics.md). They are not repeated "
        "beyond `repeats`.",
    )
    most: int | None = Field(
        default=None,
        ge=2,
        le=1000,
        description="Blocks of a value at most: values whose noise hides effects of the size of `effect` are measured "
        "in further blocks, up to so many. Absent: all values are measured in `repeats` blocks, however noisy.",
    )
    effect: float = Field(
        default=1.3,
        gt=1,
        le=100,
        description="Effect on throughput that is to be found, as a ratio: 1.3 is 1.3 times as fast or slow; in a "
        "study of several tiers also as a difference between two devices.",
    )
    power: float = Field(
        default=0.9, ge=0.5, le=0.999, description="Chance with which an effect of that size is to be found."
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield that the most blocks are fewer than the least."""
        if self.most is not None and self.most < self.repeats:
            yield Misfit(("most",), str(self.most), f"{self.repeats} (`repeats`) or more")


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
        description="Knobs to tune: topK are the first K of the ranking, with those that have an effect only together "
        "with one of them (by `when`); all are those that the study varies.",
    )
    with_durability: bool = Field(
        default=False, description="Whether values that risk committed data are tried, too; a tuner takes that risk."
    )
    repeats: int = Field(
        default=3, ge=2, le=1000, description="Times that the best configuration of each is measured again."
    )
    # Left out where it is usual, so that finished sessions stay finished.
    cuts: int = Field(
        default=5,
        ge=0,
        le=1000,
        exclude_if=lambda value: value == 5,
        description="Power cuts of the best configuration of each tuner: the best one that keeps all rows that it "
        "acknowledged wins. For loads of YCSB, as root, without `with_durability`; 0: none.",
    )


class Remeasure(SpecModel):
    """Mismatches are measured again, also on devices that differ, or are slower, in one property.

    Of many noisy effects the largest look larger than they are, and some are chance. What causes an effect, only other
    devices show. On a modelled device the one without the property that a rule blames is cheap; all others, and delays
    on a real device, take many runs, so a study asks for them.
    """

    findings: int = Field(
        default=8,
        ge=0,
        le=100_000,
        description="Effects to measure again at most, the costliest first, together with the fastest configurations; "
        "0: none, no mismatch is ever refuted because its effect was chance, and no configuration has a gain.",
    )
    what_if: int | None = Field(
        default=None,
        ge=0,
        le=100_000,
        description="How many of these are measured on other devices, too, to find what of the device is the cause: "
        "those on modelled devices on all what-if devices, which differ in one property; those on real devices behind "
        "a program that makes reads, writes or flushes slower (needs root or the helper, and /dev/fuse). When absent: "
        "each on a modelled device whose rule blames a property, on the device without this property alone; none "
        "where the study has a budget of runs or hours. 0: none.",
    )
    repeats: int = Field(
        default=4,
        ge=3,
        le=1000,
        description="Pairs of runs at first, up to three times as many where these do not tell whether the effect is "
        "there, and on each what-if device: with the value, and with its reference value, which up to four values "
        "share. An effect alone takes 2 x repeats runs each time, and on each of up to nine what-if devices.",
    )
    cuts: int = Field(
        default=5,
        ge=0,
        le=1000,
        description="Power cuts of the fastest configuration that its spec calls safe, while it writes rows to a file "
        "system of its own: whether all that it acknowledged is there afterwards. For loads of YCSB, as root; 0: none.",
    )


class Thresholds(SpecModel):
    """What counts as a finding. Every threshold of the study's rules (docs/reference/rules.md) is a key here, too."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, float] = Field(init=False)

    fdr: float = Field(default=0.05, gt=0, lt=1, description="False discovery rate over all comparisons.")
    min_effect: float = Field(default=0.05, ge=0, description="Smallest relative change that is worth a finding.")

    @property
    def of_rules(self) -> dict[str, float]:
        """Thresholds of single rules that the study sets."""
        return dict(self.__pydantic_extra__ or {})


class Budget(SpecModel):
    """Where the study ends whatever it has found."""

    runs: int | None = Field(
        default=None,
        gt=0,
        description="Runs at most, of all cases together: screening ends in time for the sweep (and for tuners and "
        "`remeasure`) to be within it. One round and the sweep come in any case; no limit when absent.",
    )
    hours: float | None = Field(
        default=None,
        gt=0,
        description="The same for the time that these runs take: warm-up, measured window and 1.5 s in addition, for "
        "each. It is an estimate made beforehand, which `snakemake -n` tells, and no clock: loading data, measuring "
        "the devices, experiments with fio, and starts or stops that take longer come on top.",
    )
    disk_gb: float = Field(
        default=50,
        gt=0,
        description="Gigabytes (10^9 bytes) that results and loaded data may take, for each device. Loaded data that "
        "is not in use is removed first, that of the longest time ago before others, and loaded again when needed.",
    )


class Factors(KernelFactors):
    """What a study varies in addition to the knobs of DBMSs."""

    workload: dict[str, Annotated[list[Value], Field(min_length=1)]] = Field(
        default_factory=dict,
        description="Settings of the workload with their values: `threads`, `records`, `cold`, a parameter of the load "
        "generator, or `read_share` (of YCSB's reads and updates). Each is a knob named `workload.SETTING`, whose "
        "default is what the workload says; rules find no mismatch in it, and it is not tuned.",
    )

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield values that are listed twice."""
        for setting, values in self.workload.items():
            yield from find_repeated(("workload", setting), values)


class Study(SpecModel):
    """One study."""

    name: Name = Field(description="The file's name without .yaml.")
    description: str = Field(description="What it asks, for the report.")
    dbms: list[Name] = Field(min_length=1, description="DBMSs, by the names of their files.")
    devices: list[Name] = Field(min_length=1, description="Devices, by the names of their files.")
    workloads: dict[Name, WorkloadChange | None] = Field(
        min_length=1, description="Workloads, with what to change in each."
    )
    knobs: dict[Name, KnobGroup] = Field(
        description="Per DBMS, the knobs to vary; `all`: those of its spec and of its catalogue, if it has one "
        "(docs/how-to/introspect.md)."
    )
    baseline: dict[Name, dict[str, Value]] = Field(
        default_factory=dict, description="Per DBMS, values that replace its defaults; the sentinel."
    )
    layout: dict[Name, dict[LayoutPart, Name | Annotated[list[Name], Field(min_length=1)]]] = Field(
        default_factory=dict,
        description="Per DBMS, parts of its data (`parts` of its spec) and their devices. One device: the part lies "
        "there in all runs. A list: the study varies it like a knob, named `device.PART`, whose default is `data`, the "
        "device of the data.",
    )
    factors: Factors = Field(default=Factors(), description="What is varied in addition to knobs.")
    client: ClientHost | None = Field(
        default=None,
        description="Another machine that YCSB's client runs on, so that it takes no processor time from the DBMS "
        "(docs/how-to/client-host.md); absent: this one.",
    )
    seed: int = Field(default=1, ge=0, le=2**32 - 1, description="Seed of everything that is drawn.")
    sampling: Sampling = Field(default=Sampling(), description="How configurations are drawn.")
    screening: Screening = Field(default=Screening(), description="When screening stops.")
    sweep: Sweep = Field(default=Sweep(), description="One knob at a time.")
    tune: Tune | None = Field(default=None, description="Tuners at the end; absent: none.")
    remeasure: Remeasure = Field(
        default=Remeasure(),
        validation_alias=AliasChoices("remeasure", "explain"),
        description="Mismatches measured again, and on what-if devices, before they are believed.",
    )
    characterise: Literal["quick", "full"] = Field(
        default="quick", description="How thoroughly fio measures each device first."
    )
    monitor: Literal["bpf", "procfs"] = Field(default="bpf", description="bpf falls back to procfs, and says so.")
    watch: list[Literal["syscalls", "faults", "waits"]] = Field(
        default_factory=list,
        description="What to watch in addition to the block layer: system calls on the files of the device (about 1 "
        "us each), "
        "page faults on mapped files (1 to 2 us each), what threads wait for (docs/how-to/waits.md).",
    )
    measure: list[Literal["recovery", "statements"]] = Field(
        default_factory=list,
        description="What is measured of each run in addition to the load. `recovery`: after the window the server "
        "is killed "
        "while a client writes, and started again on the data that it left. The time until it answers, and what it "
        "lost of the writes that it had acknowledged, are responses like throughput (columns `recovery_s` and "
        "`lost_s`). A run takes about 4 s more; a DBMS that lives in its client has none. `statements`: rows that the "
        "server selects, inserts, updates and deletes in each table (table `statements`), asked of the server twice a "
        "run; it may have to be started with more counters (`statements` of its spec). TPC-C's own statements are "
        "always counted.",
    )
    trace: bool = Field(
        default=False,
        description="Whether every request of every run of the sweep is kept, for `knobscope trace` and the report: "
        "in traces/RUN_ID below the study's results, at most 4 million requests of a run, about 20 bytes each.",
    )
    rules: list[str] | None = Field(
        default=None,
        description="Mismatch rules to apply: names from docs/reference/rules.md, and folders of your own as paths "
        "from the folder that holds `specs` (`my-rules/slow_reads`). Absent: all that come with knobscope; an empty "
        "list: none.",
    )
    thresholds: Thresholds = Field(default=Thresholds(), description="What counts as a finding.")
    budget: Budget = Field(default=Budget(), description="A limit for the whole study.")

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield names that are listed twice, and knobs under `always` that the study does not vary."""
        for key in ("dbms", "devices", "rules", "watch", "measure"):
            yield from _find_repeated_names((key,), getattr(self, key) or [])
        yield from _find_repeated_names(("tune", "spaces"), self.tune.spaces if self.tune else [])
        yield from _find_repeated_names(("sweep", "always"), self.sweep.always)
        yield from self._find_wrong_devices()
        if self.layout and self.factors.filesystem.settings:
            yield Misfit(("factors", "filesystem"), "this key together with `layout`", "one of the two")
        if not any(self.whole_of(dbms) for dbms in self.knobs):
            yield from self.find_unvaried()

    def whole_of(self, dbms: str) -> AllKnobs | None:
        """Return what the study asks for with `all` of a DBMS; None where it names its knobs."""
        group = self.knobs.get(dbms)
        return group.whole if isinstance(group, KnobGroup) else None

    def find_unvaried(self) -> Iterator[Misfit]:
        """Yield knobs under `always` that the study does not vary; with `all`, ask when they have become knobs."""
        varied = sorted(
            {
                *(knob for group in self.knobs.values() for knob in group),
                *self._layout_knobs(),
                *map(factor_knob, self.factors.workload),
                *self.factors.kernel_knobs(),
            }
        )
        for index, knob in enumerate(self.sweep.always):
            if knob not in varied:
                yield Misfit(("sweep", "always", index), repr(knob), f"a knob that the study varies: {varied}")

    def _layout_knobs(self) -> Iterator[str]:
        for parts in self.layout.values():
            yield from (part_knob(name) for name, devices in parts.items() if isinstance(devices, list))

    def _find_wrong_devices(self) -> Iterator[Misfit]:
        """Yield devices of the layout that hold the data of a case, or are named as what stands for that one."""
        for dbms, parts in self.layout.items():
            for part, named in parts.items():
                devices = named if isinstance(named, list) else [named]
                yield from _find_repeated_names(("layout", dbms, part), devices)
                for device in devices:
                    if device in self.devices or device == WITH_DATA:
                        expected = "a device that is none of `devices`: those hold the data of a case"
                        yield Misfit(("layout", dbms, part), repr(device), expected)


def _find_repeated_names(location: tuple[Value, ...], names: Sequence[str]) -> Iterator[Misfit]:
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Misfit((*location, index), f"{name!r} a second time", "each name once")

"""Tables of comparisons and findings."""

from typing import Annotated, Any, TypedDict

from knobscope.tables.declaring import CaseColumns, Count, CutColumns, Integer, Real, RunColumns, Text, Truth


class EstimateColumns(TypedDict, total=False):
    """An estimate with how sure it is."""

    estimate: Annotated[Real | None, "The estimate; the table says of what."]
    low: Annotated[Real | None, "Lower end of its 95 % interval."]
    high: Annotated[Real | None, "Upper end of its 95 % interval."]
    p_value: Annotated[Real | None, "p value: that there is no effect."]
    q_value: Annotated[
        Real | None, "The p value adjusted to a false discovery rate (Benjamini-Hochberg) over the family of tests."
    ]


class EffectRow(CaseColumns, EstimateColumns, total=False):
    """Effects of one knob value at a time against the default configuration of the same block, per metric.

    A value that does not count there, or is forbidden there, is compared with the default configuration with the change
    of other knobs in `beside`.

    `estimate` is a natural-log ratio, or a difference for metrics that are shares. The family of `q_value` is all
    effects on the metric.
    """

    tier: Annotated[Text | None, "Storage class of the device."]
    tier_rank: Annotated[Integer | None, "Order of the tiers; higher is faster."]
    knob: Annotated[Text, "Knob."]
    value: Annotated[Text, "Its value: JSON, words without quotes."]
    baseline: Annotated[Text, "Its value in the default configuration."]
    beside: Annotated[
        Text | None,
        "JSON: knob -> value of the other knobs that both the value and what it is compared with change; NULL: none.",
    ]
    unit: Annotated[Text | None, "Unit of these values, as the DBMS counts it."]
    step: Annotated[
        Integer | None,
        "Steps above (+) or below (-) the default in the order of the knob's values; NULL for special values.",
    ]
    metric: Annotated[Text, "Metric: a column of `runs`, or a figure of the I/O profile."]
    swept: Annotated[
        Real | None,
        "The sweep's own estimate where new pairs of runs measured the effect again; estimate, interval, standard "
        "error and degrees of freedom are theirs then or, where it is clear only together with the sweep, those of "
        "both. NULL: not measured again.",
    ]
    standard_error: Annotated[Real | None, "Standard error of the estimate."]
    degrees: Annotated[Real | None, "Degrees of freedom of the interval (Welch and Satterthwaite's)."]
    noise: Annotated[Real | None, "Standard deviation of one run."]
    reference: Annotated[
        Real | None,
        "Mean of what it is compared with on the metric's own scale (the geometric one where effects are ratios).",
    ]
    runs: Annotated[Integer, "Runs with this value that were compared."]
    blocks: Annotated[Integer, "Blocks that hold such runs and runs of what they are compared with."]
    set_aside: Annotated[Integer, "Runs with this value that were set aside (table `set_aside_runs`)."]
    reference_set_aside: Annotated[Integer, "The same of what it is compared with: mostly default runs."]
    expect: Annotated[
        Text | None, "What raising the knob should do to performance, as its spec says or its documentation suggests."
    ]
    expect_confidence: Annotated[
        Real | None, "How sure that is where it was proposed from the documentation; NULL: the spec says it."
    ]
    mechanism: Annotated[Text, "I/O mechanism that the knob steers."]
    durability: Annotated[Truth, "Whether the value risks committed data."]


class PairEffectRow(CaseColumns, EstimateColumns, total=False):
    """What two values of two knobs do together, beyond what each does alone: the interactions that a sweep measured.

    `estimate` is a natural-log ratio of throughput: that of both values to the default configuration, less that of
    either alone. Above 0 they do more together. The family of `q_value` is all pairs of values of the case.
    """

    knob: Annotated[Text, "Knob, the first of the pair by name."]
    value: Annotated[Text, "Its value: JSON, words without quotes."]
    other: Annotated[Text, "The other knob."]
    other_value: Annotated[Text, "Its value."]
    alone: Annotated[
        Real, "What the first value does together with the defaults, in the same blocks (natural-log ratio)."
    ]
    other_alone: Annotated[Real, "The same of the other value."]
    together: Annotated[Real, "The same of both."]
    blocks: Annotated[Integer, "Blocks that hold both values, each alone, and the default configuration."]


class BlockRow(CaseColumns, total=False):
    """Whether the runs of a sweep block can be compared with each other; a block that was resumed has several sessions.

    Changes are of throughput, as natural-log ratios.
    """

    block_id: Annotated[Text, "Block, as in `runs`."]
    session: Annotated[Text, "Session, as in `runs`."]
    sessions: Annotated[Integer, "Sessions of the whole block."]
    runs: Annotated[Integer, "Runs that succeeded."]
    sentinels: Annotated[Integer, "Runs of the default configuration that succeeded."]
    sentinel_change: Annotated[Real | None, "Last run of the default configuration against the first."]
    drift: Annotated[Real | None, "Change from the first run to the last, as a straight line."]
    drift_p: Annotated[Real | None, "p value: that there is no drift."]
    bend: Annotated[Real | None, "Distance of both ends from the middle, relative to the straight line."]
    bend_p: Annotated[Real | None, "p value: that there is no bend."]
    treatment: Annotated[Text, "`none`, `position` (its drift is a term of the model) or `dropped`."]
    reason: Annotated[Text, "Why."]
    level: Annotated[
        Real | None,
        "Speed of the session against the usual one of its case (median of the others), apart from configurations.",
    ]
    other_level: Annotated[
        Truth,
        "Whether that is another level, far away from all others: its effects count, and what compares speeds across "
        "sessions leaves it out while there are sessions on the usual level.",
    ]


class SetAsideRow(RunColumns, total=False):
    """Runs that ended well and are left out of all comparisons.

    In table `runs` they are `invalid`, with the same reason, but for those of a block that cannot be compared: these
    stay `ok`.
    """

    guard: Annotated[
        Text,
        "What found it: `copied` (the figures of another run), `frozen` (an interval again and again), `truncated` (no "
        "intervals at the end of the window), `silent` (no operation in a third of the intervals or more, in a row), "
        "`stalled` (three times slower than its configuration and block, or more) or `block` (its sweep block cannot "
        "be compared).",
    ]
    twin_run_id: Annotated[Text | None, "Of a copy: a run with the same figures."]
    reason: Annotated[Text, "Why, in words."]


class TierContrastRow(EstimateColumns, total=False):
    """Effects on throughput compared between two devices of different tiers: higher minus lower, natural-log ratios.

    The family of `q_value` is all contrasts of the study.
    """

    dbms: Annotated[Text, "DBMS, by the name of its spec."]
    workload: Annotated[Text, "Workload, by the name of its spec."]
    knob: Annotated[Text, "Knob."]
    value: Annotated[Text, "Its value."]
    baseline: Annotated[Text, "Its value in the default configuration."]
    lower_device: Annotated[Text, "Device of the lower tier."]
    higher_device: Annotated[Text, "Device of the higher tier."]


class LevelContrastRow(EstimateColumns, total=False):
    """Every configuration on a device against itself on a device of a lower tier: natural-log ratios, higher to lower.

    A block is one measurement. The family of `q_value` is all contrasts of the metric.
    """

    dbms: Annotated[Text, "DBMS, by the name of its spec."]
    workload: Annotated[Text, "Workload, by the name of its spec."]
    knob: Annotated[Text | None, "Knob; NULL: the default configuration."]
    value: Annotated[Text | None, "Its value."]
    metric: Annotated[Text, "`throughput_ops` or `latency_p95_us`."]
    lower_device: Annotated[Text, "Device of the lower tier."]
    higher_device: Annotated[Text, "Device of the higher tier."]


class InterferenceRow(CaseColumns, EstimateColumns, total=False):
    """How much slower reads are while the device also writes, in runs of the default configuration of the sweep.

    `estimate` is the natural-log ratio of latency, busy to quiet; the family of `q_value` is all cases that have
    moments without writes.
    """

    runs: Annotated[Integer, "Runs that were compared."]
    compared_with: Annotated[
        Text,
        "`quiet`: moments of the same run without writes; `alone`: the device's profile, at as many reads in flight.",
    ]
    quiet_us: Annotated[Real | None, "Mean latency of a read while nothing, or nearly nothing, is written."]
    busy_us: Annotated[
        Real | None, "Mean latency of a read while no less is written than usual; of all in addition to `alone`."
    ]
    gain: Annotated[
        Real | None, "Natural-log ratio of throughput, if all reads were as fast as in quiet: an upper bound."
    ]
    gain_low: Annotated[Real | None, "Lower end of its 95 % interval."]
    gain_high: Annotated[Real | None, "Upper end of its 95 % interval."]


class AccessContrastRow(CaseColumns, EstimateColumns, total=False):
    """The order in which a file is asked for in system calls, and in which the device reads or writes it.

    In runs of the default configuration of the sweep. Files whose names change from run to run go together by their
    role. `estimate` is the sequential share on the device minus that of the calls; the family of `q_value` is all
    files of the study.
    """

    file: Annotated[Text, "Path below the data directory."]
    role: Annotated[Text, "As in `files`."]
    op: Annotated[Text, "`read` or `write`."]
    runs: Annotated[Integer, "Runs that were compared."]
    calls: Annotated[Count, "System calls on the file, of all these runs."]
    requests: Annotated[Count, "Requests for the file, of all these runs."]
    call_bytes: Annotated[Real | None, "Mean size of a call."]
    request_bytes: Annotated[Real | None, "Mean size of a request."]
    calls_per_op: Annotated[Real | None, "Calls per operation on each file of those that go together."]
    logical_share: Annotated[Real | None, "Sequential share of the calls."]
    device_share: Annotated[Real | None, "Sequential share of the requests."]
    logical_pattern: Annotated[Text | None, "Pattern of the calls."]
    device_pattern: Annotated[Text | None, "Pattern of the requests."]


class KnobRow(TypedDict, total=False):
    """Every knob that a DBMS of the study has, whether the study varies it or not."""

    dbms: Annotated[Text, "DBMS, by the name of its spec."]
    knob: Annotated[Text, "Knob."]
    mechanism: Annotated[Text, "I/O mechanism that it steers."]
    in_study: Annotated[Truth, "Whether the study varies it."]
    control: Annotated[Truth, "Whether it is a negative control: it can change nothing, so an effect is a false alarm."]


class CaseRow(CaseColumns, total=False):
    """The cases of the study."""

    workload_class: Annotated[Text, "`read` or `write`, what dominates the workload."]
    threads: Annotated[Integer | None, "Threads of the load generator; NULL where an imported table does not tell."]
    read_order: Annotated[
        Text | None, "Order in which the workload asks for what it reads, as its spec says: `sequential` or `random`."
    ]
    dedicated: Annotated[Truth, "Whether the DBMS has the file system to itself."]


class SetupRow(TypedDict, total=False):
    """What the specs said of the set-up when the database was made, so that two studies can be compared."""

    part: Annotated[Text, "`knobscope`, `study`, `dbms`, `device` or `workload`."]
    name: Annotated[Text, "Its name; of knobscope `knobscope`."]
    property: Annotated[Text, "Field of the spec, with dots for fields within fields; `version` of knobscope."]
    value: Annotated[
        Text,
        "Its value: JSON, words without quotes. Of a DBMS's spec only a digest (`digest`): knobs have their tables.",
    ]


class _JudgedColumns(TypedDict, total=False):
    rule: Annotated[Text, "Rule."]


class FindingRow(_JudgedColumns, CaseColumns, total=False):
    """Verdicts of the mismatch rules."""

    knob: Annotated[Text | None, "Knob; NULL where the rule judges no knob."]
    value: Annotated[Text | None, "Its value."]
    verdict: Annotated[Text, "`mismatch`, `none` or `insufficient`."]
    effect: Annotated[Real | None, "Effect that it is judged by, as the rule defines it."]
    effect_low: Annotated[Real | None, "Lower end of its 95 % interval."]
    effect_high: Annotated[Real | None, "Upper end of its 95 % interval."]
    penalty: Annotated[
        Real | None,
        "How much it costs, as the rule defines it, within what the busy time of the device allows; the order of the "
        "findings.",
    ]
    evidence: Annotated[Text | None, "JSON: the figures that it is judged by."]
    cause: Annotated[
        Text | None,
        "What the rule blames (`write_size`, `flush`, `parallelism`, `sequentiality`); where it blames nothing, the "
        "property of the device that an experiment found, by the same names where there is one.",
    ]
    sentence: Annotated[Text, "The finding in words."]
    confirmed: Annotated[
        Text | None,
        "Whether an experiment confirmed the named cause: `yes`, `no` (the finding is refuted), `not_tested`; "
        "`found`: the rule names no cause, and the experiment found one.",
    ]
    confirmation: Annotated[Text | None, "What the experiment showed, in words."]


class FastestRow(CaseColumns, CutColumns, total=False):
    """The fastest configuration of each case, in new pairs of runs against the default configuration.

    It was picked among all runs of the study for being fast, so what those runs say of its speed is biased, and is not
    kept. A configuration is reduced to changes of knobs that stand out from the noise, and of those that act only
    together with one of them. Where a tuner's winner was surely faster when it was measured again, and this one was
    not, or less, the row has the winner as it is.
    """

    risk: Annotated[
        Text, "`none`: the fastest without values that risk committed data. `any`: the fastest, if that is another one."
    ]
    changes: Annotated[Text, "JSON: knob -> value, of the knobs that differ from the default configuration."]
    configuration: Annotated[Text, "JSON: knob -> value, of all knobs of the study."]
    runs: Annotated[Integer, "Runs of the study with these changes, by which it was picked."]
    tuner: Annotated[Text | None, "Space of the tuner whose winner it is; NULL: picked among all runs."]
    pairs: Annotated[
        Integer | None, "New pairs of successful runs: this configuration and the default. NULL: not measured again."
    ]
    again: Annotated[Real | None, "Natural-log ratio of throughput to the default in these pairs."]
    again_low: Annotated[
        Real | None,
        "Lower end of its interval: of 95 % over the three looks at it, so of 97.8 % each time; of a tuner's "
        "winner, of 95 %.",
    ]
    again_high: Annotated[Real | None, "Upper end."]


class ReturnedRow(CaseColumns, total=False):
    """What the query of a rule returns, with the evidence decoded; columns as in table `findings`."""

    knob: str | None
    value: str | None
    verdict: str
    effect: float | None
    effect_low: float | None
    effect_high: float | None
    penalty: float | None
    evidence: dict[str, Any]


DETECTION_TABLES: dict[str, type] = {
    "effects": EffectRow,
    "pair_effects": PairEffectRow,
    "blocks": BlockRow,
    "set_aside_runs": SetAsideRow,
    "tier_contrasts": TierContrastRow,
    "level_contrasts": LevelContrastRow,
    "interference": InterferenceRow,
    "access_contrasts": AccessContrastRow,
    "knobs": KnobRow,
    "cases": CaseRow,
    "setup": SetupRow,
    "findings": FindingRow,
    "fastest": FastestRow,
}

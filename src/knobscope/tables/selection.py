"""Tables of rankings: which knobs matter, where, to what, and for how certain."""

from typing import Annotated, TypedDict

from knobscope.tables.declaring import CaseColumns, Integer, Real, Text, Truth

_CHANGE = (
    "Natural-log ratio of throughput to the default configuration; where screening explains a latency, of how many "
    "times shorter it is."
)


class ImportanceRow(CaseColumns, total=False):
    """The ranking of the knobs after each screening round."""

    round: Annotated[Integer | None, "Screening round, from 0; NULL for the ranking of an earlier study."]
    model: Annotated[Text, "Statistical model that ranked."]
    knob: Annotated[Text, "Knob."]
    rank: Annotated[Integer, "Its rank; 1 matters most."]
    rank_low: Annotated[Integer | None, "Best rank within the 90 % interval of the rank."]
    rank_high: Annotated[Integer | None, "Worst rank within it."]
    importance: Annotated[Real, "The model's own measure of importance."]
    permutation: Annotated[Real, "R2 on held-out runs that is lost when the knob's values are shuffled."]
    above_noise: Annotated[Truth, "Whether it beats columns of pure chance."]
    selected: Annotated[Truth, "Whether it went on to the sweep."]


class TunabilityRow(CaseColumns, total=False):
    """What setting one knob alone would gain, by the model of screening; values that risk committed data do not count.

    A model of half of the configurations chooses the value, and one of the other half says what it gains.
    """

    knob: Annotated[Text, "Knob."]
    value: Annotated[Text, "Its best value: JSON, words without quotes; the default where no other is better."]
    gain: Annotated[
        Real,
        _CHANGE,
    ]
    gain_low: Annotated[Real, "Lower end of its 95 % interval."]
    gain_high: Annotated[Real, "Upper end of its 95 % interval."]


class PredictedEffectRow(CaseColumns, total=False):
    """What each value of a knob does alone, by the model of screening; the sweep measures it (table `effects`)."""

    knob: Annotated[Text, "Knob."]
    value: Annotated[Text, "Its value: JSON, words without quotes."]
    effect: Annotated[
        Real,
        _CHANGE,
    ]
    effect_low: Annotated[Real, "Lower end of its 95 % interval, from models of halves of the configurations."]
    effect_high: Annotated[Real, "Upper end of its 95 % interval."]


class ImportantPointRow(CaseColumns, total=False):
    """Values of a knob at which its effect changes."""

    knob: Annotated[Text, "Knob."]
    type: Annotated[Text, "`knee`, `turning` (point) or `cliff`."]
    value: Annotated[Text, "Value of the knob."]
    beside: Annotated[
        Text | None, "JSON: knob -> value of the other knob, on whose value the curve depends; NULL: of the knob alone."
    ]
    turn_ratio: Annotated[Real, "How sharply the curve turns there."]
    share: Annotated[
        Real, "Share of the variance that the knob's main effect explains, or the interaction with the other one."
    ]
    score: Annotated[Real, "Turn ratio times share: the order of the points."]


class WorstPredictedRow(CaseColumns, total=False):
    """Configurations that the model of screening predicts worst when they are held out.

    Something may count there that the model does not know: an interaction of more knobs, a cliff, a stall.
    """

    configuration: Annotated[Text, "JSON: knob -> value."]
    runs: Annotated[Integer, "Runs of it."]
    measured: Annotated[
        Real,
        "Operations per second that it did, without the offset of its block; where screening explains a latency, that, "
        "in microseconds.",
    ]
    predicted: Annotated[Real, "What the model predicted of that, on average over the splits in which it was held out."]


class CostlySettingRow(CaseColumns, total=False):
    """Settings with which the DBMS turned out several times slower; later rounds of `narrowing` leave them out."""

    round: Annotated[Integer, "Screening round, from 0, after which this was so."]
    setting: Annotated[Text, "JSON: knob -> level, of one knob or of two."]
    times_slower: Annotated[
        Real, "How many times slower than without it, in configurations without those found before."
    ]
    configurations: Annotated[Integer, "Configurations that had it, and none of the settings found before it."]


class _TwoCases(TypedDict, total=False):
    dbms: Annotated[Text, "DBMS, by the name of its spec."]
    changed: Annotated[Text, "In what the two cases differ: `device` or `workload`."]
    same: Annotated[Text, "The workload or device that both have."]
    from_case: Annotated[Text, "The device or workload of the first."]
    to_case: Annotated[Text, "The device or workload of the second."]


class RankDriftRow(_TwoCases, total=False):
    """How the rank of a knob changes between two cases that differ in device only, or in workload only."""

    knob: Annotated[Text, "Knob."]
    rank_from: Annotated[Integer, "Rank in the first case."]
    rank_to: Annotated[Integer, "Rank in the second case."]
    change: Annotated[Integer, "Difference of the ranks."]
    drifts: Annotated[
        Truth,
        "Whether the widened intervals of the ranks lie apart, both rankings can be trusted, and one is above noise.",
    ]


class RankOverlapRow(_TwoCases, total=False):
    """How far the rankings of two such cases agree."""

    top: Annotated[Integer, "So many first knobs of each were compared."]
    overlap: Annotated[Integer, "So many of them are in both."]
    only_from: Annotated[Text, "First knobs of the first case alone."]
    only_to: Annotated[Text, "First knobs of the second case alone."]
    rank_correlation: Annotated[Real | None, "Spearman's rank correlation over all knobs."]
    drifting: Annotated[Integer, "Knobs whose rank drifts."]
    trustworthy: Annotated[Truth, "Whether both rankings can be trusted."]


class IoRelatedRow(CaseColumns, total=False):
    """What a knob does to the I/O profile, from the screening runs; responses are counted per operation of the load."""

    knob: Annotated[Text, "Knob."]
    response: Annotated[Text, "Figure of the I/O profile."]
    runs: Annotated[Integer, "Configurations that it was tested with."]
    explained_share: Annotated[
        Real | None, "Share of the variance of the normal scores, beyond that of stronger knobs."
    ]
    p_value: Annotated[Real | None, "p value: that the knob does nothing to it."]
    q_value: Annotated[
        Real | None, "The p value adjusted to a false discovery rate over all knobs and responses of the case."
    ]
    verdict: Annotated[Text, "`related`, `none` or `insufficient`."]


class FitRow(CaseColumns, total=False):
    """The statistical model after each screening round, and whether screening could stop."""

    round: Annotated[Integer | None, "Screening round, from 0; NULL where a prior replaces screening."]
    prior: Annotated[Text | None, "Name of that prior."]
    model: Annotated[Text, "Statistical model that ranked."]
    runs: Annotated[Integer, "Runs that it was fitted to."]
    stopped: Annotated[Truth, "Whether screening may stop."]
    reason: Annotated[Text, "Why, or why not."]
    r2_min: Annotated[Real | None, "Smallest R2 over the splits into training and test runs."]
    r2_median: Annotated[Real | None, "Median R2 over the splits."]
    holdout_r2: Annotated[Real | None, "R2 on configurations that the fit did not see."]
    trustworthy: Annotated[Truth, "Whether the ranking can be trusted."]
    reason_trust: Annotated[Text | None, "Why, or why not."]
    warm_start: Annotated[Text | None, "Priors that it started from, with commas; NULL where there was none."]
    expected: Annotated[Text | None, "Knobs that stood out there, and had to show less here, with commas."]
    leaders: Annotated[Integer | None, "So many first knobs of two halves of the configurations were compared."]
    common_by_importance: Annotated[Real | None, "So many of them are in both halves, on average: by importance."]
    common_by_gain: Annotated[Real | None, "The same by what setting the knob gains (table `tunability`)."]


SELECTION_TABLES: dict[str, type] = {
    "importance": ImportanceRow,
    "tunability": TunabilityRow,
    "predicted_effects": PredictedEffectRow,
    "important_points": ImportantPointRow,
    "worst_predicted": WorstPredictedRow,
    "costly_settings": CostlySettingRow,
    "rank_drift": RankDriftRow,
    "rank_overlap": RankOverlapRow,
    "io_related": IoRelatedRow,
    "fits": FitRow,
}

"""The JSON documents of `replay`, `rank` and `trend`, as models: schemas are written from these."""

from typing import Annotated, Any

from pydantic import Field

from knobscope.commands.table.accuracy import Accuracy
from knobscope.commands.table.guards import Censored, Duplicates, Jump, MovingTogether, Ordered, Share
from knobscope.document_part import Part
from knobscope.statistics.points import Axis, PointType
from knobscope.statistics.stability import StopRule


class ExplainedShare(Part):
    """A term of a model."""

    term: str = Field(description="`a`, or `a:b` for an interaction.")
    factors: list[str] = Field(description="The factors of the term.")
    explained_share: float = Field(description="Share of the variance of the response.")
    p_value: float | None = Field(description="Of its F test; null where the model tests nothing.")


class CurvePoint(Part):
    """An important point of a factor's curve."""

    type: PointType = Field(description="Where it levels off, turns, or jumps.")
    value: float = Field(description="The level of a knee or turn, the first level beyond a cliff.")
    turn_ratio: float | None = Field(
        description="|slope above / slope below - 1|, null when infinite; of a cliff its share of the range."
    )


class KnobPoint(CurvePoint):
    """An important point in a fit."""

    knob: str = Field(description="The factor.")
    beside: dict[str, Any] | None = Field(
        description="The value of another factor at which the curve is looked at; null: that of the factor alone."
    )
    share: float = Field(description="Share of the variance that the main effect, or the interaction, explains.")
    score: float | None = Field(description="Turn ratio x share: the order of the points; null when infinite.")


class Trial(Part):
    """One repetition of a replay."""

    stopped: bool = Field(description="Whether the rule stopped, be it at the last setting.")
    rate: Share = Field(description="Share of the grid that was taken.")
    runs: int = Field(description="Rows that were taken, replicates included.")
    settings: int = Field(description="Settings that were taken.")
    fitted: str | None = Field(description="The model of the last fit; null when none could be fitted.")
    terms: list[str] = Field(description="Names of the model's terms, the largest share first.")
    explained: list[ExplainedShare] = Field(description="The same terms with what they explain.")
    points: list[KnobPoint] = Field(description="Important points, the highest score first.")
    r2_splits: list[float | None] = Field(description="R2 on the held-out fifth of each split; null: minus infinity.")
    r2_unsampled: float | None = Field(description="R2 on the settings that were never taken; null without such.")
    reason: str = Field(description="Why it stopped, or what kept it from stopping.")


class Summary(Part):
    """All trials of a replay together; a trial that never stopped counts as more than everything."""

    rate_p20: Share | None = Field(description="20th percentile of the rates; null: that trial never stopped.")
    rate_median: Share | None
    rate_p80: Share | None
    runs_median: float | None = Field(description="Median runs of the trials that stopped.")
    stopped: int = Field(description="Trials that stopped.")
    r2_unsampled_min: float | None = Field(description="Worst R2 on settings that were never taken, after a stop.")
    r2_unsampled_median: float | None


class ReplayDocument(Part):
    """What `knobscope replay` writes."""

    table: str = Field(description="The file.")
    rows: int
    settings: int = Field(description="Distinct settings; rows of the same one are replicates.")
    factors: list[str]
    model: str
    sampling: str
    seed: int
    threshold: float = Field(description="R2 that all splits have to reach.")
    stop: StopRule = Field(description="What stops: R2, stability of the conclusions, or both.")
    trials: list[Trial]
    summary: Summary
    accuracy: list[Accuracy] | None = Field(default=None, description="With --html: what its pictures show.")


class RankedKnob(Part):
    """A knob in a ranking."""

    knob: str
    rank: int
    importance: float = Field(description="The model's own importance.")
    permutation: float = Field(description="R2 on held-out rows that is lost when the knob's column is shuffled.")
    rank_low: int = Field(description="90 % interval of the rank over subsamples.")
    rank_high: int
    above_noise: bool = Field(description="Whether it beats noise columns in 90 % of the subsamples.")
    score: Share = Field(
        description="What the order goes by: mean share of held-out and of the model's own importance."
    )


class Draw(Part):
    """A ranking of some of the rows."""

    top5: list[str]
    overlap: int = Field(description="How many of them are among the first five of all rows.")
    holdout_r2: float | None


class Failures(Part):
    """What makes runs fail, ranked apart."""

    rows: int = Field(description="Rows with a failed value.")
    share: Share
    trustworthy: bool
    reason: str
    knobs: list[RankedKnob] = Field(description="Empty where too few rows failed to tell.")


class RankDocument(Part):
    """What `knobscope rank` writes."""

    table: str = Field(description="The file.")
    rows: int = Field(description="Rows that did not fail.")
    model: str
    holdout_r2: float | None = Field(description="Median R2 on held-out rows; null where none could be held out.")
    trustworthy: bool
    reason: str
    knobs: list[RankedKnob] = Field(
        description="The most important first. Knobs of a group in `aliased` have one rank, interval and score."
    )
    aliased: list[list[str]] = Field(description="Groups of knobs that the rows cannot distinguish, ranked as one.")
    sample: MovingTogether | None = Field(description="Null where knobs are set independently, as in a design.")
    ordered: Ordered | None = Field(description="Null where no knob alone follows the order of the rows.")
    censored: Censored | None = Field(description="Null where no limit of the response was found.")
    jump: Jump | None = Field(description="Null where no knob changes the response tenfold or more.")
    duplicates: Duplicates | None = Field(description="Null where no row is a copy of another.")
    failures: Failures | None = Field(description="Null without failed rows.")
    samples: int | None = Field(default=None, description="With --samples: rows of each draw.")
    draws: list[Draw] | None = Field(default=None, description="With --samples.")
    mean_overlap_top5: Annotated[float, Field(ge=0, le=5)] | None = Field(
        default=None, description="With --samples: mean overlap with the first five of the ranking of all rows."
    )


class TrendDocument(Part):
    """What `knobscope trend` writes."""

    table: str = Field(description="The file.")
    factor: str
    axis: Axis
    coefficients: list[tuple[float, float]] = Field(description="Level and mean response, in order of the levels.")
    standard_error: float = Field(description="Of one mean; 0 where nothing is known about noise.")
    adjusted_for: list[str] = Field(description="Factors that were held equal (--adjust).")
    as_published: bool = Field(description="Whether points were found as SIGMOD 2024 does, to the letter.")
    points: list[CurvePoint]

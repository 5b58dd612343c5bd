"""Tables of tuners: what they tried and found."""

from typing import Annotated

from knobscope.tables.declaring import CaseColumns, CutColumns, Integer, Real, Text, Truth


class TrialRow(CaseColumns, CutColumns, total=False):
    """Configurations that tuners tried; their runs are in `runs`, with the default configuration between them.

    The power is cut for the best of a tuner: for others only if those before them did not keep what they acknowledged.
    """

    space: Annotated[Text, "Search space: `topK` of the ranking, or `all`."]
    knobs: Annotated[Integer, "Knobs in the space."]
    seed: Annotated[Integer, "Seed of the tuner, from 1."]
    trial: Annotated[Integer, "Number of the attempt, from 1."]
    run_id: Annotated[Text, "The run, as in `runs`."]
    config_id: Annotated[Text, "Configuration that was tried."]
    is_winner: Annotated[
        Truth,
        "Whether it is the best one of its tuner that lost no acknowledged row in power cuts, or no more than the "
        "default configuration does, and was better than that one.",
    ]


class TunedRow(CaseColumns, CutColumns, total=False):
    """The best configuration of each tuner, measured again in blocks with the default configuration."""

    space: Annotated[Text, "Search space: `topK` of the ranking, or `all`."]
    seed: Annotated[Integer, "Seed of the tuner, from 1."]
    trial: Annotated[Integer | None, "Attempt that found it; NULL: none was better than the default configuration."]
    config_id: Annotated[Text | None, "Configuration."]
    estimate: Annotated[Real | None, "Natural-log ratio of throughput to the default configuration."]
    low: Annotated[Real | None, "Lower end of its 95 % interval."]
    high: Annotated[Real | None, "Upper end of its 95 % interval."]
    runs: Annotated[Integer | None, "Runs of it that succeeded."]


TUNING_TABLES: dict[str, type] = {"trials": TrialRow, "tuned": TunedRow}

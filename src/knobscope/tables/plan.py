"""Tables of the plan: which configurations run, in which order."""

from typing import Annotated, TypedDict

from knobscope.tables.declaring import CaseColumns, Integer, Text, Truth


class PlanRow(TypedDict, total=False):
    """Planned runs of all blocks, in the order in which they run."""

    block_id: Annotated[Text, "Block: dbms/device/workload/phase-round-number."]
    phase: Annotated[Text, "`screen`, `sweep`, `tune` or `explain` (stage `remeasure`)."]
    round: Annotated[Integer, "Round of the phase, from 0."]
    position: Annotated[Integer, "Position in the order of its block, from 0."]
    config_id: Annotated[Text, "Configuration; equal settings have equal ids."]
    is_sentinel: Annotated[Truth, "Whether it is a run of the default configuration inside a block."]
    repeat: Annotated[Integer, "Number of the repetition of its configuration, from 0."]
    load_id: Annotated[Text, "What of the configuration takes effect when data is loaded; equal ids share loaded data."]
    configuration: Annotated[Text, "JSON: knob -> value."]
    is_chosen: Annotated[
        Truth, "Whether it was chosen for what it would tell, so that it does not stand for all settings."
    ]


class KnobValueRow(TypedDict, total=False):
    """Configurations of all runs, a row per knob."""

    config_id: Annotated[Text, "Configuration."]
    dbms: Annotated[Text, "DBMS, by the name of its spec."]
    knob: Annotated[Text, "Knob."]
    value: Annotated[Text, "Its value: JSON, words without quotes."]


class LeftOutRow(CaseColumns, total=False):
    """Values that the sweep leaves out: what the DBMS refuses, and what is forbidden or idle with all small changes.

    Knobs that `all` in the study leaves out whole are here, too.
    """

    knob: Annotated[Text, "Knob."]
    value: Annotated[Text, "The value: JSON, words without quotes; NULL where the whole knob is left out."]
    reason: Annotated[
        Text, "Which `requires` does not hold, for which values; what the DBMS says; or why the knob is left out."
    ]


PLAN_TABLES: dict[str, type] = {"plan": PlanRow, "knob_values": KnobValueRow, "left_out_values": LeftOutRow}

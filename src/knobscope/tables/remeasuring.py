"""Tables of stage `remeasure`: runs on what-if devices, and which share of an effect each property explains."""

from typing import Annotated

from knobscope.tables.declaring import CaseColumns, Integer, Real, Text, Truth


class _QuestionColumns(CaseColumns, total=False):
    knob: Annotated[
        Text | None,
        "Knob whose effect is explained; NULL: the default configuration itself, or one of table `fastest`.",
    ]
    value: Annotated[Text | None, "Its value; of a configuration of table `fastest`, its changes."]
    other_device: Annotated[
        Text | None, "Device of the other tier where a gap between two is explained; NULL: the effect on `device`."
    ]
    is_level: Annotated[
        Truth, "Whether the time of the configuration itself is explained, and not its effect against the reference."
    ]
    property: Annotated[
        Text,
        "What differs on the what-if device; `none` is the device itself, `everything` all costs at once. "
        "`no_delay`: a file on a real device behind a program that delays requests; `flush_delay`: with slow flushes.",
    ]


class WhatIfRunRow(_QuestionColumns, total=False):
    """Runs that measure mismatches again, in pairs: a value and its reference value, in the same round.

    Up to four values share the run of their reference, which has a row for each of them.
    """

    run_id: Annotated[Text, "Run, as its file in the store is named."]
    pair: Annotated[Integer, "Number of the pair and of its round, from 0."]
    is_reference: Annotated[Truth, "Whether it has the reference value."]
    status: Annotated[Text, "As in `runs`."]
    reason: Annotated[Text | None, "Why there is no result."]
    throughput_ops: Annotated[Real | None, "Operations per second."]
    flush_way_us: Annotated[
        Real | None, "What the way to the modelled device costs the flushes, microseconds per operation of the DBMS."
    ]
    busy_us: Annotated[
        Real | None, "How long the device had any request, including the way to a modelled one, per operation."
    ]
    reads_per_op: Annotated[Real | None, "Reads of the device per operation of the DBMS; NULL: nobody watched."]
    writes_per_op: Annotated[Real | None, "The same of writes."]
    flushes_per_op: Annotated[Real | None, "The same of flushes."]
    read_us: Annotated[
        Real | None, "Mean time of a read, from issue to completion; 0: there was none; NULL: nobody watched."
    ]
    write_us: Annotated[Real | None, "The same of a write."]
    flush_us: Annotated[Real | None, "The same of a flush."]
    written_per_flush: Annotated[Real | None, "Bytes written for each flush; NULL: nobody watched, or none."]


class WhatIfRow(_QuestionColumns, total=False):
    """Which share of an effect is gone on a device that differs in one property, or is waiting for delayed requests.

    `amount` is the time per operation that the value takes more than its reference value, in microseconds (over all
    threads); where `other_device` is named, the natural-log ratio of throughput; of a level, the time per operation.
    On devices whose flushes take no time, times are without what the way to the device still costs them.
    """

    change: Annotated[Text, "JSON: parameters of the device model, or delays, that differ."]
    pairs: Annotated[Integer, "Pairs of successful runs."]
    amount: Annotated[Real | None, "The effect on this device."]
    amount_error: Annotated[Real | None, "Its standard error."]
    again: Annotated[
        Real | None,
        "Natural-log ratio of throughput in the new pairs on the device itself, or, where `other_device` is named, the "
        "gap to the effect there. NULL for other properties, and of a level.",
    ]
    again_low: Annotated[
        Real | None, "Lower end of its interval: of 95 % over the three looks at it, so of 97.8 % each time."
    ]
    again_high: Annotated[Real | None, "Upper end."]
    is_gone: Annotated[Truth | None, "Whether the effect did not reproduce, so that its findings are refuted."]
    share: Annotated[
        Real | None,
        "Share of the effect that is gone, against the device itself; 1: all of it. Of "
        "`flush_delay` and the like, that of the waiting for such requests.",
    ]
    share_low: Annotated[Real | None, "Lower end of its 95 % interval (Fieller's); NULL: no end."]
    share_high: Annotated[Real | None, "Upper end; NULL: no end."]
    gain: Annotated[
        Real | None,
        "Natural-log ratio of throughput, this device to the device itself, of the slower of the two configurations. "
        "`merged`: flushed writes are merged to the size in `change`; `spread`: requests are spread over queues.",
    ]
    gain_low: Annotated[Real | None, "Lower end of its 95 % interval."]
    gain_high: Annotated[Real | None, "Upper end."]


class SensitivityRow(CaseColumns, total=False):
    """How sensitive the throughput of a configuration is to the time that requests take, on devices without a model."""

    knob: Annotated[Text | None, "Knob of the question for which it was measured; NULL: the default configuration."]
    value: Annotated[Text | None, "Its value."]
    is_reference: Annotated[Truth, "Whether it is of the reference configuration, and not of that with the value."]
    op: Annotated[Text, "`read`, `write` or `flush`."]
    request_us: Annotated[Real, "Mean time of such a request on the device itself."]
    delay_us: Annotated[Real, "By how much it was delayed."]
    waited_share: Annotated[Real, "Share of the time of such requests that the DBMS waits for; 1: each one, all of it."]
    runs: Annotated[Integer, "Runs with the delay."]
    sensitivity: Annotated[
        Real,
        "The elasticity d ln(throughput) / d ln(time of a request): -0.6 is 0.6 % less throughput for 1 % more, so "
        "60 % of the time per operation are waiting for them.",
    ]
    sensitivity_low: Annotated[Real | None, "Lower end of its 95 % interval (jackknife); NULL: no end."]
    sensitivity_high: Annotated[Real | None, "Upper end; NULL: no end."]


REMEASURING_TABLES: dict[str, type] = {
    "what_if_runs": WhatIfRunRow,
    "what_ifs": WhatIfRow,
    "sensitivities": SensitivityRow,
}

"""Where an effect turns round: on another workload or device, or between the halves of the window.

Two effects of the same change differ where the difference is beyond noise (Welch's t, false discovery rate over all
pairs of cases of the study). What is stated is a difference of direction: both effects are significant, and opposite.
Of the halves of a window it is a difference that matters, and is a tenth of the effect or more.
"""

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from knobscope.statistics.regression import adjust_for_fdr, t_probability
from knobscope.text.formats import describe_change, loosen_units

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

Swept = tuple[str | None, ...]  # dbms, device, workload, knob, value

#: Pairs of one change on two workloads of a device, or two devices with one workload.
_PAIRS = """
    WITH changes AS (FROM effects_on('throughput_ops') WHERE standard_error > 0)
    SELECT a.dbms, a.device, a.workload, a.knob, a.value, a.estimate, b.estimate AS other,
        b.device AS other_device, b.workload AS other_workload,
        sqrt(a.standard_error ** 2 + b.standard_error ** 2) AS error,
        error ** 4 / (a.standard_error ** 4 / a.degrees + b.standard_error ** 4 / b.degrees) AS degrees,
        is_significant(a.estimate, a.q_value) AND is_significant(b.estimate, b.q_value)
            AND sign(a.estimate) <> sign(b.estimate) AS matters
    FROM changes a
    JOIN changes b
        ON (b.dbms, b.knob, b.value, b.baseline) = (a.dbms, a.knob, a.value, a.baseline)
        AND b.beside IS NOT DISTINCT FROM a.beside
        AND ((b.device = a.device) <> (b.workload = a.workload))
    ORDER BY ALL
"""
#: How much a value changes from the first half of the window to the second one beyond what it is compared with.
_HALVES = """
    WITH sides AS (
        SELECT dbms, device, workload, knob, value, side, count(*) AS runs, avg(ln(window_halves)) AS level,
            var_samp(ln(window_halves)) / runs AS variance
        FROM runs_behind JOIN (SELECT run_id, window_halves FROM runs) USING (run_id)
        WHERE knob IS NOT NULL AND window_halves > 0 AND isfinite(window_halves)
        GROUP BY ALL HAVING runs > 2
    )
    SELECT dbms, device, workload, knob, value, v.level - r.level AS change, e.estimate,
        sqrt(v.variance + r.variance) AS error,
        error ** 4 / (v.variance ** 2 / (v.runs - 1) + r.variance ** 2 / (r.runs - 1)) AS degrees,
        -- An effect of 70x is none that depends on a twentieth.
        abs(exp(change) - 1) >= getvariable('min_effect') AND abs(change) >= abs(e.estimate) / 10 AS matters
    FROM (FROM sides WHERE side = 'value') v
    JOIN (FROM sides WHERE side = 'default') r USING (dbms, device, workload, knob, value)
    JOIN effects_on('throughput_ops') e USING (dbms, device, workload, knob, value)
    WHERE error > 0
    ORDER BY ALL
"""


def read_interactions(connection: "duckdb.DuckDBPyConnection") -> dict[Swept, str]:
    """Return a sentence for each swept value whose effect turns round; variables `fdr` and `min_effect` must be set."""
    sentences: dict[Swept, str] = defaultdict(str)
    pairs = _significant(connection, _PAIRS, "other - estimate")
    for swept, rows in pairs.groupby(["dbms", "device", "workload", "knob", "value"], sort=False):
        cases = ", ".join(
            f"{row.other_workload} on {row.other_device} becomes {describe_change(row.other)}"
            for row in rows.itertuples()
        )
        sentences[swept] += loosen_units(f" In the sweep the effect depends on the case, beyond noise: {cases}.")
    for row in _significant(connection, _HALVES, "change").itertuples():
        half = describe_change(row.change)
        sentences[row[1:6]] += loosen_units(
            " The effect depends on the half of the window, beyond noise: compared with the default, this value is "
            f"{half} in the second half than in the first."
        )
    return sentences


def _significant(connection: "duckdb.DuckDBPyConnection", query: str, difference: str) -> "pd.DataFrame":
    """Return the rows that matter and whose difference is beyond noise."""
    frame = connection.execute(query).df()
    if frame.empty:
        return frame
    p_values = t_probability(
        frame.eval(difference).to_numpy(float), frame["error"].to_numpy(float), frame["degrees"].to_numpy(float)
    )
    (fdr,) = connection.execute("SELECT getvariable('fdr')").fetchone() or (0.0,)
    return frame[frame["matters"].fillna(False).astype(bool) & (np.asarray(adjust_for_fdr(p_values)) <= fdr)]

"""What two knobs do together: interactions of the pairs that a sweep measured, with intervals.

In every block that has both values, each alone, and the default configuration, the interaction is a difference of four
means of ln(throughput): (both - one) - (other - default). What the block has in common drops out. The interval is
Student's, over blocks: it needs two of them, and assumes nothing of the noise but that blocks are alike.
"""

from typing import TYPE_CHECKING

import numpy as np

from knobscope.detect.effects import add_frame
from knobscope.statistics.regression import adjust_for_fdr, t_interval, t_probability

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["add_pair_effects"]

_CASE = ["dbms", "device", "workload"]
_PAIR = ["knob", "value", "other", "other_value"]

#: One row per pair of values and session of a block. Sessions that are not comparable within are left out.
_DIFFERENCES = """
    WITH sentinels AS (SELECT DISTINCT block_id, config_id AS default_id FROM runs WHERE is_sentinel),
    swept AS (
        SELECT DISTINCT dbms, config_id, default_id
        FROM runs JOIN sentinels USING (block_id)
        WHERE phase = 'sweep' AND NOT is_sentinel
    ), settings AS (SELECT DISTINCT dbms, config_id, knob, value FROM knob_values),
    configurations AS (
        SELECT s.dbms, s.config_id, default_id, list({knob: v.knob, value: v.value} ORDER BY v.knob) AS changed
        FROM swept s
        JOIN settings v ON (v.dbms, v.config_id) = (s.dbms, s.config_id)
        LEFT JOIN settings d ON (d.dbms, d.config_id, d.knob) = (s.dbms, s.default_id, v.knob)
        WHERE v.value IS DISTINCT FROM d.value
        GROUP BY ALL
    ), pairs AS (
        SELECT c.dbms, c.default_id, c.config_id AS both_id, one.config_id AS one_id, other.config_id AS other_id,
            c.changed[1].knob AS knob, c.changed[1].value AS value,
            c.changed[2].knob AS other, c.changed[2].value AS other_value
        FROM configurations c
        JOIN configurations one
            ON (one.dbms, one.default_id) = (c.dbms, c.default_id) AND one.changed = [c.changed[1]]
        JOIN configurations other
            ON (other.dbms, other.default_id) = (c.dbms, c.default_id) AND other.changed = [c.changed[2]]
        WHERE len(c.changed) = 2
    ), means AS (
        SELECT dbms, device, workload, block_id, session, config_id, avg(ln(throughput_ops)) AS response
        FROM ok_runs
        ANTI JOIN (SELECT block_id, session FROM blocks WHERE treatment = 'dropped') USING (block_id, session)
        WHERE phase = 'sweep' AND throughput_ops > 0
        GROUP BY ALL
    )
    SELECT m.dbms, m.device, m.workload, p.knob, p.value, p.other, p.other_value,
        one.response - standard.response AS alone,
        other.response - standard.response AS other_alone,
        m.response - standard.response AS together
    FROM pairs p
    JOIN means m ON (m.dbms, m.config_id) = (p.dbms, p.both_id)
    JOIN means one
        ON (one.dbms, one.block_id, one.session, one.config_id) = (m.dbms, m.block_id, m.session, p.one_id)
    JOIN means other
        ON (other.dbms, other.block_id, other.session, other.config_id) = (m.dbms, m.block_id, m.session, p.other_id)
    JOIN means standard
        ON (standard.dbms, standard.block_id, standard.session, standard.config_id)
            = (m.dbms, m.block_id, m.session, p.default_id)
    ORDER BY ALL
"""


def add_pair_effects(connection: "duckdb.DuckDBPyConnection") -> None:
    """Fill table `pair_effects` of a study's database from its runs and `blocks`."""
    differences = connection.execute(_DIFFERENCES).df()
    if not differences.empty:
        add_frame(connection, "pair_effects", interactions(differences))


def interactions(differences: "pd.DataFrame") -> "pd.DataFrame":
    """Return table `pair_effects` from differences to the default configuration, a row per pair and block."""
    differences = differences.assign(
        estimate=differences["together"] - differences["alone"] - differences["other_alone"]
    )
    groups = differences.groupby([*_CASE, *_PAIR])
    table = groups[["alone", "other_alone", "together", "estimate"]].mean()
    blocks = groups.size().to_numpy()
    estimates, degrees = table["estimate"].to_numpy(float), np.maximum(blocks - 1, 1)
    errors = groups["estimate"].std().to_numpy(float) / np.sqrt(blocks)  # NaN for one block
    low, high = t_interval(estimates, errors, degrees)
    table = table.assign(blocks=blocks, low=low, high=high, p_value=t_probability(estimates, errors, degrees))
    table = table.reset_index()
    table["q_value"] = table.groupby(_CASE)["p_value"].transform(lambda p: adjust_for_fdr(p.to_numpy()))
    return table

"""Does a file reach the device in the order in which the DBMS asks for it? Calls against requests, run by run."""

from typing import TYPE_CHECKING

from knobscope.stages.detect.units import UNIT_OF_RUN
from knobscope.statistics.paired import mean_over_units
from knobscope.statistics.regression import adjust_for_fdr

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

_KEY = ["dbms", "device", "workload", "file", "role", "op"]

_BY_RUN = f"""
    WITH calls AS (
        SELECT run_id, group_of_files(file, role, table_name) AS file, role, op, sum(calls) AS calls,
            count(*) AS files, sum(bytes) / sum(calls) AS call_bytes,
            sum(calls * sequential_share) / sum(calls) AS logical_share,
            sum(calls * coalesce(append_share, 0)) / sum(calls) AS logical_append,
            sum(calls * strided_share) / sum(calls) AS logical_strided,
            sum(calls * random_share) / sum(calls) AS logical_random
        FROM file_access
        WHERE calls > 0 AND sequential_share IS NOT NULL
        GROUP BY ALL
    ),
    requests AS (
        SELECT run_id, file_group AS file, role, op, sum(judged) AS requests,
            sum(bytes) / sum(requests) AS request_bytes, sum(judged * sequential_share) / sum(judged) AS device_share,
            sum(judged * coalesce(append_share, 0)) / sum(judged) AS device_append,
            sum(judged * strided_share) / sum(judged) AS device_strided,
            sum(judged * random_share) / sum(judged) AS device_random
        FROM run_files
        WHERE judged > 0 AND sequential_share IS NOT NULL
        GROUP BY ALL
    )
    SELECT dbms, device, workload, file, role, op, calls, requests, call_bytes, request_bytes,
        calls / files / nullif(operations, 0) AS calls_per_op,
        logical_share, device_share, logical_append, device_append, logical_strided, device_strided,
        logical_random, device_random, unit
    FROM calls
    JOIN requests USING (run_id, file, role, op)
    JOIN (
        SELECT run_id, r.dbms, r.device, r.workload, r.operations, {UNIT_OF_RUN} AS unit
        FROM runs_behind b JOIN runs r USING (run_id) WHERE knob IS NULL AND watched
    ) USING (run_id)
"""  # noqa: S608 - words of ours

_LABELLED = """
    SELECT * EXCLUDE (logical_append, device_append, logical_strided, device_strided, logical_random, device_random),
        pattern_of(calls / runs, logical_share, logical_append, logical_strided, logical_random) AS logical_pattern,
        pattern_of(requests / runs, device_share, device_append, device_strided, device_random) AS device_pattern
    FROM contrasts
"""


def contrast_access(connection: "duckdb.DuckDBPyConnection") -> "pd.DataFrame":
    """Return table `access_contrasts`: a row per case, file and operation that both sides know."""
    import pandas as pd

    runs = connection.execute(_BY_RUN).df()
    rows = []
    for key, group in runs.groupby(_KEY, sort=True):
        means = {
            name: group[name].mean()
            for name in group.columns
            if name.endswith(("_share", "_append", "_strided", "_random", "_bytes", "_per_op"))
        }
        sums = {"runs": len(group), "calls": int(group["calls"].sum()), "requests": int(group["requests"].sum())}
        difference = mean_over_units(group["device_share"] - group["logical_share"], group["unit"])
        rows.append({**dict(zip(_KEY, key, strict=True)), **sums, **means, **difference})
    table = pd.DataFrame(rows)
    if not rows:
        return table
    connection.register("contrasts", table.assign(q_value=adjust_for_fdr(table["p_value"].to_numpy(float))))
    labelled = connection.execute(_LABELLED).df()
    connection.unregister("contrasts")
    return labelled

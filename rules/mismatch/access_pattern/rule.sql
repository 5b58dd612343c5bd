-- access_pattern: what is requested in order is read or written at random on the device or by the DBMS, or the reverse.
-- Source: IOscope (Saif, Nussbaum and Song, 2018), which watches the order of requests file by file; that the order of
--        calls differs from that of the device is ours. Fragmentation, many writers, and writing back by
--        the kernel turn sequential into random; caching and merging turn random into sequential.
-- Needs: access_contrasts (from files and file_access), device_profile for the penalty, visibility (with the order that
--        the workload declares, `read_order`, which applies to reads of data files).
-- Mismatch: one side is sequential, the other random (labels of all such runs together), and the shares of what is
--        sequential differ significantly (false discovery rate over all files). One row per file and direction. Reads
--        of which less than kept_share are in order have lost the order of the calls, though they are labelled as
--        mixed: in a file of few blocks many follow another one by chance. For the same reason order is gained only if
--        nearly all are in order. Calls that reach the device in requests at least merge_factor times as large have
--        kept their order inside these: no loss. Where the workload declares an order, it replaces that of the calls:
--        calls in the other order are a mismatch as well, unless the device sees the declared one. The label decides
--        there: a declared order has no noise.
-- None: the order of a file is kept, or changed to neither extreme, or by less than matters.
-- Insufficient: what the workload asks for in order takes less than three calls of an operation on a file, from which on
--        order can be seen, or an unknown number: it is inside the calls; order is lost on the way, and the size of calls
--        or requests is unknown, so calls may be merged; the block layer was not watched by bpf, or events were lost, or
--        most I/O of a shared device is of unknown origin; the system calls were not watched; no file is known with enough calls and requests in three
--        blocks' runs of the default configuration (each is reported once per case); a change of order that may be chance.
-- Penalty: only where order is lost, and the device does clearly more sequential than random reads (or writes) of one
--        size: how many times. What fewer and larger requests would gain, which only order permits, is not in it.
-- Cannot see: files that are mapped into memory, which are read and written without calls.
WITH judged AS (
    SELECT v.dbms, v.device, v.workload, v.obstacle AS blind, v.watched, a.* EXCLUDE (dbms, device, workload),
        CASE op WHEN 'write' THEN random_sequential_write_ratio ELSE random_sequential_ratio END AS order_ratio,
        request_bytes >= getvariable('merge_factor') * call_bytes AS merged,
        CASE WHEN op = 'read' AND role = 'data' THEN read_order END AS declared_order,
        coalesce(declared_order, logical_pattern) AS asked_order,
        logical_pattern = 'random'
            OR (logical_pattern = 'mixed' AND op = 'read' AND logical_share < getvariable('kept_share')) AS calls_differ,
        device_pattern = 'random'
            OR (device_pattern = 'mixed' AND op = 'read' AND device_share < getvariable('kept_share')) AS device_differs,
        asked_order = 'sequential' AND device_pattern <> 'sequential'
            AND (calls_differ OR (device_differs AND NOT coalesce(merged, false))) AS loses_order,
        declared_order = 'sequential' AND loses_order AND calls_differ AND coalesce(calls_per_op < 3, true) AS is_short,
        asked_order = 'random' AND device_pattern <> 'random'
            AND 'sequential' IN (logical_pattern, device_pattern) AS gains_order,
        CASE
            WHEN (loses_order AND calls_differ) OR (gains_order AND logical_pattern = 'sequential') THEN 'calls'
            WHEN loses_order OR gains_order THEN 'device'
        END AS changed_at
    FROM visibility v
    LEFT JOIN (
        FROM access_contrasts WHERE q_value IS NOT NULL AND 'few' NOT IN (logical_pattern, device_pattern)
    ) a
        ON v.obstacle IS NULL AND (a.dbms, a.device, a.workload) = (v.dbms, v.device, v.workload)
    LEFT JOIN device_profile d ON d.device = v.device
),

lacking AS (
    SELECT *,
        CASE
            WHEN blind IS NOT NULL THEN blind
            WHEN file IS NULL AND NOT EXISTS (
                FROM file_access JOIN runs r USING (run_id)
                WHERE (r.dbms, r.device, r.workload) = (judged.dbms, judged.device, judged.workload)
            ) THEN 'no_calls'
            WHEN file IS NULL THEN 'few_calls'
            WHEN is_short THEN 'short'
            WHEN changed_at = 'device' AND loses_order AND merged IS NULL THEN 'no_sizes'
            WHEN changed_at = 'device' AND abs(estimate) >= getvariable('min_effect')
                AND NOT is_significant_share(estimate, q_value) THEN 'unclear'
        END AS obstacle
    FROM judged
)

SELECT
    dbms, device, workload,
    verdict_of(obstacle, changed_at = 'calls' OR (changed_at = 'device' AND is_significant_share(estimate, q_value))) AS verdict,
    CASE WHEN verdict = 'mismatch' AND loses_order AND order_ratio * (1 + getvariable('min_effect')) <= 1
        THEN 1 / nullif(order_ratio, 0) END AS penalty,
    {
        file: file, role: role, op: op, calls: calls, requests: requests, runs: runs,
        logical: {pattern: logical_pattern, sequential_share: logical_share, bytes: call_bytes},
        device: {pattern: device_pattern, sequential_share: device_share, bytes: request_bytes},
        declared_order: declared_order, changed_at: changed_at, difference: estimate, difference_low: low, difference_high: high, q_value: q_value, merged: merged,
        loses_order: loses_order, calls_per_op: calls_per_op, order_ratio: order_ratio, obstacle: obstacle, watched: watched
    } AS evidence
FROM lacking
ORDER BY ALL

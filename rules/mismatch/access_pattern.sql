-- access_pattern: a file that is asked for in order is read or written at random on the device, or the reverse.
-- Source: "When Database Meets New Storage Devices" (PVLDB 2023) watches system calls; IOscope (Saleh et al., 2020) found
--        that their order and that of the device differ by file. Fragmentation, many writers, and writing back by the
--        kernel turn sequential into random; caching and merging turn random into sequential.
-- Needs: access_contrasts (from files and file_access), device_profile for the penalty, visibility.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of unknown
--        origin; the system calls were not watched; no file is known with enough calls and requests in three runs of the
--        default configuration.
-- Mismatch: one side is sequential, the other random (labels of all such runs together), and the shares of what is
--        sequential differ significantly (false discovery rate over all files). One row per file and direction.
--        Calls that reach the device in requests at least twice as large have kept their order inside these: no loss.
-- Penalty: only where order is lost: how many times more sequential than random reads the device does, an upper bound.
WITH judged AS (
    SELECT v.dbms, v.device, v.workload, v.obstacle, v.caveat, a.* EXCLUDE (dbms, device, workload),
        random_sequential_ratio,
        request_bytes >= 2 * call_bytes AS merged,
        logical_pattern = 'sequential' AND device_pattern = 'random' AND NOT merged AS loses_order,
        logical_pattern = 'random' AND device_pattern = 'sequential' AS gains_order
    FROM visibility v
    LEFT JOIN (
        FROM access_contrasts WHERE q_value IS NOT NULL AND 'few' NOT IN (logical_pattern, device_pattern)
    ) a USING (dbms, device, workload)
    LEFT JOIN device_profile USING (device)
),

lacking AS (
    SELECT *,
        CASE
            WHEN obstacle IS NOT NULL THEN obstacle
            WHEN file IS NULL AND NOT EXISTS (
                FROM file_access JOIN runs r USING (run_id)
                WHERE (r.dbms, r.device, r.workload) = (judged.dbms, judged.device, judged.workload)
            ) THEN 'the system calls were not watched (`watch: [syscalls]` in the study), so the order in which files '
                || 'are asked for is not known'
            WHEN file IS NULL THEN
                'no file has enough system calls and requests in three runs of the default configuration'
        END AS obstacle_here
    FROM judged
),

verdicts AS (
    SELECT *,
        CASE
            WHEN obstacle_here IS NOT NULL THEN 'insufficient'
            WHEN (loses_order OR gains_order) AND is_significant_share(estimate, q_value) THEN 'mismatch'
            ELSE 'none'
        END AS verdict
    FROM lacking
)

SELECT
    'access_pattern' AS rule, dbms, device, workload, NULL AS knob, NULL AS value, verdict,
    NULL::DOUBLE AS effect,
    NULL::DOUBLE AS effect_low,
    NULL::DOUBLE AS effect_high,
    CASE WHEN verdict = 'mismatch' AND loses_order THEN greatest(1 / nullif(random_sequential_ratio, 0), 1) END AS penalty,
    to_json({
        file: file, role: role, op: op, calls: calls, requests: requests, runs: runs,
        logical: {pattern: logical_pattern, sequential_share: logical_share, bytes: call_bytes},
        device: {pattern: device_pattern, sequential_share: device_share, bytes: request_bytes},
        difference: estimate, difference_low: low, difference_high: high, q_value: q_value,
        random_sequential_ratio: random_sequential_ratio, caveat: caveat
    })::VARCHAR AS evidence,
    CASE
        WHEN verdict = 'insufficient' THEN format(
            'Whether files keep their order with {} on {} cannot be judged: {}', workload, device, obstacle_here
        )
        ELSE format(
            '{} of {} with {} on {} are {} in system calls ({} in order) and {} on the device ({} in order)',
            CASE op WHEN 'read' THEN 'Reads' ELSE 'Writes' END, file, workload, device, logical_pattern,
            as_percent(logical_share), device_pattern, as_percent(device_share)
        ) || CASE
            WHEN verdict = 'none' AND merged AND logical_pattern = 'sequential' AND device_pattern = 'random' THEN
                format(': {:.0f} bytes a call become {:.0f} a request, and their order is kept inside', call_bytes,
                    request_bytes)
            WHEN verdict = 'none' THEN ': the order is kept, or changed to neither extreme'
            WHEN loses_order THEN ': the order is lost on the way'
            ELSE ': they are put in order on the way, by caching, merging or the file system'
        END || CASE WHEN verdict = 'mismatch' AND loses_order AND random_sequential_ratio < 1 THEN format(
            '; at random the device does {} of the reads that it does in order', as_percent(random_sequential_ratio)
        ) ELSE '' END
        || coalesce(' (' || caveat || ')', '')
    END || '.' AS sentence
FROM verdicts
ORDER BY ALL

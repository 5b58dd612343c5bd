-- read_write_interference: files that are (nearly) only read share the device with files that are written to, and reads
--        are slower while the device writes. Suggests to separate them.
-- Source: "Characterizing Database Workloads via a Comprehensive I/O Analysis" (master's thesis, Seoul National
--        University, 2018); on flash, writes and the erasing behind them block reads.
-- Needs: files (view run_files), runs_behind, run_metrics, interference (from io_series), visibility, effects and cases
--        (of waits).
--        Read-mostly: a table or file with at most hardly_written writes among its requests, and least_part of all
--        reads; written to: least_part of all writes.
-- Mismatch: both kinds exist, reads are significantly slower while writing (false discovery rate over all cases), and
--        throughput would surely gain, and min_effect or more, if they were not. Where something is written all the time, reads
--        surely take longer_than_alone times as long as those of the device's profile with as many in flight, or more:
--        the profile was measured at another time, so a smaller difference proves nothing. Where the study moved such a
--        table to another device (`layout`), that decides instead: throughput is significantly higher.
-- None: one of the two kinds of files is missing, or the intervals rule out that reads are slower, or that anything that
--        matters would be gained, by the time that clients wait for reads if waits were watched; or a table was moved, and the interval of the
--        effect rules out a gain that matters.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of
--        unknown origin; the runs vary too much to tell whether reads are slower, or what would be gained; the number of
--        clients is unknown; no requests of the default configuration are known by file, or one of the two kinds may be
--        among unknown files; such files exist, there are not three blocks whose default configuration has moments in
--        which nothing was written, to compare with, and the profile of the device does not prove it; waits were not
--        watched, and CPU time is unknown, or of the gain no more that matters is left than it leaves clients to wait; a
--        table was moved, and its effect neither is clear nor rules out a gain.
-- Penalty: that gain, a factor, within what clients wait for reads or, where waits were not watched, what CPU time
--        leaves. An upper bound: it removes all additional waiting of reads, and moments with writes may differ in more
--        than the writes. Where a table was moved, the effect of that. One row per case, without a knob.
-- Cannot see: reads and writes of one file, which no second device would keep apart.
WITH usage AS (
    SELECT dbms, device, workload, file_group AS file, role,
        coalesce(sum(requests) FILTER (op = 'read'), 0) AS reads,
        coalesce(sum(requests) FILTER (op = 'write'), 0) AS writes
    FROM run_files
    JOIN (
        SELECT run_id, dbms, device, workload FROM runs_behind WHERE knob IS NULL AND watched
    ) USING (run_id)
    -- What a layout keeps on another device in all runs shares none with the others.
    WHERE NOT EXISTS (
        FROM runs r
        JOIN knob_values v USING (config_id)
        WHERE r.run_id = run_files.run_id AND list_first(string_split(v.knob, chr(46))) = 'device' AND v.value <> 'data'
            AND list_last(string_split(v.knob, chr(46))) IN (file_group, role)
    )
    GROUP BY ALL
),

shares AS (
    SELECT *,
        reads / nullif(sum(reads) OVER (PARTITION BY dbms, device, workload), 0) AS read_part,
        writes / nullif(sum(writes) OVER (PARTITION BY dbms, device, workload), 0) AS write_part,
        coalesce(writes / nullif(reads + writes, 0), 0) AS write_share
    FROM usage
),

kinds AS (
    SELECT *,
        role NOT IN ('journal', 'metadata', 'unknown') AND read_part >= getvariable('least_part')
            AND write_share <= getvariable('hardly_written') AS read_mostly,
        role <> 'unknown' AND write_part >= getvariable('least_part')
            AND write_share > getvariable('hardly_written') AS written
    FROM shares
),

used AS (
    SELECT dbms, device, workload, sum(k.reads) AS reads, sum(k.writes) AS writes,
        sum(k.reads + k.writes) FILTER (role = 'unknown') / sum(k.reads + k.writes) AS unknown_part,
        sum(read_part) FILTER (role = 'unknown') AS unknown_reads,
        sum(write_part) FILTER (role = 'unknown') AS unknown_writes,
        list(file ORDER BY k.reads DESC, file) FILTER (read_mostly) AS quiet_files,
        list(file ORDER BY k.writes DESC, file) FILTER (written) AS written_files,
        sum(read_part) FILTER (read_mostly) AS quiet_read_part,
        sum(k.writes) FILTER (read_mostly) / sum(k.reads + k.writes) FILTER (read_mostly) AS quiet_write_share,
        sum(write_part) FILTER (written) AS written_part
    FROM kinds k
    GROUP BY ALL
),

-- The share of the clients' time in which they may wait: as watched, or what CPU time leaves.
waiting AS (
    SELECT dbms, device, workload, any_value(possibly_waiting) IS NOT NULL AS waits_watched,
        coalesce(
            any_value(possibly_waiting), 1 - median(cpu_s_per_op * throughput_ops) / greatest(coalesce(any_value(threads), 1), 1)
        ) AS waiting_share
    FROM visibility
    LEFT JOIN waiting_by_default(['read', 'fault', 'async']) USING (dbms, device, workload)
    LEFT JOIN (FROM runs_behind WHERE knob IS NULL) USING (dbms, device, workload)
    LEFT JOIN run_metrics USING (run_id)
    GROUP BY ALL
),

-- What it did to move one of those tables to another device; of several, the one with which most was gained.
moved AS (
    SELECT e.dbms, e.device, e.workload,
        unnest(
            arg_max(
                {
                    moved_estimate: e.estimate, moved_low: e.low, moved_high: e.high, moved_q: e.q_value,
                    moved_file: file, moved_to: e.value
                },
                e.estimate
            )
        )
    FROM effects_on('throughput_ops') e
    JOIN kinds k ON (k.dbms, k.device, k.workload) = (e.dbms, e.device, e.workload)
        AND list_last(string_split(e.knob, chr(46))) = k.file
    WHERE e.mechanism = 'layout' AND e.beside IS NULL AND k.read_mostly
    GROUP BY e.dbms, e.device, e.workload
),

cases_judged AS (
    SELECT v.dbms, v.device, v.workload, v.watched, u.* EXCLUDE (dbms, device, workload),
        i.* EXCLUDE (dbms, device, workload), m.* EXCLUDE (dbms, device, workload),
        quiet_files IS NOT NULL AND written_files IS NOT NULL AS shared,
        waits_watched, waiting_share, least(gain, -ln(greatest(1 - waiting_share, 1e-9))) AS possible_gain,
        coalesce(gain_low > 0, false) AS surely_gains,
        coalesce(compared_with = 'alone' AND low >= ln(getvariable('longer_than_alone')), false) AS much_longer,
        shared AND (much_longer OR (estimate > 0 AND is_significant(estimate, q_value))) AS are_slower,
        are_slower AND exp(gain) - 1 >= getvariable('min_effect')
            AND exp(possible_gain) - 1 < getvariable('min_effect') AS is_seldom_waited,
        CASE
            WHEN obstacle IS NOT NULL THEN obstacle
            WHEN reads IS NULL THEN 'no_files'
            WHEN unknown_part > getvariable('most_unknown') THEN 'unknown_files'
            -- Files of one of the two kinds may be among the unknown ones.
            WHEN NOT shared AND (quiet_files IS NOT NULL OR coalesce(unknown_reads >= getvariable('least_part'), false))
                AND (written_files IS NOT NULL OR coalesce(unknown_writes >= getvariable('least_part'), false))
                THEN 'unknown_files'
            WHEN moved_estimate IS NOT NULL THEN
                CASE WHEN NOT coalesce(is_significant(moved_estimate, moved_q), false)
                          AND NOT coalesce(rules_out_gain(moved_high), false) THEN 'unclear_move' END
            WHEN shared AND q_value IS NULL AND NOT much_longer THEN 'no_pauses'
            WHEN are_slower AND gain IS NULL THEN 'no_clients'
            WHEN shared AND NOT coalesce(
                are_slower AND surely_gains AND exp(possible_gain) - 1 >= getvariable('min_effect'), false
            )
                AND NOT coalesce(rules_out_gain(high), false)
                AND NOT coalesce(rules_out_gain(least(gain_high, -ln(greatest(1 - waiting_share, 1e-9)))), false)
                THEN 'unclear'
            WHEN is_seldom_waited AND NOT waits_watched THEN 'computing'
            -- Without CPU time, what is gained has no bound.
            WHEN waiting_share IS NULL AND are_slower AND surely_gains
                AND exp(gain) - 1 >= getvariable('min_effect') THEN 'no_cpu'
        END AS obstacle
    FROM visibility v
    LEFT JOIN used u USING (dbms, device, workload)
    LEFT JOIN interference i USING (dbms, device, workload)
    LEFT JOIN moved m USING (dbms, device, workload)
    LEFT JOIN waiting USING (dbms, device, workload)
)

SELECT
    dbms, device, workload,
    verdict_of(
        obstacle,
        CASE WHEN moved_estimate IS NULL THEN
            are_slower AND surely_gains AND exp(possible_gain) - 1 >= getvariable('min_effect')
             ELSE moved_estimate > 0 AND is_significant(moved_estimate, moved_q) END
    ) AS verdict,
    CASE WHEN verdict = 'mismatch' THEN exp(coalesce(moved_estimate, possible_gain)) END AS penalty,
    {
        read_mostly: coalesce(quiet_files, []), share_of_reads: quiet_read_part, share_written: quiet_write_share,
        written: coalesce(written_files, []), share_of_writes: written_part, unknown_share: unknown_part,
        reads: reads, writes: writes, read_us_without_writes: quiet_us, read_us_with_writes: busy_us,
        slowdown: exp(estimate) - 1, slowdown_low: exp(low) - 1, slowdown_high: exp(high) - 1, q_value: q_value,
        gain: exp(possible_gain) - 1, gain_low: exp(least(gain_low, possible_gain)) - 1,
        gain_high: exp(least(gain_high, greatest(possible_gain, -ln(greatest(1 - waiting_share, 1e-9))))) - 1,
        waiting_share: waiting_share, waits_watched: waits_watched, is_seldom_waited: is_seldom_waited, runs: runs,
        moved_file: moved_file, moved_to: moved_to, moved_gain: exp(moved_estimate) - 1,
        moved_low: exp(moved_low) - 1, moved_high: exp(moved_high) - 1,
        compared_with: compared_with, obstacle: obstacle, watched: watched
    } AS evidence
FROM cases_judged
ORDER BY ALL

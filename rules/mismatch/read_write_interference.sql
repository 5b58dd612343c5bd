-- read_write_interference: files that are (nearly) only read share the device with files that are written to, and reads
--        are slower while the device writes. Suggests to separate them.
-- Source: "When Database Meets New Storage Devices" (PVLDB 2023), interference of reads and writes; on flash, writes and
--        the erasing behind them block reads.
-- Needs: files (view run_files), interference (from io_series), visibility.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of unknown
--        origin; no requests of the default configuration are known by file; such files exist, and there are not three
--        runs of the default configuration with moments in which nothing was written, to compare with.
-- Read-mostly: a table or file with at most 5 % writes among its requests, and 5 % of all reads; written to: 5 % of all
--        writes. Mismatch: both kinds exist, reads are significantly slower while writing (false discovery rate over all
--        cases), and throughput would gain min_effect or more if they were not.
-- Penalty: that gain, a factor. An upper bound: it takes away all that reads wait longer for, and moments with writes may
--        differ in more than the writes. One row per case, without a knob.
WITH usage AS (
    SELECT dbms, device, workload, file_group AS file, role,
        coalesce(sum(requests) FILTER (op = 'read'), 0) AS reads,
        coalesce(sum(requests) FILTER (op = 'write'), 0) AS writes
    FROM run_files
    JOIN watched_runs USING (run_id)
    WHERE is_sentinel AND phase = 'sweep'
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
        role NOT IN ('journal', 'metadata', 'unknown') AND read_part >= 0.05 AND write_share <= 0.05 AS read_mostly,
        role <> 'unknown' AND write_part >= 0.05 AND write_share > 0.05 AS written
    FROM shares
),

used AS (
    SELECT dbms, device, workload, sum(reads) AS reads, sum(writes) AS writes,
        sum(reads + writes) FILTER (role = 'unknown') / sum(reads + writes) AS unknown_part,
        list(file ORDER BY reads DESC, file) FILTER (read_mostly) AS quiet_files,
        list(file ORDER BY writes DESC, file) FILTER (written) AS written_files,
        sum(read_part) FILTER (read_mostly) AS quiet_read_part,
        sum(write_part) FILTER (written) AS written_part
    FROM kinds
    GROUP BY ALL
),

cases_judged AS (
    SELECT v.dbms, v.device, v.workload, v.caveat, u.* EXCLUDE (dbms, device, workload),
        i.* EXCLUDE (dbms, device, workload),
        quiet_files IS NOT NULL AND written_files IS NOT NULL AS shared,
        CASE
            WHEN obstacle IS NOT NULL THEN obstacle
            WHEN reads IS NULL THEN 'no run of the default configuration tells which files its requests went to'
            WHEN unknown_part > 0.5 THEN as_percent(unknown_part) || ' of the requests went to no file that is known'
            WHEN shared AND q_value IS NULL THEN
                'the reads of ' || in_words(quiet_files) || ' share the device with writes to ' || in_words(written_files)
                || ', and fewer than three runs have moments both with and without writes, which would show what that costs'
        END AS obstacle_here
    FROM visibility v
    LEFT JOIN used u USING (dbms, device, workload)
    LEFT JOIN interference i USING (dbms, device, workload)
),

verdicts AS (
    SELECT *,
        CASE
            WHEN obstacle_here IS NOT NULL THEN 'insufficient'
            WHEN shared AND estimate > 0 AND is_significant(estimate, q_value)
                AND exp(gain) - 1 >= getvariable('min_effect') THEN 'mismatch'
            ELSE 'none'
        END AS verdict
    FROM cases_judged
)

SELECT
    'read_write_interference' AS rule, dbms, device, workload, NULL AS knob, NULL AS value, verdict,
    NULL::DOUBLE AS effect,
    NULL::DOUBLE AS effect_low,
    NULL::DOUBLE AS effect_high,
    CASE WHEN verdict = 'mismatch' THEN exp(gain) END AS penalty,
    to_json({
        read_mostly: in_words(quiet_files), share_of_reads: quiet_read_part, written: in_words(written_files),
        share_of_writes: written_part, unknown_share: unknown_part, read_us_without_writes: quiet_us,
        read_us_with_writes: busy_us, slowdown: exp(estimate), slowdown_low: exp(low), slowdown_high: exp(high),
        q_value: q_value, gain: exp(gain), gain_low: exp(gain_low), gain_high: exp(gain_high), runs: runs, caveat: caveat
    })::VARCHAR AS evidence,
    CASE
        WHEN verdict = 'insufficient' THEN format(
            'Whether reads suffer from writes with {} on {} cannot be judged: {}', workload, device, obstacle_here
        )
        WHEN NOT shared THEN format(
            'With {} on {}, {}', workload, device,
            CASE WHEN quiet_files IS NULL THEN 'no table or file is only read: there is nothing to separate'
                 ELSE 'nothing is written beside ' || in_words(quiet_files) || ', which is only read' END
        )
        ELSE format(
            'With {} on {}, {} {} read and hardly written, beside writes to {}; a read takes {:.0f} us while nothing is '
            || 'written and {:.0f} us while the device writes ({}, 95 % interval {} to {}): {}',
            workload, device, in_words(quiet_files), CASE WHEN len(quiet_files) = 1 THEN 'is' ELSE 'are' END,
            in_words(written_files), quiet_us, busy_us, as_fold(estimate), as_fold(low), as_fold(high),
            CASE WHEN verdict = 'none' THEN 'no loss that separating them would save'
                 ELSE format(
                    'on a device of its own, at best {} the throughput (95 % interval {} to {}) is to be expected',
                    as_fold(gain), as_fold(gain_low), as_fold(gain_high)
                 ) END
        )
    END || coalesce(CASE WHEN verdict <> 'insufficient' THEN ' (' || caveat || ')' END, '') || '.' AS sentence
FROM verdicts
ORDER BY ALL

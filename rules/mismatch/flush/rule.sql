-- flush: commits wait for the device's flush: the setting that flushes more is slower, by about what its flushes take.
-- Source: He et al. (PVLDB 16(7), 2023) count this among mismatches of I/O size; here the cost of flushing is told from
--        that of the bytes written: an SSD without power-loss protection takes a millisecond for a flush of 4 KiB.
-- Needs: effects (throughput_ops, flushes_per_op, write_bytes_per_op), flushes_behind,
--        device_profile (flush_p50_us, or else fsync_p50_us; write_unit_us), visibility.
-- Mismatch: of value and default, the slower one flushes more per operation, both significantly, and the flushes that it
--        has more make up flush_share or more of the time per operation that it takes more. Each counts as long as a
--        flush took on average in the runs of the slower one; where no run tells that, as long as one after 4 KiB takes
--        on this device. What the device takes to fill units that writes filled in part is no cost of the flush, and is
--        left to rule io_size: write_unit_us for the share of the slower one's writes that do so.
-- None: the intervals rule out an effect on throughput that matters, or that flushes make up flush_share of it.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of unknown
--        origin, or the time of a flush is unknown (each said once per case); no interval, or too wide a one.
-- Penalty: throughput of the better value / that of the worse.
-- Cannot see: writes that force their own data to storage (FUA), which are no flushes; waiting for a flush of somebody
--        else.
WITH seen AS (
    SELECT dbms, device, workload, watched,
        coalesce(flush_p50_us, fsync_p50_us) AS usual_us, write_unit_us,
        coalesce(obstacle, CASE WHEN usual_us IS NULL THEN 'no_profile' END) AS blind
    FROM visibility LEFT JOIN device_profile USING (device)
),

-- Cases in which nothing hinders an answer.
throughput AS (
    FROM effects_on('throughput_ops') SEMI JOIN (FROM seen WHERE blind IS NULL) USING (dbms, device, workload)
),

compared AS (
    SELECT dbms, device, workload, watched, blind, t.* EXCLUDE (dbms, device, workload),
        -- A flush takes as long as what it has to store: on a disk, many times as long as one after 4 KiB.
        coalesce(of_slower(t.estimate, value_us, reference_us), usual_us) AS flush_us,
        of_slower(t.estimate, value_partly, reference_partly) AS partly,
        coalesce(filling_us(flush_us, write_unit_us, partly), 0) AS fill_us,
        1e6 / t.reference AS us_before,
        1e6 / t.reference * exp(-t.estimate) AS us_after,
        f.estimate AS more, f.low AS more_low, f.high AS more_high, f.q_value AS more_q, f.reference AS flushes_before,
        b.estimate AS written, b.low AS written_low, b.high AS written_high
    FROM seen
    LEFT JOIN throughput t USING (dbms, device, workload)
    LEFT JOIN effects_on('flushes_per_op') f USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('write_bytes_per_op') b USING (dbms, device, workload, knob, value)
    LEFT JOIN flushes_behind USING (dbms, device, workload, knob, value)
),

-- Everything from the side of the slower setting: `slow_us` is the time per operation that it takes more.
sided AS (
    SELECT *,
        abs(us_after - us_before) AS slow_us,
        -sign(estimate) * more AS slow_more,
        of_slower(estimate, more_high, -more_low) AS slow_more_high
    FROM compared
),

judged AS (
    SELECT *,
        is_significant(estimate, q_value) AS matters,
        slow_more * (flush_us - fill_us) / nullif(slow_us, 0) AS share,
        coalesce(more_q <= getvariable('fdr') AND slow_more > 0 AND share >= getvariable('flush_share'), false)
            AS by_flushes,
        slow_more_high * (flush_us - fill_us) / nullif(slow_us, 0) < getvariable('flush_share') AS flushes_ruled_out
    FROM sided
),

verdicts AS (
    SELECT *,
        coalesce(matters AND by_flushes, false) AS is_mismatch,
        CASE
            WHEN blind IS NOT NULL THEN blind
            WHEN knob IS NULL THEN 'no_knob'
            WHEN q_value IS NULL THEN lack_of_runs(runs, blocks, estimate)
            WHEN more_q IS NULL THEN 'few_watched'
            WHEN is_mismatch OR rules_out_effect(low, high) OR (matters AND flushes_ruled_out) THEN NULL
            WHEN matters THEN 'noise_of_flushes'
            ELSE 'noise'
        END AS obstacle
    FROM judged
)

SELECT
    dbms, device, workload, knob, value,
    verdict_of(obstacle, is_mismatch) AS verdict,
    exp(estimate) - 1 AS effect,
    exp(low) - 1 AS effect_low,
    exp(high) - 1 AS effect_high,
    penalty_of(verdict, estimate) AS penalty,
    {
        baseline: baseline, step: step, mechanism: mechanism, durability: durability, throughput_ratio: exp(estimate),
        q_value: q_value, flush_us: flush_us, fill_us: fill_us,
        flushes_per_op: {
            before: greatest(flushes_before, 0), after: number_after(flushes_before, more), q_value: more_q
        },
        us_per_op: {before: us_before, after: us_after},
        flush_us_per_op: slow_more * (flush_us - fill_us), flush_share: share,
        is_part: coalesce(matters AND more_q <= getvariable('fdr') AND slow_more > 0, false),
        written: {effect: exp(written) - 1, low: exp(written_low) - 1, high: exp(written_high) - 1},
        slower: of_slower(estimate, 'value', 'baseline'),
        obstacle: obstacle, smallest: smallest_effect(low, high), watched: watched
    } AS evidence
FROM verdicts
ORDER BY ALL

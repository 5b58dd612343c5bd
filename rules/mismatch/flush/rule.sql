-- flush: commits wait for the device's flush: the setting that flushes more is slower, by about the time of its
--        flushes.
-- Source: He et al. (PVLDB 16(7), 2023) count this among mismatches of I/O size; here the cost of flushing is separated
--        from that of the bytes written: an SSD without power-loss protection takes a millisecond for a flush of 4 KiB.
-- Needs: effects (throughput_ops, flushes_per_op, write_bytes_per_op, cpu_s_per_op), flushes_behind, device_behind,
--        device_profile (flush_p50_us, or else fsync_p50_us; write_unit_us), visibility.
-- Mismatch: of value and default, the slower one waits for flushes, which account for flush_share or more of the lost
--        time, its additional time per operation. If waits were watched, this is the time that clients waited for
--        flushes: more of them, longer ones, or ones that nobody waits for with the faster setting. Otherwise, or where
--        waits for other reasons may hide this one, counts decide: the slower one flushes more per operation,
--        significantly, and these flushes can account for as much, within the busy time of the device and what CPU time
--        leaves; and the additional flushes per second account for half of that or more, with the lower end of the 95 %
--        interval at a quarter or more; what each of the faster setting takes longer is taken off. A slowdown by itself
--        does not flush more often per second: if commits share a flush, fewer of them do. The time of a flush is the average in the runs of each setting or, if no run has it,
--        that of one after 4 KiB on this device. The time to fill units that writes filled in part is no cost of the
--        flush, and is left to rule io_size: at most two units for each such write, and no more than one and what a
--        flush takes longer than after 4 KiB.
-- None: the intervals rule out an effect on throughput that matters, or that flushes account for flush_share of it.
--        Of the time of a flush, write_unit_us for the share of such writes is taken off.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of
--        unknown origin, or the time of a flush is unknown (each reported once per case); no interval, or too wide a
--        one; flushes that may fill more units than one; without watched waits, flushes that rise per operation and not
--        per second, or that take longer, or may do so where no run has their time, or leave room for CPU time, or no CPU
--        time was recorded, or whose fsyncs may account for as much: an fsync also waits for writes and for the journal of
--        the file system, for an unknown time. Bounds are the additional busy time of the device per operation and, unless
--        flushes rise significantly, the share of all flushes that may be additional; or what as many fdatasyncs take on
--        this device by its profile, the kernel's part included.
-- Penalty: throughput of the better value / that of the worse, within what the share of the flushes allows.
-- Cannot see: writes that force their own data to storage (FUA), which are not flushes; without waits, flushes that one
--        setting adds on a device that flushes all the time anyway.
WITH seen AS (
    SELECT dbms, device, workload, watched, serving,
        coalesce(flush_p50_us, fsync_p50_us) AS usual_us, write_unit_us,
        coalesce(obstacle, CASE WHEN usual_us IS NULL THEN 'no_profile' END) AS blind
    FROM visibility LEFT JOIN device_profile USING (device)
),

-- Cases in which nothing hinders an answer.
throughput AS (
    FROM effects_on('throughput_ops') SEMI JOIN (FROM seen WHERE blind IS NULL) USING (dbms, device, workload)
),

compared AS (
    SELECT dbms, device, workload, watched, blind, serving, usual_us, t.* EXCLUDE (dbms, device, workload),
        -- A flush takes as long as what it has to store: on a disk, many times as long as one after 4 KiB.
        of_slower(t.estimate, value_us, reference_us) AS measured_us,
        of_slower(t.estimate, reference_us, value_us) AS faster_measured_us,
        coalesce(measured_us, usual_us) AS flush_us,
        coalesce(faster_measured_us, flush_us) AS faster_us,
        -- The filling of units: at most, where several of them may be filled, and at least.
        filling_of(
            flush_us, usual_us, write_unit_us, of_slower(t.estimate, value_partly, reference_partly),
            of_slower(t.estimate, value_partly_writes, reference_partly_writes)
        ) AS slower_filling,
        filling_of(
            faster_us, usual_us, write_unit_us, of_slower(t.estimate, reference_partly, value_partly),
            of_slower(t.estimate, reference_partly_writes, value_partly_writes)
        ) AS faster_filling,
        slower_filling['least'] AS fill_us, slower_filling['most'] AS most_fill_us,
        faster_filling['least'] AS faster_fill_us, faster_filling['most'] AS faster_most_fill_us,
        flush_us - fill_us AS net_us,
        flush_us - most_fill_us AS least_net_us,
        faster_us - faster_most_fill_us AS faster_net_us,
        1e6 / t.reference AS us_before,
        1e6 / t.reference * exp(-t.estimate) AS us_after,
        abs(us_after - us_before) AS slow_us,
        f.estimate AS more, f.low AS more_low, f.high AS more_high, f.q_value AS more_q, f.reference AS flushes_before,
        -- Of hardly any writes with one of the two there is no ratio.
        CASE WHEN value_partly IS NOT NULL AND reference_partly IS NOT NULL THEN b.estimate END AS written,
        b.low AS written_low, b.high AS written_high,
        slower_rate, faster_rate, margin, waited, waited_low, waited_high, left_open, share_of_us,
        of_slower(t.estimate, value_waited_us, reference_waited_us) AS slower_waited_us,
        of_slower(t.estimate, reference_waited_us, value_waited_us) AS faster_waited_us,
        -sign(t.estimate) * (value_busy * us_after - reference_busy * us_before) AS more_busy_us,
        of_slower(t.estimate, value_busy, reference_busy) AS busy,
        -- Where fewer flushes store as much, each takes longer: what a second of the faster setting has of them.
        greatest(least_net_us, CASE WHEN measured_us IS NOT NULL AND faster_measured_us IS NOT NULL THEN least(
            faster_us - faster_fill_us, 1e6 * of_slower(t.estimate, reference_busy, value_busy) / nullif(faster_rate, 0)
        ) END) AS faster_cost_us,
        allowed_share(busy, t.estimate) AS allowed,
        not_on_cpu(t.estimate, slow_us, c.reference, c.low, c.high, serving) AS not_cpu
    FROM seen
    LEFT JOIN throughput t USING (dbms, device, workload)
    LEFT JOIN effects_on('flushes_per_op') f USING (dbms, device, workload, knob, value)
    LEFT JOIN rates_of('flushes_per_op') USING (dbms, device, workload, knob, value)
    LEFT JOIN waited_for(['flush'], may_hide(['flush'])) USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('write_bytes_per_op') b USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('cpu_s_per_op') c USING (dbms, device, workload, knob, value)
    LEFT JOIN flushes_behind USING (dbms, device, workload, knob, value)
    LEFT JOIN device_behind USING (dbms, device, workload, knob, value)
),

shared AS (
    SELECT *, share_of_cause(
        -- Of what clients wait for a flush, filling units of the device is left to rule io_size.
        share_by_time(
            without_filling(waited, most_filled, faster_waited_us, faster_filled, share_of_us),
            without_filling(waited_low, most_filled, faster_waited_us, faster_filled, share_of_us),
            without_filling(waited_high, filled, faster_waited_us, faster_most_filled, share_of_us),
            left_open, getvariable('flush_share')
        ),
        share_by_counts(slower_rate, faster_rate, margin, least_net_us, faster_cost_us, estimate, least(allowed, 1))
    ) AS share
    FROM (
        SELECT *,
            fill_us / nullif(flush_us, 0) AS filled, most_fill_us / nullif(flush_us, 0) AS most_filled,
            faster_fill_us / nullif(faster_us, 0) AS faster_filled,
            faster_most_fill_us / nullif(faster_us, 0) AS faster_most_filled
        FROM compared
    )
),

judged AS (
    SELECT *,
        is_significant(estimate, q_value) AS matters,
        -sign(estimate) * more AS slow_more,
        -- Per operation: the additional flushes, and what each takes longer than one of the faster setting.
        slow_more * net_us AS more_us,
        of_slower(estimate, more_high, -more_low) AS most_more,
        most_more * net_us
            + of_slower(estimate, flushes_before, flushes_before + more) * greatest(net_us - faster_net_us, 0) AS most_us,
        coalesce(matters AND more_q <= getvariable('fdr') AND slow_more > 0, false) AS is_part,
        coalesce(is_part AND more_us >= getvariable('flush_share') * slow_us, false) AS can_be,
        coalesce(matters AND (is_part OR share.by_time) AND is_cause(share, getvariable('flush_share')), false) AS is_it,
        of_slower(estimate, flushes_before + more, flushes_before) AS slower_flushes,
        -- Of these, the largest part that may be additional.
        CASE WHEN is_part THEN 1 ELSE coalesce(
            least(most_more / nullif(greatest(slower_flushes, 0), 0), 1),
            sign(most_more)
        ) END AS most_part,
        coalesce(
            NOT share.by_time AND getvariable('flush_share') * slow_us <= greatest(
                least(most_part * of_slower(estimate, us_after, us_before), more_busy_us),
                -- The kernel's part of an fdatasync: where the device is fast, it takes as long as the flush.
                most_more * (usual_us - fill_us)
            ),
            false
        ) AS may_be_fsync,
        -- With both settings they may take any time, within what the device is busy for.
        coalesce(
            NOT share.by_time AND flushes_before > 0 AND number_after(flushes_before, more) > 0
                AND (measured_us IS NULL OR faster_measured_us IS NULL)
                AND coalesce(more_busy_us >= getvariable('flush_share') * slow_us, true),
            false
        ) AS may_be_longer,
        most_fill_us - fill_us > 0.05 * flush_us
            OR (share.by_time AND faster_most_fill_us - faster_fill_us > 0.05 * faster_us) AS may_fill_several,
        -- More flushes, each shorter by so much that together they explain too little.
        coalesce(
            can_be AND faster_cost_us > net_us AND slower_flushes * net_us
                - greatest(of_slower(estimate, flushes_before, flushes_before + more), 0) * faster_cost_us
                < getvariable('flush_share') * slow_us, false
        ) AS are_shorter,
        CASE WHEN share.by_time THEN share.high < getvariable('flush_share')
             ELSE most_us < getvariable('flush_share') * slow_us AND NOT may_be_fsync AND NOT may_be_longer
        END AS flushes_ruled_out
    FROM shared
),

verdicts AS (
    SELECT *,
        within(share, not_cpu) AS told,
        -- Of what nobody measured in these runs, the device's busy time is the only bound.
        share.by_time OR coalesce(measured_us, busy) IS NOT NULL AS is_timed,
        is_it AND is_timed AND (share.by_time OR coalesce(not_cpu >= getvariable('flush_share'), false)) AS is_mismatch,
        CASE
            WHEN blind IS NOT NULL THEN blind
            WHEN knob IS NULL THEN 'no_knob'
            WHEN q_value IS NULL THEN lack_of_runs(runs, blocks, estimate)
            WHEN more_q IS NULL THEN 'few_watched'
            WHEN is_mismatch OR rules_out_effect(low, high) OR (matters AND flushes_ruled_out) THEN NULL
            WHEN is_it AND NOT is_timed THEN 'no_latency'
            WHEN is_it AND not_cpu IS NULL THEN 'no_cpu'
            WHEN is_it THEN 'cpu'
            WHEN matters AND may_fill_several AND (share.by_time OR slower_rate > faster_rate + margin) THEN 'several_units'
            WHEN share.by_time AND matters THEN 'noise_of_flushes'
            WHEN may_be_fsync AND is_part AND most_us < getvariable('flush_share') * slow_us THEN 'fsync'
            WHEN are_shorter THEN 'shorter_flushes'
            WHEN can_be AND share.high < getvariable('flush_share') THEN 'seldom_busy'
            WHEN can_be THEN 'same_rate'
            WHEN matters AND slow_more * net_us + greatest(net_us - faster_net_us, 0)
                * of_slower(estimate, flushes_before, flushes_before + more) >= getvariable('flush_share') * slow_us
                THEN 'longer_flushes'
            WHEN matters AND may_be_longer AND most_us < getvariable('flush_share') * slow_us THEN 'no_latency'
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
    penalty_of_share(verdict, estimate, told.high) AS penalty,
    {
        baseline: baseline, step: step, mechanism: mechanism, durability: durability, throughput_ratio: exp(estimate),
        q_value: q_value, flush_us: flush_us, fill_us: fill_us, flush_us_faster: faster_us,
        flushes_per_op: {
            before: greatest(flushes_before, 0), after: number_after(flushes_before, more), q_value: more_q
        },
        flushes_per_s: {slower: slower_rate, faster: faster_rate},
        difference_us: {of_client: slow_us * serving, of_all: slow_us}, serving: serving,
        flush_share: more_us / nullif(slow_us, 0),
        waited_us_per_op: {slower: slower_waited_us, faster: faster_waited_us},
        -- Whether what each flush takes longer makes up half of the additional waiting for them.
        is_longer: faster_waited_us * (flush_us / faster_us - 1) >= (slower_waited_us - faster_waited_us) / 2,
        waited: waited, left_open: left_open, share: told,
        time_ruled_out: matters AND share.by_time AND flushes_ruled_out,
        counts_ruled_out: matters AND NOT share.by_time AND flushes_ruled_out AND more_us >= 0.01 * slow_us,
        busy_share: allowed * lost_share(estimate), not_cpu: not_cpu, is_part: is_part,
        written: {effect: exp(written) - 1, low: exp(written_low) - 1, high: exp(written_high) - 1},
        slower: of_slower(estimate, 'value', 'baseline'),
        obstacle: obstacle, smallest: smallest_effect(low, high), watched: watched
    } AS evidence
FROM verdicts
ORDER BY ALL

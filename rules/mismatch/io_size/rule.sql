-- io_size: writes that fill the device's units in part become more, and throughput goes down.
-- Source: He et al. (PVLDB 16(7), 2023), mismatch of I/O size.
-- Needs: effects (throughput_ops, unaligned_write_share, unaligned_writes_per_op, flushes_per_op), flushes_behind,
--        device_profile (write_unit_bytes, write_unit_us), visibility.
-- Mismatch: throughput falls where the SHARE of such writes rises, whichever end of the change is the default; or where
--        their NUMBER per operation rises with the knob (downwards it does not count: any knob that saves writes saves
--        unaligned ones too; of special values, such as 0 = off, nobody knows the direction), and also per second: writes in the
--        background become more per operation by any slowdown; or where more flushes per operation wait for units to be
--        filled, and this waiting (write_unit_us for each flush, times the share of such writes) makes up fill_share or more of
--        the time per operation that the slower one takes more. Each change is significant. Not where the other part of the
--        flushes' time makes up more than half of it: that is for rule flush. And not where such writes are too few: where
--        two units for each of the slower one's (write_unit_us) take less than fill_share of that time.
-- None: the intervals rule out that throughput changes, or that such writes change with it, by an amount that matters.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of unknown
--        origin, or the device has no profile, or no write unit was found (each said once per case); no interval, or too
--        wide a one, for an effect; a number of such writes that is the same per second, so that it may be the slowdown
--        that changes it; a special value whose number of such writes would decide.
-- Penalty: throughput of the better value / that of the worse.
-- Cannot see: whether the size is the cause: values that change the size of writes may change more. That is for confirm.
WITH seen AS (
    SELECT dbms, v.device, workload, watched, write_unit_bytes, write_unit_us,
        coalesce(
            obstacle, CASE WHEN d.device IS NULL THEN 'no_profile' WHEN write_unit_bytes IS NULL THEN 'no_unit' END
        ) AS blind
    FROM visibility v LEFT JOIN device_profile d ON d.device = v.device
),

-- Cases in which nothing hinders an answer.
throughput AS (
    FROM effects_on('throughput_ops') SEMI JOIN (FROM seen WHERE blind IS NULL) USING (dbms, device, workload)
),

compared AS (
    SELECT dbms, device, workload, watched, blind, t.* EXCLUDE (dbms, device, workload),
        write_unit_bytes, write_unit_us,
        s.estimate AS share, s.low AS share_low, s.high AS share_high, s.q_value AS share_q,
        s.reference AS share_before,
        n.estimate AS number, n.low AS number_low, n.high AS number_high, n.q_value AS number_q,
        n.reference AS number_before,
        f.estimate AS flushes, f.low AS flushes_low, f.high AS flushes_high, f.q_value AS flushes_q,
        f.reference AS flushes_before,
        value_us, reference_us, value_partly, reference_partly,
        sign(t.step) AS direction,
        getvariable('min_effect') AS share_matters,
        getvariable('min_effect') * n.reference AS number_matters
    FROM seen
    LEFT JOIN throughput t USING (dbms, device, workload)
    LEFT JOIN effects_on('unaligned_write_share') s USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('unaligned_writes_per_op') n USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('flushes_per_op') f USING (dbms, device, workload, knob, value)
    LEFT JOIN flushes_behind USING (dbms, device, workload, knob, value)
),

-- What flushes make up of the time per operation that the slower setting takes more: to fill units, and for the rest.
waited AS (
    SELECT *,
        1e6 / reference * abs(exp(-estimate) - 1) AS slow_us,
        of_slower(estimate, value_partly, reference_partly) AS partly,
        of_slower(estimate, value_us, reference_us) AS flush_us,
        filling_us(flush_us, write_unit_us, partly) AS fill_us,
        -sign(estimate) * flushes AS more_flushes,
        of_slower(estimate, flushes_high, -flushes_low) AS more_flushes_high,
        more_flushes * fill_us / nullif(slow_us, 0) AS filling,
        coalesce(more_flushes_high * fill_us / nullif(slow_us, 0) < getvariable('fill_share'), true) AS filling_ruled_out,
        -- A write that begins and ends between units fills two: all of the slower side's take this long at most.
        2 * write_unit_us * of_slower(estimate, number_before + number, number_before) AS most_us,
        coalesce(most_us < getvariable('fill_share') * slow_us, false) AS too_few,
        coalesce(
            flushes_q <= getvariable('fdr')
                AND more_flushes * (flush_us - fill_us) / nullif(slow_us, 0) > 1 - getvariable('fill_share'), false
        ) AS by_flushes
    FROM compared
),

judged AS (
    SELECT *,
        is_significant(estimate, q_value) AS matters,
        coalesce(is_significant_share(share, share_q) AND sign(share) = -sign(estimate), false) AND NOT too_few
            AS by_share,
        number_q <= getvariable('fdr') AND abs(number) >= number_matters AND sign(number) = -sign(estimate)
            AS number_against,
        -- Unaligned writes per second, of the slower side to the faster one.
        exp(-abs(estimate)) * CASE WHEN estimate < 0 THEN (number_before + number) / nullif(number_before, 0)
            ELSE number_before / nullif(number_before + number, 0) END AS rate_ratio,
        coalesce(rate_ratio, 'infinity'::DOUBLE) >= 1 + getvariable('min_effect') AS more_per_second,
        coalesce(number_against AND sign(number) = direction AND more_per_second, false) AND NOT too_few AS by_number,
        coalesce(flushes_q <= getvariable('fdr') AND more_flushes > 0 AND filling >= getvariable('fill_share'), false)
            AS by_filling,
        -- Whether the intervals rule out a change of such writes that would make it a mismatch: for a value without a
        -- direction, in both.
        (share_high < share_matters OR (matters AND estimate > 0))
            AND (share_low > -share_matters OR (matters AND estimate < 0)) AS share_ruled_out,
        (direction > 0 OR number_low > -number_matters OR (matters AND estimate < 0))
            AND (direction < 0 OR number_high < number_matters OR (matters AND estimate > 0)) AS number_ruled_out
    FROM waited
),

verdicts AS (
    SELECT *,
        matters AND (by_share OR by_number OR by_filling) AND NOT by_flushes AS is_mismatch,
        CASE
            WHEN blind IS NOT NULL THEN blind
            WHEN knob IS NULL THEN 'no_knob'
            WHEN q_value IS NULL THEN lack_of_runs(runs, blocks, estimate)
            WHEN number_q IS NULL THEN 'few_watched'
            WHEN is_mismatch OR rules_out_effect(low, high) OR (matters AND (by_flushes OR too_few)) THEN NULL
            WHEN share_q IS NULL THEN 'few_writes'
            WHEN share_ruled_out AND number_ruled_out AND filling_ruled_out THEN NULL
            WHEN matters AND number_against AND direction IS NULL THEN 'no_direction'
            WHEN matters AND number_against AND NOT more_per_second THEN 'same_rate'
            WHEN matters THEN 'noise_of_writes'
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
        baseline: baseline, step: step, mechanism: mechanism, write_unit_bytes: write_unit_bytes,
        throughput_ratio: exp(estimate), q_value: q_value,
        unaligned_share: {
            before: CASE WHEN share IS NOT NULL THEN as_share(share_before) END,
            after: CASE WHEN share IS NOT NULL THEN as_share(share_before + share) END,
            q_value: share_q, counts: by_share
        },
        unaligned_per_op: {
            before: greatest(number_before, 0), after: number_after(number_before, number), q_value: number_q,
            counts: by_number
        },
        flushes_per_op: {
            before: greatest(flushes_before, 0), after: number_after(flushes_before, flushes), q_value: flushes_q,
            counts: by_filling
        },
        fill_us: fill_us, fill_share: filling, slow_us: slow_us, most_us: most_us, too_few: matters AND too_few,
        by_flushes: matters AND by_flushes AND (by_share OR by_number OR by_filling),
        slower: of_slower(estimate, 'value', 'baseline'),
        obstacle: obstacle, smallest: smallest_effect(low, high), watched: watched
    } AS evidence
FROM verdicts
ORDER BY ALL

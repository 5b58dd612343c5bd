-- io_size: writes that fill the device's units in part become more, and throughput goes down.
-- Source: He et al. (PVLDB 16(7), 2023), mismatch of I/O size.
-- Needs: effects (throughput_ops, unaligned_write_share, unaligned_writes_per_op), device_profile (write_unit_bytes),
--        visibility.
-- Mismatch: throughput falls where the SHARE of such writes rises, whichever end of the change is the default; or where
--        their NUMBER per operation rises with the knob (downwards it does not count: any knob that saves writes saves
--        unaligned ones too; of special values, such as 0 = off, nobody knows the direction), and also per second: writes in the
--        background become more per operation by any slowdown. Each change is significant.
-- None: the intervals rule out that throughput changes, or that such writes change with it, by an amount that matters.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of unknown
--        origin, or the device has no profile, or no write unit was found (each said once per case); no interval, or too
--        wide a one, for an effect; a number of such writes that is the same per second, so that it may be the slowdown
--        that changes it; a special value whose number of such writes would decide.
-- Penalty: throughput of the better value / that of the worse.
-- Cannot see: whether the size is the cause: values that change the size of writes may change more. That is for confirm.
WITH seen AS (
    SELECT dbms, v.device, workload, watched, write_unit_bytes,
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
        write_unit_bytes,
        s.estimate AS share, s.low AS share_low, s.high AS share_high, s.q_value AS share_q,
        s.reference AS share_before,
        n.estimate AS number, n.low AS number_low, n.high AS number_high, n.q_value AS number_q,
        n.reference AS number_before,
        sign(t.step) AS direction,
        getvariable('min_effect') AS share_matters,
        getvariable('min_effect') * n.reference AS number_matters
    FROM seen
    LEFT JOIN throughput t USING (dbms, device, workload)
    LEFT JOIN effects_on('unaligned_write_share') s USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('unaligned_writes_per_op') n USING (dbms, device, workload, knob, value)
),

judged AS (
    SELECT *,
        is_significant(estimate, q_value) AS matters,
        is_significant_share(share, share_q) AND sign(share) = -sign(estimate) AS by_share,
        number_q <= getvariable('fdr') AND abs(number) >= number_matters AND sign(number) = -sign(estimate)
            AS number_against,
        -- Unaligned writes per second, of the slower side to the faster one.
        exp(-abs(estimate)) * CASE WHEN estimate < 0 THEN (number_before + number) / nullif(number_before, 0)
            ELSE number_before / nullif(number_before + number, 0) END AS rate_ratio,
        coalesce(rate_ratio, 'infinity'::DOUBLE) >= 1 + getvariable('min_effect') AS more_per_second,
        coalesce(number_against AND sign(number) = direction AND more_per_second, false) AS by_number,
        -- Whether the intervals rule out a change of such writes that would make it a mismatch: for a value without a
        -- direction, in both.
        (share_high < share_matters OR (matters AND estimate > 0))
            AND (share_low > -share_matters OR (matters AND estimate < 0)) AS share_ruled_out,
        (direction > 0 OR number_low > -number_matters OR (matters AND estimate < 0))
            AND (direction < 0 OR number_high < number_matters OR (matters AND estimate > 0)) AS number_ruled_out
    FROM compared
),

verdicts AS (
    SELECT *,
        matters AND (by_share OR by_number) AS is_mismatch,
        CASE
            WHEN blind IS NOT NULL THEN blind
            WHEN knob IS NULL THEN 'no_knob'
            WHEN q_value IS NULL THEN lack_of_runs(runs, blocks, estimate)
            WHEN number_q IS NULL THEN 'few_watched'
            WHEN share_q IS NULL THEN 'few_writes'
            WHEN is_mismatch OR rules_out_effect(low, high) OR (share_ruled_out AND number_ruled_out) THEN NULL
            WHEN matters AND number_against AND direction IS NULL THEN 'no_direction'
            WHEN matters AND number_against AND NOT more_per_second THEN 'same_rate'
            WHEN matters THEN 'noise_of_writes'
            ELSE 'noise'
        END AS obstacle
    FROM judged
)

SELECT
    dbms, device, workload, knob, value,
    CASE WHEN obstacle IS NOT NULL THEN 'insufficient' WHEN is_mismatch THEN 'mismatch' ELSE 'none' END AS verdict,
    exp(estimate) - 1 AS effect,
    exp(low) - 1 AS effect_low,
    exp(high) - 1 AS effect_high,
    CASE WHEN verdict = 'mismatch' THEN exp(abs(estimate)) END AS penalty,
    {
        baseline: baseline, step: step, mechanism: mechanism, write_unit_bytes: write_unit_bytes,
        throughput_ratio: exp(estimate), q_value: q_value,
        unaligned_share: {
            before: as_share(share_before), after: as_share(share_before + share), q_value: share_q, counts: by_share
        },
        unaligned_per_op: {
            before: greatest(number_before, 0), after: greatest(number_before + number, 0), q_value: number_q,
            counts: by_number
        },
        slower: CASE WHEN estimate < 0 THEN 'value' ELSE 'baseline' END,
        obstacle: obstacle, smallest: smallest_effect(low, high), watched: watched
    } AS evidence
FROM verdicts
ORDER BY ALL

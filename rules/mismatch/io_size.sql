-- io_size: writes that miss the device's preferred size become more as the knob goes up, and throughput goes down.
-- Source: "When Database Meets New Storage Devices" (PVLDB 2023), mismatch of I/O size.
-- Needs: effects (throughput_ops, unaligned_write_share, unaligned_writes_per_op), device_profile, visibility.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of unknown
--        origin; no device profile (no preferred size); no interval for one of the effects.
-- Mismatch: throughput falls where the SHARE of such writes rises, whichever end of the change is the default; or where
--        their NUMBER per operation rises with the knob (downwards it does not count: any knob that saves writes saves
--        unaligned ones too). Each change is significant. Penalty: throughput of the better value / that of the worse.
WITH compared AS (
    SELECT v.dbms, v.device, v.workload, v.obstacle, v.caveat, t.* EXCLUDE (dbms, device, workload),
        d.preferred_write_bytes,
        s.estimate AS share, s.q_value AS share_q, s.reference AS share_before,
        n.estimate AS number, n.q_value AS number_q, n.reference AS number_before,
        is_significant(t.estimate, t.q_value) AS matters,
        is_significant_share(s.estimate, s.q_value) AND sign(s.estimate) = -sign(t.estimate) AS by_share,
        n.q_value <= getvariable('fdr') AND abs(n.estimate) >= getvariable('min_effect') * n.reference
            AND sign(n.estimate) = -sign(t.estimate) AND sign(n.estimate) = coalesce(sign(t.step), 1) AS by_number
    FROM visibility v
    LEFT JOIN (FROM effects WHERE metric = 'throughput_ops') t USING (dbms, device, workload)
    LEFT JOIN device_profile d USING (device)
    LEFT JOIN effects s
        ON s.metric = 'unaligned_write_share'
        AND (s.dbms, s.device, s.workload, s.knob, s.value) = (v.dbms, v.device, v.workload, t.knob, t.value)
    LEFT JOIN effects n
        ON n.metric = 'unaligned_writes_per_op'
        AND (n.dbms, n.device, n.workload, n.knob, n.value) = (v.dbms, v.device, v.workload, t.knob, t.value)
),

lacking AS (
    SELECT *,
        CASE
            WHEN obstacle IS NOT NULL THEN obstacle
            WHEN preferred_write_bytes IS NULL THEN 'the device has no profile, so its preferred write size is unknown'
            WHEN knob IS NULL THEN 'no knob was swept'
            WHEN q_value IS NULL THEN too_little(runs, blocks)
            WHEN number_q IS NULL THEN 'too few of its runs were watched'
            WHEN share_q IS NULL THEN 'too few of its runs wrote to the device'
        END AS obstacle_here
    FROM compared
),

verdicts AS (
    SELECT *,
        CASE
            WHEN obstacle_here IS NOT NULL THEN 'insufficient'
            WHEN matters AND (by_share OR by_number) THEN 'mismatch'
            ELSE 'none'
        END AS verdict
    FROM lacking
)

SELECT
    'io_size' AS rule, dbms, device, workload, knob, value, verdict,
    exp(estimate) - 1 AS effect,
    exp(low) - 1 AS effect_low,
    exp(high) - 1 AS effect_high,
    CASE WHEN verdict = 'mismatch' THEN exp(abs(estimate)) END AS penalty,
    to_json({
        baseline: baseline, step: step, mechanism: mechanism, preferred_write_bytes: preferred_write_bytes,
        throughput_ratio: exp(estimate), q_value: q_value,
        unaligned_share: {before: share_before, after: share_before + share, q_value: share_q, counts: by_share},
        unaligned_per_op: {before: number_before, after: number_before + number, q_value: number_q, counts: by_number},
        slower: CASE WHEN estimate < 0 THEN 'value' ELSE 'baseline' END, caveat: caveat
    })::VARCHAR AS evidence,
    coalesce(change_in_words(knob, baseline, value, unit, step), 'I/O sizes') || ' ' || CASE verdict
        WHEN 'insufficient' THEN
            format('on {} with {} cannot be judged by the size of writes: {}', device, workload, obstacle_here)
        ELSE
            effect_in_words(workload, device, estimate, low, high)
            || format(
                '; writes that are not whole multiples of the {} bytes the device prefers go from {} to {} of all, '
                || 'from {:.2f} to {:.2f} per operation',
                preferred_write_bytes, as_percent(share_before), as_percent(share_before + share),
                number_before, number_before + number
            )
            || CASE WHEN verdict = 'none' THEN ': not a loss that unaligned writes come with' ELSE '' END
            || coalesce(' (' || caveat || ')', '')
    END || '.' AS sentence
FROM verdicts
ORDER BY ALL

-- tier: the same change of a knob moves a higher-tier device against a lower-tier one, or much less or more than it.
-- Source: "When Database Meets New Storage Devices" (PVLDB 2023): a faster tier must not turn a good setting bad.
-- Needs: effects and tier_contrasts (throughput of both devices), tier_rank of the device profiles.
-- Insufficient: no second device of another tier in the study, or no interval for the effect on one of the two.
-- Mismatch: the effects differ (false discovery rate over all contrasts) and are opposite, both significant; or their
--        ratio differs from 1 by more than tier_gap. Penalty: the ratio of the ratios, as a factor above 1.
WITH throughput AS (
    SELECT * FROM effects WHERE metric = 'throughput_ops'
),

pairs AS (
    SELECT low.dbms, low.workload, low.device AS lower_device, high.device AS higher_device
    FROM (SELECT * FROM cases JOIN device_tiers USING (device)) low
    JOIN (SELECT * FROM cases JOIN device_tiers USING (device)) high USING (dbms, workload)
    WHERE high.tier_rank > low.tier_rank
),

comparisons AS (
    SELECT p.*, v.knob, v.value, v.baseline, v.unit, v.step, v.mechanism,
        c.estimate, c.low, c.high, c.q_value,
        l.estimate AS lower, l.low AS lower_low, l.high AS lower_high,
        h.estimate AS higher, h.low AS higher_low, h.high AS higher_high,
        is_significant(l.estimate, l.q_value) AND is_significant(h.estimate, h.q_value)
            AND sign(l.estimate) <> sign(h.estimate) AS opposite,
        CASE WHEN l.low IS NULL THEN lower_device ELSE higher_device END AS unknown_device,
        CASE WHEN l.low IS NULL THEN too_little(coalesce(l.runs, 0), l.blocks)
             ELSE too_little(coalesce(h.runs, 0), h.blocks) END AS lacking
    FROM pairs p
    JOIN (
        SELECT DISTINCT dbms, workload, knob, value, baseline, unit, step, mechanism FROM throughput
    ) v USING (dbms, workload)
    LEFT JOIN tier_contrasts c USING (dbms, workload, knob, value, baseline, lower_device, higher_device)
    LEFT JOIN throughput l
        ON l.device = lower_device
        AND (l.dbms, l.workload, l.knob, l.value) = (p.dbms, p.workload, v.knob, v.value)
    LEFT JOIN throughput h
        ON h.device = higher_device
        AND (h.dbms, h.workload, h.knob, h.value) = (p.dbms, p.workload, v.knob, v.value)
),

verdicts AS (
    SELECT *,
        CASE
            WHEN q_value IS NULL THEN 'insufficient'
            WHEN q_value <= getvariable('fdr')
                AND (opposite OR exp(abs(estimate)) - 1 > getvariable('tier_gap')) THEN 'mismatch'
            ELSE 'none'
        END AS verdict
    FROM comparisons
),

-- A device without another tier beside it: one row per knob.
alone AS (
    SELECT DISTINCT e.dbms, e.device, e.workload, e.knob
    FROM throughput e
    WHERE NOT EXISTS (
        FROM pairs p
        WHERE p.dbms = e.dbms AND p.workload = e.workload AND e.device IN (p.lower_device, p.higher_device)
    )
)

SELECT
    'tier' AS rule, dbms, higher_device AS device, workload, knob, value, verdict,
    exp(estimate) - 1 AS effect,
    exp(low) - 1 AS effect_low,
    exp(high) - 1 AS effect_high,
    CASE WHEN verdict = 'mismatch' THEN exp(abs(estimate)) END AS penalty,
    to_json({
        baseline: baseline, step: step, mechanism: mechanism, lower_device: lower_device, higher_device: higher_device,
        lower_ratio: exp(lower), higher_ratio: exp(higher), ratio_of_ratios: exp(estimate), q_value: q_value,
        opposite: opposite
    })::VARCHAR AS evidence,
    change_in_words(knob, baseline, value, unit, step) || ' ' || CASE verdict
        WHEN 'insufficient' THEN format(
            'with {} cannot be compared between {} and {}: on {}, {}',
            workload, lower_device, higher_device, unknown_device, lacking
        )
        ELSE format(
            '{}, and on {} {} {}: {}',
            effect_in_words(workload, lower_device, lower, lower_low, lower_high),
            higher_device, faster_or_slower(higher), interval_in_words(higher, higher_low, higher_high),
            CASE
                WHEN verdict = 'none' THEN 'no difference between the tiers beyond noise and the gap that matters'
                WHEN opposite THEN format('the higher tier goes the other way, a gap of factor {:.2f}', exp(abs(estimate)))
                WHEN estimate < 0 THEN format(
                    'the higher tier falls behind by factor {:.2f} (95 % interval {:.2f} to {:.2f})',
                    exp(-estimate), exp(-high), exp(-low)
                )
                ELSE format(
                    'the higher tier pulls ahead by factor {:.2f} (95 % interval {:.2f} to {:.2f})',
                    exp(estimate), exp(low), exp(high)
                )
            END
        )
    END || '.' AS sentence
FROM verdicts

UNION ALL BY NAME

SELECT
    'tier' AS rule, dbms, device, workload, knob, 'insufficient' AS verdict,
    format(
        'Whether {} does the same on another tier cannot be said: the study has no device of a tier other than that of {}.',
        knob, device
    ) AS sentence
FROM alone
ORDER BY ALL

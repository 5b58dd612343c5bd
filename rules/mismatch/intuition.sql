-- intuition: changing the knob moves throughput against what is expected of raising it.
-- Source: CP-Detector (He et al., ASE 2020), which checks performance properties of options; kept as the baseline.
-- Needs: effects (throughput_ops) and the knob's `expect`; knobs without it are not judged, nor are special values,
--        of which the intuition says nothing (unless it expects no effect at all).
-- Insufficient: fewer than two blocks or too few runs, so that the effect has no interval.
-- Penalty: throughput of the faster of the two values / that of the slower one.
WITH judged AS (
    SELECT *,
        CASE WHEN step < 0 THEN -estimate ELSE estimate END AS raised,
        is_significant(estimate, q_value) AS matters,
        format('raising {} is expected to make it {}', knob,
            CASE expect WHEN 'none' THEN 'neither faster nor slower' ELSE expect END) AS expectation
    FROM effects
    WHERE metric = 'throughput_ops' AND expect IS NOT NULL AND (step IS NOT NULL OR expect = 'none')
),

verdicts AS (
    SELECT *,
        CASE
            WHEN q_value IS NULL THEN 'insufficient'
            WHEN matters AND (
                expect = 'none' OR (expect = 'faster' AND raised < 0) OR (expect = 'slower' AND raised > 0)
            ) THEN 'mismatch'
            ELSE 'none'
        END AS verdict
    FROM judged
)

SELECT
    'intuition' AS rule, dbms, device, workload, knob, value, verdict,
    exp(estimate) - 1 AS effect,
    exp(low) - 1 AS effect_low,
    exp(high) - 1 AS effect_high,
    CASE WHEN verdict = 'mismatch' THEN exp(abs(estimate)) END AS penalty,
    to_json({
        baseline: baseline, step: step, expect: expect, mechanism: mechanism, throughput_ratio: exp(estimate),
        q_value: q_value, noise: noise, reference_ops: reference, runs: runs, blocks: blocks
    })::VARCHAR AS evidence,
    change_in_words(knob, baseline, value, unit, step) || ' ' || CASE verdict
        WHEN 'insufficient' THEN format('on {} with {} cannot be judged: {}', device, workload, too_little(runs, blocks))
        WHEN 'mismatch' THEN
            effect_in_words(workload, device, estimate, low, high) || ', although ' || expectation
        ELSE effect_in_words(workload, device, estimate, low, high)
            || CASE WHEN matters THEN ', and ' ELSE ', which is not beyond noise or too little to matter; ' END
            || expectation
    END || '.' AS sentence
FROM verdicts
ORDER BY ALL

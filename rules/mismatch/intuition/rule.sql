-- intuition: changing the knob moves throughput against the expectation of raising it.
-- Source: CP-Detector (He et al., ASE 2020), which checks performance properties of options; kept as the baseline of
--        the other rules.
-- Needs: effects (throughput_ops) and the knob's `expect`, or one that its documentation suggests; knobs without either
--        are not judged, nor are special values, for which the intuition says nothing (unless it expects no effect at
--        all).
-- Mismatch: the effect is significant, and against the expectation.
-- None: the interval rules out an effect against the expectation that matters.
-- Insufficient: the effect has no interval, or one that does not rule that out; or the documentation suggests the
--        expectation with less confidence than `least_confidence`.
-- Penalty: throughput of the faster of the two values / that of the slower one.
-- Cannot see: an expectation that holds for another workload; the spec has one word per knob.
WITH judged AS (
    SELECT *,
        CASE WHEN step < 0 THEN -estimate ELSE estimate END AS raised,
        -- In the direction that was measured: 4.8 % slower is more than 5 % faster the other way round.
        CASE WHEN step < 0 THEN rules_out_loss(low) ELSE rules_out_gain(high) END AS raising_gains_nothing,
        CASE WHEN step < 0 THEN rules_out_gain(high) ELSE rules_out_loss(low) END AS raising_loses_nothing
    FROM effects
    WHERE metric = 'throughput_ops' AND expect IS NOT NULL AND (step IS NOT NULL OR expect = 'none')
),

verdicts AS (
    SELECT *,
        is_significant(estimate, q_value) AS matters,
        CASE
            WHEN expect_confidence < getvariable('least_confidence') THEN 'unsure'
            WHEN q_value IS NULL THEN lack_of_runs(runs, blocks, estimate)
            WHEN NOT matters AND NOT (
                (expect = 'faster' OR raising_gains_nothing) AND (expect = 'slower' OR raising_loses_nothing)
            ) THEN 'noise'
        END AS obstacle
    FROM judged
)

SELECT
    dbms, device, workload, knob, value,
    verdict_of(
        obstacle,
        matters AND (
            expect = 'none' OR (expect = 'faster' AND raised < 0) OR (expect = 'slower' AND raised > 0)
        )
    ) AS verdict,
    exp(estimate) - 1 AS effect,
    exp(low) - 1 AS effect_low,
    exp(high) - 1 AS effect_high,
    penalty_of(verdict, estimate) AS penalty,
    {
        baseline: baseline, step: step, expect: expect, expect_confidence: expect_confidence,
        least_confidence: getvariable('least_confidence'), mechanism: mechanism, throughput_ratio: exp(estimate),
        q_value: q_value, noise: noise, reference_ops: reference, runs: runs, blocks: blocks,
        obstacle: obstacle, smallest: smallest_effect(low, high)
    } AS evidence
FROM verdicts
ORDER BY ALL

-- tail: a value leaves throughput as it is, and makes the slowest operations slower or faster.
-- Source: ours; Dean and Barroso (The Tail at Scale, CACM 56(2), 2013) on why high percentiles matter.
-- Needs: effects (throughput_ops, latency_p95_rank, latency_p99_rank), tails_behind, cases; what the sentence says of
--        the device comes from slow_requests_behind, slow_moments_behind and visibility.
-- Mismatch: the 95th or 99th percentile of latency differs by tail_gap or more between value and default, beyond
--        chance: by the ranks of all runs of the case (normal scores in the model of the effects, false discovery rate
--        over all of them), and by an interval of Wilcoxon's test within blocks that excludes no change. Throughput is
--        even: its interval rules out an effect that matters; or, where runs are too noisy for that, it has no
--        significant effect, and its interval ends below half of the least change of the percentile (as logarithms).
-- None: the intervals rule out that either percentile changes by tail_gap; or throughput itself changes significantly,
--        which is for the other rules.
-- Insufficient: neither percentile is known, or the only one that is does not differ; fewer than two comparable
--        blocks; too few runs for an interval of the percentiles, or intervals that rule nothing out.
-- Penalty: the longer percentile / the shorter one.
-- Cannot see: why. What the device did differently in the same runs is mentioned; no cause is named. Percentiles beyond
--        the 99th; the latency that an open load would have had: clients that wait for each operation hide part of a
--        stall.
WITH percentiles AS (
    SELECT b.*, r.q_value AS rank_q,
        r.q_value <= getvariable('fdr') AND exp(abs(b.estimate)) - 1 >= getvariable('tail_gap') AND b.low * b.high > 0
            AS differs,
        greatest(b.high, -b.low) < ln(1 + getvariable('tail_gap')) AS is_even,
        least(abs(b.low), abs(b.high)) AS at_least,
        {differs: coalesce(differs, false), is_open: NOT coalesce(is_even, false), size: abs(b.estimate)} AS weight
    FROM tails_behind b
    JOIN effects r USING (dbms, device, workload, knob, value, metric)
),

-- The percentile that differs, or that may differ, and of two the one that differs more.
tails AS (
    SELECT dbms, device, workload, knob, value,
        count(*) AS known,
        bool_and(coalesce(is_even, false)) AND known = 2 AS all_even,
        max_by(
            {
                percentile: percentile, estimate: estimate, low: low, high: high, q_value: rank_q, differs: differs,
                at_least: at_least, before: reference_us, after: value_us
            },
            weight
        ) AS tail,
        min_by({percentile: percentile, effect: exp(estimate) - 1, low: exp(low) - 1, high: exp(high) - 1}, weight)
            AS other
    FROM percentiles
    GROUP BY ALL
),

requests AS (
    SELECT dbms, device, workload, knob, value,
        list({op: op, before: reference_us, after: value_us} ORDER BY op) FILTER (
            greatest(value_us / reference_us, reference_us / value_us) - 1 >= getvariable('other_gap')
        ) AS changed,
        count(*) FILTER (value_us IS NOT NULL AND reference_us IS NOT NULL) AS compared,
        list(op ORDER BY op) FILTER ((value_us IS NULL) <> (reference_us IS NULL)) AS one_sided
    FROM slow_requests_behind
    GROUP BY ALL
),

judged AS (
    SELECT c.dbms, c.device, c.workload, v.watched, v.obstacle AS blind, t.* EXCLUDE (dbms, device, workload),
        s.tail, s.other, s.known, s.all_even, changed, compared, one_sided,
        m.value_bytes, m.reference_bytes, m.value_flushes, m.reference_flushes,
        is_significant(t.estimate, t.q_value) AS matters,
        rules_out_effect(t.low, t.high)
            OR (NOT matters AND greatest(t.high, -t.low) <= s.tail.at_least / 2) AS is_level,
        coalesce(s.tail.differs, false) AS differs
    FROM cases c
    LEFT JOIN effects_on('throughput_ops') t USING (dbms, device, workload)
    LEFT JOIN tails s USING (dbms, device, workload, knob, value)
    LEFT JOIN requests USING (dbms, device, workload, knob, value)
    LEFT JOIN slow_moments_behind m USING (dbms, device, workload, knob, value)
    LEFT JOIN visibility v USING (dbms, device, workload)
),

verdicts AS (
    SELECT *,
        coalesce(differs AND is_level, false) AS is_mismatch,
        CASE
            WHEN knob IS NULL THEN 'no_knob'
            WHEN q_value IS NULL THEN lack_of_runs(runs, blocks, estimate)
            WHEN tail IS NULL THEN 'no_latency'
            WHEN is_mismatch OR matters OR all_even THEN NULL
            WHEN tail.low IS NULL THEN 'few_runs'
            WHEN differs THEN 'throughput'
            WHEN known < 2 THEN 'one_percentile'
            ELSE 'noise'
        END AS obstacle
    FROM judged
)

SELECT
    dbms, device, workload, knob, value,
    verdict_of(obstacle, is_mismatch) AS verdict,
    exp(tail.estimate) - 1 AS effect,
    exp(tail.low) - 1 AS effect_low,
    exp(tail.high) - 1 AS effect_high,
    penalty_of(verdict, tail.estimate) AS penalty,
    {
        baseline: baseline, step: step, mechanism: mechanism, percentile: tail.percentile, q_value: tail.q_value,
        latency_us: {before: tail.before, after: tail.after}, other: other,
        throughput: {effect: exp(estimate) - 1, low: exp(low) - 1, high: exp(high) - 1}, moved: matters,
        blind: blind, requests: list_filter(coalesce(changed, []), lambda row: (row.after > row.before) = (tail.estimate > 0)), compared: coalesce(compared, 0), one_sided: coalesce(one_sided, []),
        slow_moments: {
            bytes: {before: reference_bytes, after: value_bytes},
            flushes: {before: reference_flushes, after: value_flushes}
        },
        most_usual: 1 + getvariable('other_gap'),
        slower: of_slower(-tail.estimate, 'value', 'baseline'),
        obstacle: obstacle, smallest: greatest(exp((tail.high - tail.low) / 2) - 1, getvariable('tail_gap')),
        watched: watched
    } AS evidence
FROM verdicts
ORDER BY ALL

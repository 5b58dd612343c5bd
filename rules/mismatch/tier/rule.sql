-- tier: the same change of a knob has the opposite effect on a higher-tier device, or a larger one than on a lower-tier
--        one.
-- Source: He et al. (PVLDB 16(7), 2023): a faster tier must not turn a good setting bad.
-- Needs: effects and tier_contrasts (throughput of both devices), tier_rank of the device profiles.
-- Mismatch: the effects differ (false discovery rate over all contrasts) and are opposite, both significant; or their
--        ratio differs from 1 by more than tier_gap, away from what a faster device does by itself: whatever saves work
--        or waiting for a device does less where there is less to wait for. A knob of mechanism io_workers keeps more
--        requests in flight, of which a higher tier takes more: its effect must be as large there, so a smaller one is
--        a mismatch as well. So is any gap where the lower tier's own effect is not significant.
-- None: the interval of the ratio rules out a gap of that size; where the effect on the lower tier is significant, a
--        gap of that size away from 1 and, on the higher tier, an opposite effect of that size.
-- Insufficient: no second device of another tier in the study, or a device without a profile, which ranks its tier
--        (each is reported once per case), no interval for the effect on one of the two, other knobs that have other
--        values on one of the two meanwhile, an interval that holds both a gap that matters and one that does not, or a
--        smaller effect of a knob of which no mechanism is known: the spec does not have it any more.
-- Penalty: the ratio of the ratios, as a factor above 1.
-- Cannot see: which of two devices of one tier is the faster; tiers are compared, not drives. Nor a mechanism that does
--        less on the higher tier than it should: how much it should is not known without a model of both devices.
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
    SELECT p.*, p.higher_device AS device, v.knob, v.value, v.baseline, v.step, v.mechanism,
        c.estimate, c.low, c.high, c.q_value,
        -- The sign of an effect that a higher tier may weaken; without one, a gap in either direction counts.
        CASE
            WHEN is_significant(l.estimate, l.q_value) AND v.mechanism IS DISTINCT FROM 'io_workers' THEN sign(l.estimate)
        END AS direction,
        h.low AS higher_low, h.high AS higher_high,
        {effect: exp(l.estimate) - 1, low: exp(l.low) - 1, high: exp(l.high) - 1} AS lower,
        {effect: exp(h.estimate) - 1, low: exp(h.low) - 1, high: exp(h.high) - 1} AS higher,
        coalesce(
            is_significant(l.estimate, l.q_value) AND is_significant(h.estimate, h.q_value)
                AND sign(l.estimate) <> sign(h.estimate), false
        ) AS opposite,
        CASE WHEN l.low IS NULL THEN p.lower_device ELSE p.higher_device END AS unknown_device,
        CASE
            WHEN c.q_value IS NOT NULL THEN NULL
            WHEN l.low IS NULL THEN lack_of_runs(l.runs, l.blocks, l.estimate)
            WHEN h.low IS NOT NULL AND (l.beside, l.baseline) IS DISTINCT FROM (h.beside, h.baseline) THEN 'other_change'
            ELSE lack_of_runs(h.runs, h.blocks, h.estimate)
        END AS lacking
    FROM pairs p
    JOIN (
        SELECT DISTINCT dbms, workload, knob, value, baseline, step, mechanism FROM throughput
    ) v USING (dbms, workload)
    LEFT JOIN tier_contrasts c
        ON (c.dbms, c.workload, c.lower_device, c.higher_device)
            = (p.dbms, p.workload, p.lower_device, p.higher_device)
        AND (c.knob, c.value) = (v.knob, v.value) AND c.baseline IS NOT DISTINCT FROM v.baseline
    LEFT JOIN throughput l
        ON l.device = p.lower_device
        AND (l.dbms, l.workload, l.knob, l.value) = (p.dbms, p.workload, v.knob, v.value)
    LEFT JOIN throughput h
        ON h.device = p.higher_device
        AND (h.dbms, h.workload, h.knob, h.value) = (p.dbms, p.workload, v.knob, v.value)
),

-- A case whose device has no other tier next to it, or none that is known to be higher or lower.
alone AS (
    SELECT DISTINCT e.dbms, e.device, e.workload,
        CASE WHEN EXISTS (
            FROM cases o
            JOIN device_tiers other USING (device)
            JOIN device_tiers own ON own.device = e.device
            WHERE o.dbms = e.dbms AND o.workload = e.workload AND o.device <> e.device
                AND (other.tier_rank IS NULL OR own.tier_rank IS NULL)
        ) THEN 'no_profile' ELSE 'no_tier' END AS lacking
    FROM throughput e
    WHERE NOT EXISTS (
        FROM pairs p
        WHERE p.dbms = e.dbms AND p.workload = e.workload AND e.device IN (p.lower_device, p.higher_device)
    )
),

judged AS (
    SELECT *,
        q_value <= getvariable('fdr') AND exp(abs(estimate)) - 1 > getvariable('tier_gap') AS unequal,
        coalesce(unequal AND NOT opposite AND estimate * direction < 0, false) AS fades,
        (q_value <= getvariable('fdr') AND opposite) OR (unequal AND NOT fades) AS differs,
        -- The largest gap that matters and that the intervals leave possible.
        CASE
            WHEN direction IS NULL OR mechanism IS NULL THEN greatest(abs(low), abs(high))
            ELSE greatest(direction * low, direction * high, -direction * higher_low, -direction * higher_high)
        END AS possible,
        CASE
            WHEN lacking IS NOT NULL THEN lacking
            WHEN differs OR possible <= ln(1 + getvariable('tier_gap')) THEN NULL
            WHEN fades AND mechanism IS NULL THEN 'no_mechanism'
            WHEN fades THEN 'reversal'
            ELSE 'noise'
        END AS obstacle
    FROM (FROM comparisons UNION ALL BY NAME FROM alone)
)

SELECT
    dbms, device, workload, knob, value,
    verdict_of(obstacle, differs) AS verdict,
    exp(estimate) - 1 AS effect,
    exp(low) - 1 AS effect_low,
    exp(high) - 1 AS effect_high,
    penalty_of(verdict, estimate) AS penalty,
    {
        baseline: baseline, step: step, mechanism: mechanism, lower_device: lower_device, higher_device: higher_device,
        lower: lower, higher: higher, ratio_of_ratios: exp(estimate), q_value: q_value, opposite: opposite, fades: fades,
        tier_gap: getvariable('tier_gap'),
        obstacle: obstacle, unknown_device: unknown_device,
        smallest: greatest(exp((high - low) / 2) - 1, getvariable('tier_gap'))
    } AS evidence
FROM judged
ORDER BY ALL

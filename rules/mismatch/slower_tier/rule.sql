-- slower_tier: the same configuration is slower on a higher-tier device than on a lower-tier one.
-- Source: He et al. (PVLDB 16(7), 2023), its motivating case: a database that a new device makes slower than the old
--        one.
-- Needs: level_contrasts (throughput and 95th percentile of latency on both devices), effects (what else a value was
--        measured with), device_tiers, cases.
-- Mismatch: on the higher tier throughput is lower, or its 95th percentile of latency longer by latency_gap, beyond
--        chance (false discovery rate over all configurations). A value of a knob is a mismatch only if the default
--        configuration is not; otherwise the default is slower, which is reported once.
-- None: the intervals rule both out; or the default configuration is slower there too.
-- Insufficient: no second device of another tier in the study, or a device without a profile, which ranks its tier
--        (each is reported once per case), fewer than two comparable blocks on one of the two, other knobs that have
--        other values on one of the two meanwhile, an unknown percentile, or intervals that do not rule both out.
-- Penalty: throughput on the lower tier / that on the higher one; where latency alone is worse, its ratio.
-- Cannot see: differences of the machines other than the device, if the two were measured on different ones.
WITH compared AS (
    SELECT t.dbms, t.workload, t.higher_device AS device, t.lower_device, t.knob, t.value,
        t.estimate, t.low, t.high, t.q_value,
        l.estimate AS latency, l.low AS latency_low, l.high AS latency_high, l.q_value AS latency_q,
        on_lower.beside IS DISTINCT FROM on_higher.beside AS is_other,
        coalesce(is_significant(t.estimate, t.q_value) AND t.estimate < 0, false) AND NOT is_other AS slower,
        coalesce(l.q_value <= getvariable('fdr') AND l.estimate > ln(1 + getvariable('latency_gap')), false)
            AND NOT is_other AS later
    FROM level_contrasts t
    LEFT JOIN effects_on('throughput_ops') on_lower
        ON (on_lower.dbms, on_lower.workload, on_lower.device, on_lower.knob, on_lower.value)
            = (t.dbms, t.workload, t.lower_device, t.knob, t.value)
    LEFT JOIN effects_on('throughput_ops') on_higher
        ON (on_higher.dbms, on_higher.workload, on_higher.device, on_higher.knob, on_higher.value)
            = (t.dbms, t.workload, t.higher_device, t.knob, t.value)
    LEFT JOIN level_contrasts l
        ON l.metric = 'latency_p95_us'
        AND (l.dbms, l.workload, l.lower_device, l.higher_device)
            = (t.dbms, t.workload, t.lower_device, t.higher_device)
        AND l.knob IS NOT DISTINCT FROM t.knob AND l.value IS NOT DISTINCT FROM t.value
    WHERE t.metric = 'throughput_ops'
),

judged AS (
    SELECT c.*,
        -- A longer latency of the default is another matter than a value with which throughput is lower.
        c.knob IS NOT NULL AND coalesce(d.slower OR (d.later AND NOT c.slower), false) AS as_default,
        coalesce(d.slower, false) AS default_slower,
        (c.slower OR c.later) AND NOT as_default AS is_mismatch,
        (c.slower OR NOT is_mismatch) AND NOT c.is_other AS decides,  -- not where the latency alone makes it a mismatch
        CASE
            WHEN c.is_other THEN 'other_change'
            WHEN c.q_value IS NULL THEN 'one_block'
            WHEN c.slower OR c.later THEN NULL
            WHEN rules_out_loss(c.low) AND c.latency_high IS NULL THEN 'no_latency'
            WHEN rules_out_loss(c.low) AND c.latency_high < ln(1 + getvariable('latency_gap')) THEN NULL
            ELSE 'noise'
        END AS obstacle
    FROM compared c
    LEFT JOIN compared d
        ON d.knob IS NULL
        AND (d.dbms, d.workload, d.device, d.lower_device) = (c.dbms, c.workload, c.device, c.lower_device)
),

-- Cases whose device has no other tier next to it, or none that is known to be higher or lower.
alone AS (
    SELECT c.dbms, c.device, c.workload,
        CASE WHEN EXISTS (
            FROM cases o
            JOIN device_tiers other USING (device)
            WHERE o.dbms = c.dbms AND o.workload = c.workload AND o.device <> c.device
                AND (other.tier_rank IS NULL OR own.tier_rank IS NULL)
        ) THEN 'no_profile' ELSE 'no_tier' END AS obstacle
    FROM cases c
    LEFT JOIN device_tiers own USING (device)
    WHERE NOT EXISTS (
        FROM cases o
        JOIN device_tiers other USING (device)
        WHERE o.dbms = c.dbms AND o.workload = c.workload AND other.tier_rank <> own.tier_rank
    )
)

SELECT
    dbms, device, workload, knob, value,
    CASE WHEN is_mismatch THEN 'mismatch' WHEN obstacle IS NOT NULL THEN 'insufficient' ELSE 'none' END AS verdict,
    CASE WHEN decides THEN exp(estimate) - 1 END AS effect,
    CASE WHEN decides THEN exp(low) - 1 END AS effect_low,
    CASE WHEN decides THEN exp(high) - 1 END AS effect_high,
    CASE WHEN verdict = 'mismatch' THEN CASE WHEN slower THEN exp(-estimate) ELSE exp(latency) END END AS penalty,
    {
        lower_device: lower_device, throughput: {effect: exp(estimate) - 1, low: exp(low) - 1, high: exp(high) - 1},
        throughput_ratio: exp(estimate), q_value: q_value, slower: slower, later: later,
        latency: {effect: exp(latency) - 1, low: exp(latency_low) - 1, high: exp(latency_high) - 1, q_value: latency_q},
        as_default: as_default, default_slower: default_slower, obstacle: obstacle, is_not_slower: rules_out_loss(low), smallest: smallest_effect(low, high)
    } AS evidence
FROM (FROM judged UNION ALL BY NAME FROM alone)
ORDER BY ALL

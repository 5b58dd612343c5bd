-- io_parallelism: the device waits for one request at a time, or one hardware queue carries most, whatever the knobs say.
-- Source: "When Database Meets New Storage Devices" (PVLDB 2023), mismatch of I/O parallelism.
-- Needs: queue_depth (views run_depths, run_queues), sweep_runs, visibility; the device profile only for the penalty.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of unknown
--        origin; the device is busy for less than 5 % of the time; no value of a knob was measured beside the default.
-- A configuration is confined when, in its median run, depth is one for at least busy_share of the busy time, or the
--        most loaded of several hardware queues has more load than all others together (by min_effect).
-- Mismatch: the default is confined, and so is every value of every swept knob. One row per case, without a knob.
-- Penalty: how many times more random reads the device does at its best depth than at depth one: an upper bound.
WITH configurations AS (
    SELECT dbms, device, workload, knob, value, is_sentinel, count(*) AS runs,
        median(busy_share) AS busy,
        median(depth_one_share) AS depth_one, min(depth_one_share) AS depth_one_low, max(depth_one_share) AS depth_one_high,
        median(busy_depth) AS depth,
        max(queues) AS queues,
        median(top_queue_share) AS top_queue
    FROM sweep_runs
    JOIN run_depths USING (run_id)
    LEFT JOIN run_queues USING (run_id)
    GROUP BY ALL
),

judged AS (
    SELECT *,
        coalesce(depth_one >= getvariable('busy_share'), false) AS single_file,
        coalesce(queues > 1 AND top_queue >= (1 + getvariable('min_effect')) * (1 - top_queue), false) AS one_queue,
        single_file OR one_queue AS confined
    FROM configurations
),

-- Values that free the I/O, and the one that gains most throughput by it. An idle device shows nothing.
tried AS (
    SELECT j.dbms, j.device, j.workload,
        count(*) AS configurations,
        count(DISTINCT j.knob) AS knobs,
        count(*) FILTER (NOT confined) AS freed,
        arg_max(
            {
                knob: j.knob, value: j.value, depth: depth, depth_one_share: depth_one, top_queue_share: top_queue,
                throughput_ratio: exp(estimate), throughput_low: exp(low), throughput_high: exp(high)
            },
            coalesce(estimate, '-infinity'::DOUBLE)
        ) FILTER (NOT confined) AS best
    FROM judged j
    LEFT JOIN effects e
        ON e.metric = 'throughput_ops'
        AND (e.dbms, e.device, e.workload, e.knob, e.value) = (j.dbms, j.device, j.workload, j.knob, j.value)
    WHERE NOT is_sentinel AND busy >= 0.05
    GROUP BY ALL
),

cases_judged AS (
    SELECT v.*, s.* EXCLUDE (dbms, device, workload, runs), s.runs AS sentinels,
        coalesce(configurations, 0) AS configurations, knobs, coalesce(freed, 0) AS freed, best,
        random_read_iops_best / nullif(random_read_iops_qd1, 0) AS device_gain, best_queue_depth,
        CASE
            WHEN obstacle IS NOT NULL THEN obstacle
            WHEN s.runs IS NULL THEN 'no run of the default configuration has queue depths'
            WHEN busy < 0.05 THEN format('the device is busy for {} of the time only', as_percent(busy))
            WHEN confined AND coalesce(configurations, 0) = 0 THEN
                'the default configuration is confined to one request or queue at a time, and no value of a knob was '
                || 'measured that could free it'
        END AS obstacle_here,
        format(
            '{} on {} ({} client threads) with the default configuration has one request in flight for {} of the busy '
            || 'time ({} of all time){}',
            v.workload, v.device, threads, as_percent(depth_one), as_percent(busy),
            CASE WHEN queues > 1 THEN format(
                ', and the most loaded of {} hardware queues carries {}', queues, as_percent(top_queue)
            ) ELSE '' END
        ) AS state
    FROM visibility v
    LEFT JOIN (FROM judged WHERE is_sentinel) s USING (dbms, device, workload)
    LEFT JOIN tried USING (dbms, device, workload)
    LEFT JOIN device_profile USING (device)
),

verdicts AS (
    SELECT *,
        CASE
            WHEN obstacle_here IS NOT NULL THEN 'insufficient'
            WHEN confined AND freed = 0 THEN 'mismatch'
            ELSE 'none'
        END AS verdict
    FROM cases_judged
)

SELECT
    'io_parallelism' AS rule, dbms, device, workload, NULL AS knob, NULL AS value, verdict,
    NULL::DOUBLE AS effect,
    NULL::DOUBLE AS effect_low,
    NULL::DOUBLE AS effect_high,
    CASE WHEN verdict = 'mismatch' THEN device_gain END AS penalty,
    to_json({
        busy_share: busy, depth_one_share: depth_one, depth_one_low: depth_one_low, depth_one_high: depth_one_high,
        busy_depth: depth, hardware_queues: queues, top_queue_share: top_queue, sentinels: sentinels, threads: threads,
        configurations: configurations, knobs: knobs, freed: freed, freed_by: best, device_gain: device_gain,
        caveat: caveat
    })::VARCHAR AS evidence,
    CASE
        WHEN verdict = 'insufficient' THEN
            format('The parallelism of {} on {} cannot be judged: {}', workload, device, obstacle_here)
        WHEN verdict = 'mismatch' THEN
            state || format('; none of the {} values of {} knobs that were measured changes that', configurations, knobs)
            || coalesce(format(
                '. The device does {:.1f} times as many random reads at depth {} as at depth one',
                device_gain, best_queue_depth
            ), '')
        WHEN NOT confined THEN state || ': it is used in parallel'
        ELSE state || format(
            '; {} = {} frees it (mean depth {:.1f} while busy){}', best.knob, best.value, best.depth,
            coalesce(format(', with {:.2f} times the throughput', best.throughput_ratio), '')
        )
    END || coalesce(CASE WHEN verdict <> 'insufficient' THEN ' (' || caveat || ')' END, '') || '.' AS sentence
FROM verdicts
ORDER BY ALL

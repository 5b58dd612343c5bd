-- io_parallelism: the device waits for one request at a time, or one hardware queue carries most, whatever the knobs
--        say.
-- Source: He et al. (PVLDB 16(7), 2023), mismatch of I/O parallelism.
-- Needs: queue_depth (views run_depths, run_queues), runs_behind, run_metrics, effects, visibility, device_profile
--        (saturating_depth), device_curve. A configuration is confined when, in its median run, each hardware queue has
--        one request in flight for at least busy_share of the time in which it has any, or the most loaded of several
--        queues has more load than all others together (by min_effect); and of the requests beyond the first that
--        saturate this device, where that is known, fewer than used_share are in flight on average while it is busy.
-- Mismatch: the default is confined, so is every value of every swept knob, and the device would do more at depth; if
--        waits were watched, clients surely wait for its reads and writes for least_waited of their time or more. One
--        row per case, without a knob.
-- None: the default is not confined, or a value of a knob is not and no run of the default is as free as one of its
--        runs, and has more than one request in flight for most of its busy time, or used_share; or the device does no
--        more at any depth, or clients wait for less, at most.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of
--        unknown origin; one client thread, which waits for each of its operations, of which none reads enough_reads
--        times or more on average, so it never has more outstanding, and most of the time no more is in flight (nor is it
--        known where the number of client threads is not); the device is busy for less than least_busy of the time, or
--        for less than least_waited of it while waits were not watched, so it is unknown whether anything
--        waits for it; clients surely wait for less and may wait for more, hidden by locks or timers; no value of a knob
--        was measured together with the default; the default, or the freest value, is not confined, but has only one
--        request in flight for most of its busy time.
-- Penalty: what throughput gains at most if the time in which the device is busy (if waits were watched, no more than
--        clients wait for its reads and writes) becomes as much shorter as the device
--        does more random requests, of the kind that most of them are, at its best depth than at depth one. If writes
--        at depth were not measured, reads replace them. Where fio repeated the I/O with more requests in
--        flight, what that gained replaces the profile.
-- Cannot see: what the DBMS would do with more clients than the workload has.
WITH configurations AS (
    SELECT dbms, device, workload, knob, value, count(*) AS runs,
        median(busy_share) AS busy,
        -- The ends of what decides: of noise alone, runs with a value and with the default overlap.
        min(CASE WHEN queues > 1 THEN queue_one_share ELSE depth_one_share END) AS one_low,
        max(CASE WHEN queues > 1 THEN queue_one_share ELSE depth_one_share END) AS one_high,
        min(top_queue_share) AS top_low, max(top_queue_share) AS top_high,
        min(run_depths.busy_depth) AS depth_low, max(run_depths.busy_depth) AS depth_high,
        median(depth_one_share) AS depth_one, min(depth_one_share) AS depth_one_low, max(depth_one_share) AS depth_one_high,
        median(run_depths.busy_depth) AS depth,
        max(queues) AS queues,
        median(queue_one_share) AS queue_one,
        median(top_queue_share) AS top_queue,
        median(reads_per_op) AS reads_per_op,
        median(writes_per_op) AS writes_per_op
    FROM runs_behind
    JOIN run_depths USING (run_id)
    LEFT JOIN run_queues USING (run_id)
    LEFT JOIN run_metrics USING (run_id)
    WHERE side = 'value' OR knob IS NULL
    GROUP BY ALL
),

judged AS (
    SELECT c.*, saturating_depth,
        CASE WHEN queues > 1 THEN queue_one ELSE depth_one END AS one_share,
        coalesce(one_share >= getvariable('busy_share'), false) AS single_file,
        coalesce(queues > 1 AND top_queue >= (1 + getvariable('min_effect')) * (1 - top_queue), false) AS one_queue,
        -- One request at a time uses nothing of a parallelism, however little there is: of a device that saturates at
        -- depth two it leaves the half unused. What that is worth, its profile says.
        coalesce((depth - 1) / nullif(greatest(saturating_depth - 1, 0), 0) >= getvariable('used_share'), false)
            AS fills_device,
        (single_file OR one_queue) AND NOT fills_device AS confined,
        -- Between the two nobody knows whether the device lacks requests: 91 % instead of 97 % is more, and still little.
        fills_device OR coalesce(depth_one < 0.5, false) AS is_free
    FROM configurations c LEFT JOIN device_profile USING (device)
),

-- Values that free the I/O, and the one that gains most throughput by it. An idle device shows nothing, nor does a value
-- together with a change of other knobs: what is free there may be free because of that change.
tried AS (
    SELECT j.dbms, j.device, j.workload,
        count(*) AS configurations,
        count(DISTINCT j.knob) AS knobs,
        count(*) FILTER (frees) AS freed,
        max(is_free) FILTER (frees) AS is_any_free,
        arg_max(
            {
                knob: j.knob, value: j.value, depth: j.depth, one_share: j.one_share, top_queue_share: j.top_queue,
                throughput: exp(estimate) - 1, throughput_low: exp(low) - 1, throughput_high: exp(high) - 1
            },
            {is_free: is_free, gain: coalesce(estimate, '-infinity'::DOUBLE)}
        ) FILTER (frees) AS best
    FROM (
        SELECT v.*,
            NOT v.confined AND coalesce(
                v.one_high < d.one_low OR v.top_high < d.top_low OR v.depth_low > d.depth_high, false
            ) AS frees
        FROM judged v LEFT JOIN (FROM judged WHERE knob IS NULL) d USING (dbms, device, workload)
        WHERE v.knob IS NOT NULL
    ) j
    LEFT JOIN effects_on('throughput_ops') e USING (dbms, device, workload, knob, value)
    WHERE e.beside IS NULL AND busy >= getvariable('least_busy')
    GROUP BY ALL
),

-- A device with a cache takes writes as fast one by one, though it reads faster at depth.
written AS (
    SELECT device,
        max(iops) / max(iops) FILTER (queue_depth = 1) AS write_gain,
        arg_max(queue_depth, iops) AS best_write_depth
    FROM device_curve
    WHERE curve = 'queue_depth' AND pattern = 'randwrite' AND iops > 0
    GROUP BY device
    HAVING count(DISTINCT queue_depth) > 1
),

cases_judged AS (
    SELECT v.* EXCLUDE (obstacle), s.* EXCLUDE (dbms, device, workload, knob, value, runs), s.runs AS sentinels,
        coalesce(configurations, 0) AS configurations, knobs, coalesce(freed, 0) AS freed, best,
        coalesce(writes_per_op > coalesce(reads_per_op, 0) AND write_gain IS NOT NULL, false) AS mostly_writes,
        CASE WHEN mostly_writes THEN write_gain ELSE random_read_iops_best / nullif(random_read_iops_qd1, 0) END
            AS device_gain,
        CASE WHEN mostly_writes THEN best_write_depth ELSE device_profile.best_queue_depth END AS best_depth,
        device_gain < 1 + getvariable('min_effect') AS does_no_more,
        -- The share of the clients' time that they wait for requests: as watched, or at most as much as it is busy.
        waiting, possibly_waiting, coalesce(possibly_waiting, busy) AS waited_share,
        most_gain(least(busy, waited_share), device_gain) AS gain,
        coalesce(possibly_waiting < getvariable('least_waited'), false) AS is_seldom_waited,
        CASE
            WHEN obstacle IS NOT NULL THEN obstacle
            WHEN threads <= 1 AND coalesce(reads_per_op, 0) < getvariable('enough_reads')
                AND coalesce(depth_one >= 0.5, true) THEN 'one_client'  -- else more is in flight than it waits for
            WHEN s.runs IS NULL OR busy IS NULL THEN 'no_depths'
            WHEN busy < getvariable('least_busy') THEN 'idle'
            WHEN confined AND coalesce(freed, 0) = 0 AND NOT coalesce(does_no_more, false)
                AND NOT is_seldom_waited AND coalesce(waiting, busy) < getvariable('least_waited') THEN 'seldom_waited'
            WHEN confined AND coalesce(configurations, 0) = 0 AND NOT coalesce(does_no_more, false)
                AND NOT is_seldom_waited THEN 'untried'
            WHEN confined AND coalesce(freed, 0) = 0 AND NOT is_seldom_waited AND device_gain IS NULL THEN 'no_profile'
            WHEN coalesce(does_no_more, false) OR is_seldom_waited THEN NULL
            WHEN confined AND coalesce(freed, 0) = 0 AND threads IS NULL
                AND coalesce(reads_per_op, 0) < getvariable('enough_reads') AND coalesce(depth_one >= 0.5, true) THEN 'no_clients'
            WHEN confined AND freed > 0 AND NOT is_any_free THEN 'hardly_freed'
            WHEN NOT confined AND NOT is_free THEN 'hardly_more'
        END AS obstacle
    FROM visibility v
    LEFT JOIN (FROM judged WHERE knob IS NULL) s USING (dbms, device, workload)
    LEFT JOIN tried USING (dbms, device, workload)
    LEFT JOIN device_profile USING (device)
    LEFT JOIN written USING (device)
    LEFT JOIN waiting_by_default(['read', 'write', 'fault', 'async']) USING (dbms, device, workload)
)

SELECT
    dbms, device, workload,
    verdict_of(obstacle, confined AND freed = 0 AND NOT coalesce(does_no_more, false) AND NOT is_seldom_waited) AS verdict,
    CASE WHEN verdict = 'mismatch' THEN gain END AS penalty,
    {
        busy_share: busy, waiting_share: possibly_waiting, surely_waiting: waiting, depth_one_share: depth_one, depth_one_low: depth_one_low, depth_one_high: depth_one_high,
        busy_depth: depth, hardware_queues: queues, top_queue_share: top_queue,
        queue_one_share: queue_one, saturating_depth: saturating_depth, does_no_more: does_no_more AND (single_file OR one_queue), fills_device: fills_device, used_share: getvariable('used_share'),
        confined_from: getvariable('busy_share'), sentinels: sentinels, threads: threads, reads_per_op: reads_per_op,
        confined: confined, configurations: configurations, knobs: knobs, freed: freed, freed_by: best,
        device_gain: device_gain, most_gain: gain, is_seldom_waited: is_seldom_waited, best_queue_depth: best_depth, mostly_writes: mostly_writes,
        obstacle: obstacle, watched: watched
    } AS evidence
FROM cases_judged
ORDER BY ALL

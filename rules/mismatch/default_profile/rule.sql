-- default_profile: the device is busy, and gives a small part of what it can, whatever the knobs are set to.
-- Source: ours. The PVLDB 2023 study (He et al.) compares settings of knobs, and cannot see what all of them share.
-- Needs: runs_behind, ok_runs, io_profile, run_depths, run_flushes, run_metrics and io_modes of the default
--        configuration, device_profile and device_curve, visibility, effects and cases (of waits). Table io_modes is
--        empty unless system calls were watched; it decides nothing, and says how many requests an asynchronous call
--        passes (MySQL 105982: one, where the interface takes many).
-- Mismatch: in the median run, the device is busy for least_waiting of the time or more, and less than enough_used of
--        its ability is used: reads and writes per second, or bytes per second, as shares of the best that fio reached
--        (reads and writes added). If waits were watched, clients must wait for it for as long. Where flushes take
--        held_share of the time that the device is busy (if waits were watched, that clients wait for it) or more, it is
--        held back by them, or by the units that writes fill in part (write_unit_us for their share of the writes),
--        whichever takes longer; else by depth, where it is below half of the depth at which the device saturates; else
--        by the kind of requests. One row per case, without a knob.
-- None: the device is busy, or waited for, for less than that, or enough_used of its ability is used.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of
--        unknown origin, or the device has no profile, or one without the rate of reads (or writes) that are more than a
--        twentieth of the requests; nobody knows how long the windows were, or how often it flushes and how long that
--        takes; the runs use more than most_used of the ability in the profile, which means that something else slowed
--        the device down while it was measured; no run of the default configuration has queue depths; depth holds the
--        device back, and nearly as many requests are in flight as there are client threads (waiting_clients of them),
--        whose operations read less than reads_at_once times each, so they never have more outstanding, or nobody knows
--        how many client threads there are; whether depth does is unknown; flushes do, and may each fill several units;
--        all processors of the machine are busy for busy_processors of the time or, without watched waits, for as long
--        as least_waiting leaves, or nobody knows how long, so no device would make it much faster (unless clients, no
--        more of them than processors, were watched waiting for the device for least_waiting of their time: none of
--        them waits for a processor meanwhile); where waits were not watched, CPU time leaves clients less than least_waiting of
--        their time to wait for the device, or is unknown; where they were, clients were seen to wait for it for less,
--        and may wait for it behind locks and threads that were not followed. CPU time is that of the block (its median
--        run) in which it is longest, so that no verdict rests on how slow the machine was in the others.
-- Penalty: none: one profile does not show what the DBMS would gain.
-- Cannot see: whether a faster device would make the DBMS faster; work that a device does on its own; how long requests
--        of a loop or modelled device wait for a processor of this machine, which does their work.
WITH ability AS (
    SELECT device,
        max(iops) FILTER (pattern IN ('randread', 'read')) AS read_iops,
        max(coalesce(bytes_per_s, iops * block_bytes)) FILTER (pattern IN ('randread', 'read')) AS read_bytes,
        max(iops) FILTER (pattern IN ('randwrite', 'write')) AS write_iops,
        max(coalesce(bytes_per_s, iops * block_bytes)) FILTER (pattern IN ('randwrite', 'write')) AS write_bytes
    FROM device_curve
    GROUP BY device
),

counted AS (
    SELECT b.dbms, b.device, b.workload, run_id, block_id, busy_share, run_depths.busy_depth,
        any_value(window_s) FILTER (op IS NOT NULL) AS seconds,  -- of a run without requests nothing was recorded
        coalesce(sum(requests) FILTER (op = 'read'), 0) / seconds AS reads,
        sum(bytes) FILTER (op = 'read') / seconds AS read_bytes,
        coalesce(sum(requests) FILTER (op = 'write'), 0) / seconds AS writes,
        sum(bytes) FILTER (op = 'write') / seconds AS write_bytes,
        sum(requests) FILTER (op = 'flush') / seconds AS flushes,  -- our monitor has a row also of none
        any_value(f.mean_us) AS flush_us,
        any_value(reads_per_op) AS reads_per_op,
        any_value(machine_cpu_share) AS processors,
        any_value(cpu_s / nullif(window_s * cpu_share, 0)) AS cores,
        any_value(cpu_s_per_op * run_metrics.throughput_ops) AS cpus,
        any_value(unaligned_write_share) AS partly
    FROM runs_behind b
    JOIN ok_runs USING (run_id)
    JOIN run_depths USING (run_id)
    LEFT JOIN run_flushes f USING (run_id)
    LEFT JOIN run_metrics USING (run_id)
    LEFT JOIN io_profile USING (run_id)
    WHERE side = 'default' AND b.knob IS NULL
    GROUP BY ALL
),

defaults AS (
    SELECT dbms, device, workload, count(*) AS runs,
        median(busy_share) AS busy, median(busy_depth) AS depth,
        median(reads) AS reads, median(read_bytes) AS read_bytes,
        median(writes) AS writes, median(write_bytes) AS write_bytes,
        median(flushes) AS flushes, median(flush_us) AS flush_us, median(partly) AS partly,
        median(reads_per_op) AS reads_per_op, median(cores) AS cores
    FROM counted
    GROUP BY ALL
),

computing AS (
    SELECT dbms, device, workload, max(processors) AS processors, max(cpus) AS cpus
    FROM (
        SELECT dbms, device, workload, block_id, median(processors) AS processors, median(cpus) AS cpus
        FROM counted
        GROUP BY ALL
    )
    GROUP BY ALL
),

called AS (
    SELECT b.dbms, b.device, b.workload,
        sum(calls) FILTER (mode IN ('libaio', 'io_uring')) AS asynchronous,
        asynchronous / nullif(sum(calls), 0) AS asynchronous_share,
        -- What a kernel thread takes over (polled) comes without a call.
        (asynchronous - coalesce(sum(polled), 0)) / nullif(sum(submits) FILTER (mode IN ('libaio', 'io_uring')), 0)
            AS requests_per_call
    FROM runs_behind b
    JOIN ok_runs USING (run_id)
    JOIN io_modes USING (run_id)
    WHERE side = 'default' AND b.knob IS NULL AND op IN ('read', 'write') AND mode <> 'mmap'
    GROUP BY ALL
),

judged AS (
    SELECT v.* EXCLUDE (obstacle), c.* EXCLUDE (dbms, device, workload), processors, cpus, asynchronous_share, requests_per_call,
        -- Where reads still rise at the end of what was tried, at least so many can be under way.
        coalesce(saturating_depth, best_queue_depth) AS full_depth,
        coalesce(c.flush_us, d.flush_p50_us, fsync_p50_us) AS us_per_flush,  -- as in these runs, if they tell
        -- Of hardly any requests nothing need be known; of others number and size, and what the device can do of either.
        CASE WHEN c.reads <= 0.05 * (c.reads + c.writes) THEN coalesce(greatest(c.reads / a.read_iops, c.read_bytes / a.read_bytes), 0)
             WHEN c.read_bytes IS NOT NULL THEN greatest(c.reads / a.read_iops, c.read_bytes / a.read_bytes) END AS reading,
        CASE WHEN c.writes <= 0.05 * (c.reads + c.writes) THEN coalesce(greatest(c.writes / a.write_iops, c.write_bytes / a.write_bytes), 0)
             WHEN c.write_bytes IS NOT NULL THEN greatest(c.writes / a.write_iops, c.write_bytes / a.write_bytes) END AS writing,
        reading + writing AS used,
        -- The median of their number may be that of another run than the median of their time.
        CASE WHEN flushes = 0 THEN 0
             WHEN flushes * us_per_flush IS NOT NULL THEN least(flushes * us_per_flush / 1e6, busy) END AS flushing,
        filling_of(
            us_per_flush, coalesce(flush_p50_us, fsync_p50_us), write_unit_us, partly, writes * partly / nullif(flushes, 0)
        ) AS filling_per_flush,
        filling_per_flush['least'] AS fill_us, filling_per_flush['most'] AS most_fill_us,
        -- The share of the clients' time in which they may wait for the device: as watched, and where that leaves it open
        -- no more than CPU time does.
        decides(
            waited.waiting, waited.waiting, waited.possibly_waiting - waited.waiting, getvariable('least_waiting')
        ) AS is_told,
        waited.waiting AS surely_waiting,
        least(waited.possibly_waiting, CASE WHEN NOT coalesce(is_told, false) THEN 1 - cpus / coalesce(serving, 1) END)
            AS waiting_share,
        coalesce(waited.possibly_waiting < getvariable('least_waiting'), false) AS is_seldom_waited,
        busy >= getvariable('least_waiting') AND used < getvariable('enough_used') AND NOT is_seldom_waited AS is_mismatch,
        CASE WHEN decides(
            flushed.waiting, flushed.waiting, flushed.possibly_waiting - flushed.waiting,
            getvariable('held_share') * surely_waiting
        ) THEN flushed.waiting END AS waiting_for_flushes,
        CASE
            WHEN coalesce(waiting_for_flushes / nullif(surely_waiting, 0), flushing / nullif(busy, 0)) >= getvariable('held_share')
                THEN CASE WHEN fill_us > us_per_flush / 2 THEN 'units' ELSE 'flush' END
            WHEN depth < full_depth / 2 THEN 'depth'
            ELSE 'requests'
        END AS held_by,
        CASE
            WHEN v.obstacle IS NOT NULL THEN v.obstacle
            WHEN busy IS NULL THEN 'no_depths'
            WHEN a.read_iops IS NULL AND a.write_iops IS NULL THEN 'no_profile'
            WHEN used IS NULL AND busy >= getvariable('least_waiting') AND NOT is_seldom_waited THEN 'no_rates'
            WHEN used > getvariable('most_used') THEN 'profile_too_low'
            WHEN is_mismatch AND coalesce(waiting_for_flushes, flushing) IS NULL THEN 'no_flushes'
            WHEN is_mismatch AND waiting_share IS NULL THEN 'no_cpu'
            WHEN is_mismatch AND NOT coalesce(is_told, false) AND surely_waiting < getvariable('least_waiting') THEN 'hidden'
            WHEN is_mismatch AND waiting_share < getvariable('least_waiting') THEN 'computing'
            -- Time in which processors compute disappears with no device. A client that waits for the device needs none
            -- of them, and gets one afterwards where there are as many as clients (a count that was divided is rounded).
            WHEN is_mismatch AND NOT coalesce(
                surely_waiting >= getvariable('least_waiting') AND threads <= round(cores), false
            ) AND coalesce(processors >= least(
                getvariable('busy_processors'), CASE WHEN NOT coalesce(is_told, false) THEN 1 - getvariable('least_waiting') END
            ), true) THEN 'processors'
            -- While it is busy, at least one is in flight: a single client is always covered.
            WHEN is_mismatch AND held_by = 'depth' AND depth >= getvariable('waiting_clients') * threads
                AND coalesce(reads_per_op, 0) < getvariable('reads_at_once') THEN 'few_clients'
            -- Nor are operations known of a watched command, and what each reads.
            WHEN is_mismatch AND held_by = 'depth' AND threads IS NULL THEN 'no_clients'
            WHEN is_mismatch AND held_by = 'flush' AND most_fill_us > us_per_flush / 2 THEN 'several_units'
            WHEN is_mismatch AND held_by = 'requests' AND full_depth + depth IS NULL THEN 'no_full_depth'
        END AS obstacle
    FROM visibility v
    LEFT JOIN defaults c USING (dbms, device, workload)
    LEFT JOIN computing USING (dbms, device, workload)
    LEFT JOIN called USING (dbms, device, workload)
    LEFT JOIN device_profile d USING (device)
    LEFT JOIN ability a USING (device)
    LEFT JOIN waiting_by_default(for_storage()) waited USING (dbms, device, workload)
    LEFT JOIN waiting_by_default(['flush']) flushed USING (dbms, device, workload)
)

SELECT
    dbms, device, workload,
    verdict_of(obstacle, is_mismatch) AS verdict,
    {
        busy_share: busy, busy_depth: depth, saturating_depth: full_depth, used_share: used,
        reading_share: reading, writing_share: writing, flushing_share: flushing, flush_us: us_per_flush, fill_us: fill_us,
        reads_per_s: reads, writes_per_s: writes, flushes_per_s: flushes,
        read_bytes_per_request: read_bytes / nullif(reads, 0), write_bytes_per_request: write_bytes / nullif(writes, 0),
        asynchronous_share: asynchronous_share, requests_per_call: requests_per_call,
        reads_per_op: reads_per_op, threads: threads, processors_share: processors, waiting_share: waiting_share, surely_waiting: surely_waiting, waits_watched: waiting_for_flushes IS NOT NULL, is_told: coalesce(is_told, false),
        waiting_for_flushes: waiting_for_flushes, is_seldom_waited: is_seldom_waited,
        held_by: CASE WHEN is_mismatch THEN held_by END, least_waiting: getvariable('least_waiting'),
        runs: runs, obstacle: obstacle, watched: watched
    } AS evidence
FROM judged
ORDER BY ALL

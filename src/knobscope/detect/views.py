"""Views and macros of a study's database, for mismatch rules and for people who query it."""

__all__ = ["MACROS", "VIEWS"]

#: Created in this order. Facts of the block layer come only from runs that BPF watched without losing events.
VIEWS: dict[str, str] = {
    "ok_runs": "SELECT * FROM runs WHERE status = 'ok'",
    # Where a device has no profile, its tier is the one its runs name, and it has no rank.
    "device_tiers": """
        SELECT device, coalesce(any_value(p.tier), any_value(r.tier)) AS tier, any_value(p.tier_rank) AS tier_rank
        FROM (SELECT DISTINCT device, tier FROM runs) r FULL JOIN device_profile p USING (device)
        GROUP BY device
    """,
    # Configurations that differ from the sentinel of their block in exactly one knob.
    "single_changes": """
        WITH sentinels AS (SELECT DISTINCT block_id, config_id AS sentinel_id FROM runs WHERE is_sentinel),
        pairs AS (
            SELECT DISTINCT config_id, sentinel_id
            FROM runs JOIN sentinels USING (block_id)
            WHERE phase = 'sweep' AND NOT is_sentinel
        )
        SELECT config_id, sentinel_id, any_value(v.knob) AS knob, any_value(v.value) AS value,
            any_value(b.value) AS baseline
        FROM pairs
        JOIN knob_values v USING (config_id)
        LEFT JOIN knob_values b ON b.config_id = sentinel_id AND b.knob = v.knob
        WHERE v.value IS DISTINCT FROM b.value
        GROUP BY config_id, sentinel_id
        HAVING count(*) = 1
    """,
    # All runs of the one-at-a-time round, of any status; knob, value and baseline are NULL for the sentinel.
    "sweep_runs": """
        WITH sentinels AS (SELECT DISTINCT block_id, config_id AS sentinel_id FROM runs WHERE is_sentinel)
        SELECT r.*, knob, value, baseline
        FROM runs r
        LEFT JOIN sentinels s USING (block_id)
        LEFT JOIN single_changes c ON c.config_id = r.config_id AND c.sentinel_id = s.sentinel_id
        WHERE phase = 'sweep' AND (is_sentinel OR knob IS NOT NULL)
    """,
    "watched_runs": "SELECT * FROM ok_runs WHERE monitor = 'bpf' AND coalesce(lost_events, 0) = 0",
    "run_depths": """
        SELECT run_id,
            coalesce(sum(time_ns::DOUBLE) FILTER (queue = -1 AND depth > 0), 0)
                / sum(time_ns::DOUBLE) FILTER (queue = -1) AS busy_share,
            coalesce(sum(time_ns::DOUBLE) FILTER (queue = -1 AND depth = 1), 0)
                / sum(time_ns::DOUBLE) FILTER (queue = -1 AND depth > 0) AS depth_one_share,
            sum(time_ns::DOUBLE * depth) FILTER (queue = -1)
                / sum(time_ns::DOUBLE) FILTER (queue = -1 AND depth > 0) AS busy_depth
        FROM queue_depth JOIN watched_runs USING (run_id)
        GROUP BY run_id
    """,
    # Load of the most loaded hardware queue, as a share of the load of all (load = requests in flight x time).
    "run_queues": """
        WITH loads AS (
            SELECT run_id, queue, sum(time_ns::DOUBLE * depth) AS load
            FROM queue_depth JOIN watched_runs USING (run_id)
            WHERE queue >= 0
            GROUP BY run_id, queue
        )
        SELECT run_id, count(*) AS queues, max(load) / nullif(sum(load), 0) AS top_queue_share
        FROM loads
        GROUP BY run_id
    """,
    # One row per ok run; an operation that BPF did not see at all was not issued. Shares of nothing are NULL.
    "run_metrics": """
        WITH requests AS (
            SELECT w.run_id,
                coalesce(sum(p.requests) FILTER (op = 'write'), 0)::DOUBLE AS writes,
                coalesce(sum(p.bytes) FILTER (op = 'write'), 0)::DOUBLE AS write_bytes,
                coalesce(sum(p.requests) FILTER (op = 'flush'), 0)::DOUBLE AS flushes,
                (sum(p.requests - p.aligned_requests) FILTER (op = 'write'))::DOUBLE AS unaligned,
                any_value(p.sequential_requests / p.requests) FILTER (op = 'write' AND p.requests > 0) AS write_run,
                any_value(p.sequential_requests / p.requests) FILTER (op = 'read' AND p.requests > 0) AS read_run
            FROM watched_runs w LEFT JOIN io_profile p USING (run_id)
            GROUP BY w.run_id
        ), judged AS (
            SELECT *, CASE WHEN writes = 0 THEN 0 ELSE unaligned END AS unaligned_writes FROM requests
        )
        SELECT r.run_id, throughput_ops, latency_p95_us, latency_p99_us,
            cpu_s / nullif(operations, 0) AS cpu_s_per_op,
            writes / nullif(operations, 0) AS writes_per_op,
            write_bytes / nullif(operations, 0) AS write_bytes_per_op,
            flushes / nullif(operations, 0) AS flushes_per_op,
            unaligned_writes / nullif(writes, 0) AS unaligned_write_share,
            unaligned_writes / nullif(operations, 0) AS unaligned_writes_per_op,
            write_run AS write_sequential_share,
            read_run AS read_sequential_share,
            busy_depth
        FROM ok_runs r LEFT JOIN judged USING (run_id) LEFT JOIN run_depths USING (run_id)
    """,
    "sweep_metrics": """
        SELECT s.run_id, s.block_id, s.session, s.position, s.is_sentinel, s.dbms, s.device, s.workload,
            s.knob, s.value, s.baseline, m.* EXCLUDE (run_id)
        FROM sweep_runs s LEFT JOIN run_metrics m USING (run_id)
    """,
    # Requests by file, of runs whose events were not lost; `judged` are those whose order is known.
    "run_files": """
        SELECT f.* EXCLUDE (device, inode), requests - coalesce(address_requests, 0) AS judged,
            group_of_files(file, role, table_name) AS file_group
        FROM files f JOIN watched_runs USING (run_id)
    """,
    # Trials in the order of each tuner, against the default configuration of the same block; best so far, from 1 on.
    "tuning": """
        WITH defaults AS (
            SELECT block_id, exp(avg(ln(throughput_ops))) AS default_ops
            FROM ok_runs WHERE phase = 'tune' AND is_sentinel GROUP BY block_id
        ), judged AS (
            SELECT t.*, r.status, r.throughput_ops,
                CASE WHEN r.status = 'ok' THEN r.throughput_ops / default_ops END AS ratio
            FROM trials t JOIN runs r USING (run_id) LEFT JOIN defaults USING (block_id)
        )
        SELECT *, greatest(1, coalesce(max(ratio) OVER (
            PARTITION BY dbms, device, workload, space, seed ORDER BY trial), 1)) AS best_ratio
        FROM judged
    """,
    # What the block layer can tell of a case: `obstacle` says why nothing, `caveat` what is missing; else NULL.
    "visibility": """
        WITH counted AS (
            SELECT c.*, count(r.run_id) AS runs,
                count(*) FILTER (monitor = 'bpf') AS bpf_runs,
                count(*) FILTER (monitor = 'bpf' AND lost_events > 0) AS lossy_runs,
                coalesce(median(unattributed_share) FILTER (monitor = 'bpf'), 0) AS unattributed
            FROM cases c LEFT JOIN (SELECT * FROM ok_runs WHERE phase = 'sweep') r USING (dbms, device, workload)
            GROUP BY ALL
        )
        SELECT *,
            CASE
                WHEN runs = 0 THEN 'no run of the one-at-a-time round succeeded'
                WHEN bpf_runs = 0 THEN 'the block layer was not watched (the monitor was not bpf)'
                WHEN lossy_runs = bpf_runs THEN 'the monitor lost events in every run'
                WHEN NOT dedicated AND unattributed > 0.5 THEN
                    as_percent(unattributed) || ' of the I/O on this shared device could not be attributed'
            END AS obstacle,
            nullif(concat_ws('; ',
                CASE WHEN lossy_runs > 0 THEN
                    format('{} of {} runs lost events and are left out', lossy_runs, bpf_runs) END,
                CASE WHEN bpf_runs < runs THEN
                    format('{} of {} runs were not watched by bpf', runs - bpf_runs, runs) END,
                CASE WHEN NOT dedicated AND unattributed > 0.05 THEN
                    as_percent(unattributed) || ' of the I/O could not be attributed' END
            ), '') AS caveat
        FROM counted
    """,
}

#: Wording and thresholds that rules share. Estimates are natural-log ratios unless the name says share.
MACROS: dict[str, str] = {
    "as_percent(x)": """
        CASE WHEN abs(x) >= 0.00995 OR x = 0 THEN format('{:,.0f} %', round(100 * x) + 0.0)
             ELSE format('{:.1f} %', round(100 * x, 1) + 0.0) END
    """,
    "is_significant(estimate, q)": """
        q <= getvariable('fdr') AND abs(exp(estimate) - 1) >= getvariable('min_effect')
    """,
    "is_significant_share(estimate, q)": """
        q <= getvariable('fdr') AND abs(estimate) >= getvariable('min_effect')
    """,
    # A table by its name, logs and temporary files (whose names change from run to run) together, other files apart.
    "group_of_files(file, role, table_name)": """
        CASE WHEN table_name IS NOT NULL THEN table_name
             WHEN role IN ('log', 'temp') THEN role || ' files' ELSE file END
    """,
    # The definition of the probes: a share of 0.8 or more gives its name, fewer than ten requests tell nothing.
    "pattern_of(requests, sequential, strided)": """
        CASE WHEN requests < 10 THEN 'few' WHEN sequential >= 0.8 THEN 'sequential' WHEN strided >= 0.8 THEN 'strided'
             WHEN 1 - sequential - strided >= 0.8 THEN 'random' ELSE 'mixed' END
    """,
    "is_large(estimate)": "abs(estimate) >= ln(1.5)",  # percents of more than that mislead
    "as_fold(estimate)": """
        CASE WHEN estimate >= ln(10) THEN format('{:.0f}x', exp(estimate))
             WHEN estimate >= 0 THEN format('{:.1f}x', exp(estimate))
             ELSE format('{:.2f}x', exp(estimate)) END
    """,
    "faster_or_slower(estimate)": """
        CASE WHEN is_large(estimate) THEN as_fold(estimate) || ' as fast'
             WHEN estimate >= 0 THEN as_percent(exp(estimate) - 1) || ' faster'
             ELSE as_percent(1 - exp(estimate)) || ' slower' END
    """,
    "interval_in_words(estimate, low, high)": """
        CASE WHEN is_large(estimate)
             THEN format('(95 % interval {} to {})', as_fold(low), as_fold(high))
             WHEN estimate >= 0
             THEN format('(95 % interval {} to {})', as_percent(exp(low) - 1), as_percent(exp(high) - 1))
             ELSE format('(95 % interval {} to {})', as_percent(1 - exp(high)), as_percent(1 - exp(low))) END
    """,
    "with_unit(value, unit)": """
        CASE WHEN unit IS NULL OR try_cast(value AS DOUBLE) IS NULL THEN value
             WHEN regexp_matches(unit, '^[0-9]') THEN value || ' x ' || unit
             ELSE value || ' ' || unit END
    """,
    "change_in_words(knob, baseline, value, unit, step)": """
        CASE WHEN step IS NULL OR try_cast(value AS DOUBLE) IS NULL THEN 'Changing '
             WHEN step > 0 THEN 'Raising ' ELSE 'Lowering ' END
        || knob || coalesce(' from ' || baseline, '') || ' to ' || with_unit(value, unit)
    """,
    "effect_in_words(workload, device, estimate, low, high)": """
        format('makes {} on {} {} {}', workload, device, faster_or_slower(estimate),
               interval_in_words(estimate, low, high))
    """,
    # Names as a person lists them, the first few of many.
    "in_words(names)": """
        CASE WHEN len(names) = 1 THEN names[1]
             WHEN len(names) <= 4 THEN array_to_string(names[:-2], ', ') || ' and ' || names[-1]
             ELSE array_to_string(names[:3], ', ') || format(' and {} more', len(names) - 3) END
    """,
    "too_little(runs, blocks)": """
        CASE WHEN runs = 0 THEN 'it has no comparable run'
             WHEN blocks < 2 THEN 'it was compared in one block only, and two are the least'
             ELSE 'there are too few runs to tell an effect from noise' END
    """,
}

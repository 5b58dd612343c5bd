"""Views of a study's database, for mismatch rules and for people who query it.

A study's file holds the rows of most views as tables, calculated once: each rule, section of the report and query would
else go through all views below the one that it names. `OPEN_VIEWS` stay views: they show rows of `runs` as they are.
"""

from knobscope.tables.sides import SIDE_VIEWS
from knobscope.text.budgets import WAIT_METRICS, reasons_of_probe
from knobscope.thread_classes import SESSION

#: Time of client-serving threads per operation of a run, by reason.
_WAITS_PER_OPERATION = ", ".join(
    f"sum(time_us) FILTER (list_contains({list(reasons_of_probe(reason))}, reason)) AS {metric}"
    for reason, metric in WAIT_METRICS.items()
)

#: Of what was measured; created in this order. Facts of the block layer come only from runs that BPF watched without
#: losing events.
RUN_VIEWS: dict[str, str] = {
    "ok_runs": "SELECT * FROM runs WHERE status = 'ok'",
    # Where a device has no profile, its tier is the one its runs name, and it has no rank.
    "device_tiers": """
        SELECT device, coalesce(any_value(p.tier), any_value(r.tier)) AS tier, any_value(p.tier_rank) AS tier_rank
        FROM (SELECT DISTINCT device, tier FROM runs) r FULL JOIN device_profile p USING (device)
        GROUP BY device
    """,
    # What configurations of the sweep change in the sentinel of their block, a row per knob.
    "swept_changes": """
        WITH sentinels AS (SELECT DISTINCT block_id, config_id AS sentinel_id FROM runs WHERE is_sentinel),
        swept AS (
            SELECT DISTINCT dbms, device, workload, config_id, sentinel_id
            FROM runs JOIN sentinels USING (block_id)
            WHERE phase = 'sweep' AND NOT is_sentinel
        )
        SELECT s.*, v.knob, v.value, b.value AS baseline
        FROM swept s
        JOIN (SELECT DISTINCT config_id, knob, value FROM knob_values) v USING (config_id)
        LEFT JOIN (SELECT DISTINCT config_id, knob, value FROM knob_values) b
            ON b.config_id = sentinel_id AND b.knob = v.knob
        WHERE v.value IS DISTINCT FROM b.value
    """,
    # Configurations that change two knobs, where each change was swept alone, too.
    "knob_pairs": """
        WITH configurations AS (
            SELECT dbms, device, workload, config_id, sentinel_id,
                list({knob: knob, value: value} ORDER BY knob) AS changed
            FROM swept_changes GROUP BY ALL
        )
        SELECT c.dbms, c.device, c.workload, c.config_id, one.config_id AS one_id, other.config_id AS other_id,
            c.changed[1].knob AS knob, c.changed[1].value AS value,
            c.changed[2].knob AS other, c.changed[2].value AS other_value
        FROM configurations c
        JOIN configurations one
            ON (one.dbms, one.device, one.workload, one.sentinel_id)
                = (c.dbms, c.device, c.workload, c.sentinel_id)
            AND one.changed = [c.changed[1]]
        JOIN configurations other
            ON (other.dbms, other.device, other.workload, other.sentinel_id)
                = (c.dbms, c.device, c.workload, c.sentinel_id)
            AND other.changed = [c.changed[2]]
        WHERE len(c.changed) = 2
    """,
    # Configurations that differ in exactly one knob from what they are compared with (`reference_id`): the sentinel of
    # their block or, where they change more knobs (`beside`), another configuration of the sweep in which that knob has
    # its default. A value of a knob is compared once in a case: with the sentinel, if that was measured.
    "single_changes": """
        WITH configurations AS (
            SELECT dbms, device, workload, config_id, sentinel_id,
                list({knob: knob, value: value} ORDER BY knob) AS changed
            FROM swept_changes GROUP BY ALL
        ), others AS (
            SELECT c.*, [one FOR one IN changed IF one.knob <> c.knob] AS rest
            FROM swept_changes c JOIN configurations USING (dbms, device, workload, config_id, sentinel_id)
        )
        SELECT o.* EXCLUDE (rest),
            coalesce(r.config_id, o.sentinel_id) AS reference_id,
            CASE WHEN len(rest) > 0 THEN to_json(map_from_entries(rest))::VARCHAR END AS beside
        FROM others o
        LEFT JOIN configurations r
            ON (r.dbms, r.device, r.workload, r.sentinel_id) = (o.dbms, o.device, o.workload, o.sentinel_id)
            AND r.changed = rest
        WHERE len(rest) = 0 OR r.config_id IS NOT NULL
        QUALIFY row_number() OVER (
            PARTITION BY o.dbms, o.device, o.workload, o.sentinel_id, knob, value ORDER BY len(rest), o.config_id
        ) = 1
    """,
    # All runs of the one-at-a-time round, of any status; knob, value and baseline are NULL for the sentinel, for pairs,
    # and for what is there only to be compared with.
    "sweep_runs": """
        WITH sentinels AS (SELECT DISTINCT block_id, config_id AS sentinel_id FROM runs WHERE is_sentinel)
        SELECT r.*, knob, value, baseline, reference_id, beside
        FROM runs r
        LEFT JOIN sentinels s USING (block_id)
        LEFT JOIN single_changes c
            ON (c.dbms, c.device, c.workload, c.config_id, c.sentinel_id)
                = (r.dbms, r.device, r.workload, r.config_id, s.sentinel_id)
        WHERE phase = 'sweep' AND (
            is_sentinel OR knob IS NOT NULL OR r.config_id IN (SELECT reference_id FROM single_changes)
            OR r.config_id IN (SELECT config_id FROM knob_pairs)
        )
    """,
    "watched_runs": """
        SELECT * FROM runs WHERE status = 'ok' AND monitor = 'bpf' AND coalesce(lost_events, 0) = 0
    """,
    # A load generator that a spec describes is watched from its start to its end, so for longer than it measures. What
    # was asked of the device meanwhile is counted to the window, as in all rates.
    "run_depths": """
        SELECT run_id,
            least(
                coalesce(sum(time_ns::DOUBLE) FILTER (depth > 0), 0)
                    / least(sum(time_ns::DOUBLE), 1e9 * nullif(any_value(window_s), 0)),
                1
            ) AS busy_share,
            coalesce(sum(time_ns::DOUBLE) FILTER (depth = 1), 0) / sum(time_ns::DOUBLE) FILTER (depth > 0)
                AS depth_one_share,
            sum(time_ns::DOUBLE * depth) / sum(time_ns::DOUBLE) FILTER (depth > 0) AS busy_depth
        FROM queue_depth JOIN watched_runs USING (run_id)
        WHERE queue = -1
        GROUP BY run_id
    """,
    # How long flushes took on average, from issue to completion; none for a run without any.
    "run_flushes": """
        SELECT run_id, sum(requests)::DOUBLE AS flushes,
            sum(requests * (low_us + high_us) / 2) / sum(requests) AS mean_us
        FROM io_latency JOIN watched_runs USING (run_id)
        WHERE op = 'flush' AND requests > 0
        GROUP BY run_id
    """,
    # How long reads took on average, from issue to completion; none for a run without any.
    "run_reads": """
        SELECT run_id, sum(requests * (low_us + high_us) / 2) / sum(requests) AS mean_us
        FROM io_latency JOIN watched_runs USING (run_id)
        WHERE op = 'read' AND requests > 0
        GROUP BY run_id
    """,
    # Load of the most loaded hardware queue, as a share of the load of all (load = requests in flight x time); and the
    # share of the queues' busy time, all taken together, in which a queue has one request in flight.
    "run_queues": """
        WITH loads AS (
            SELECT run_id, queue, sum(time_ns::DOUBLE * depth) AS load,
                coalesce(sum(time_ns::DOUBLE) FILTER (depth = 1), 0) AS one_ns,
                coalesce(sum(time_ns::DOUBLE) FILTER (depth > 0), 0) AS busy_ns
            FROM queue_depth JOIN watched_runs USING (run_id)
            WHERE queue >= 0
            GROUP BY run_id, queue
        )
        SELECT run_id, count(*) AS queues, max(load) / nullif(sum(load), 0) AS top_queue_share,
            sum(one_ns) / nullif(sum(busy_ns), 0) AS queue_one_share
        FROM loads
        GROUP BY run_id
    """,
    # Where the time of client-serving threads went; no row for a run whose waits were not watched, or that has none.
    "run_waits": f"""
        WITH sums AS (
            SELECT run_id, {_WAITS_PER_OPERATION} FROM waits WHERE thread_class = '{SESSION}' GROUP BY run_id
        )
        SELECT run_id, coalesce(COLUMNS(* EXCLUDE (run_id, counted)), 0) / nullif(counted, 0)
        FROM sums JOIN (
            SELECT run_id, waited_operations(throughput_ops, waits_s, operations) AS counted FROM ok_runs
        ) USING (run_id)
    """,  # noqa: S608 - own names
    # One row per ok run; writes that BPF did not see at all were not issued. Shares of few requests are NULL, as are
    # flushes where no row has any: our monitor writes one also for none, a table of others may not know.
    # What clients waited for reads, in microseconds per operation of all clients together: at least their latencies, of
    # which no more run at a time than there are clients; at most all clients, while the device was busy with reads.
    "run_metrics": """
        WITH requests AS (
            SELECT w.run_id,
                coalesce(sum(p.requests) FILTER (op = 'read'), 0)::DOUBLE AS reads,
                coalesce(sum(p.bytes) FILTER (op = 'read'), 0)::DOUBLE AS read_bytes,
                coalesce(sum(p.requests) FILTER (op = 'write'), 0)::DOUBLE AS writes,
                coalesce(sum(p.bytes) FILTER (op = 'write'), 0)::DOUBLE AS write_bytes,
                (sum(p.requests) FILTER (op = 'flush'))::DOUBLE AS flushes,
                (sum(p.requests - p.aligned_requests) FILTER (op = 'write'))::DOUBLE AS unaligned,
                any_value(share_of(p.sequential_requests, p.requests)) FILTER (op = 'write') AS write_run,
                any_value(share_of(p.sequential_requests, p.requests)) FILTER (op = 'read') AS read_run
            FROM watched_runs w LEFT JOIN io_profile p USING (run_id)
            GROUP BY w.run_id
        ), judged AS (
            SELECT *, CASE WHEN writes = 0 THEN 0 ELSE unaligned END AS unaligned_writes FROM requests
        )
        SELECT r.run_id, throughput_ops, latency_p95_us, latency_p99_us,
            latency_p95_us AS latency_p95_rank, latency_p99_us AS latency_p99_rank, recovery_s, lost_s,
            cpu_s / nullif(operations, 0) AS cpu_s_per_op,
            reads / nullif(operations, 0) AS reads_per_op,
            read_bytes / nullif(operations, 0) AS read_bytes_per_op,
            CASE WHEN reads = 0 THEN 0
                 WHEN threads IS NOT NULL AND busy_depth IS NOT NULL
                 THEN reads / nullif(operations, 0) * run_reads.mean_us * least(threads / busy_depth, 1)
            END AS read_us_per_op,
            CASE WHEN reads = 0 THEN 0
                 ELSE reads / nullif(operations, 0) * run_reads.mean_us * threads / busy_depth
            END AS read_busy_us_per_op,
            writes / nullif(operations, 0) AS writes_per_op,
            write_bytes / nullif(operations, 0) AS write_bytes_per_op,
            flushes / nullif(operations, 0) AS flushes_per_op,
            share_of(unaligned_writes, writes) AS unaligned_write_share,
            unaligned_writes / nullif(operations, 0) AS unaligned_writes_per_op,
            write_run AS write_sequential_share,
            read_run AS read_sequential_share,
            busy_depth,
            w.* EXCLUDE (run_id)
        FROM ok_runs r
        LEFT JOIN judged USING (run_id)
        LEFT JOIN run_depths USING (run_id)
        LEFT JOIN run_reads USING (run_id)
        LEFT JOIN run_waits w USING (run_id)
        LEFT JOIN (SELECT dbms, device, workload, serving AS threads FROM serving_threads())
            USING (dbms, device, workload)
    """,
    "sweep_metrics": """
        SELECT s.run_id, s.block_id, s.session, s.position, s.is_sentinel, s.dbms, s.device, s.workload,
            s.config_id, s.knob, s.value, s.baseline, s.reference_id, s.beside, m.* EXCLUDE (run_id)
        FROM sweep_runs s LEFT JOIN run_metrics m USING (run_id)
    """,
    # Requests by file, of runs whose events were not lost; `judged` are those whose order is known.
    "run_files": """
        SELECT f.* EXCLUDE (device, inode), requests - coalesce(address_requests, 0) AS judged,
            group_of_files(file, role, table_name) AS file_group
        FROM files f JOIN watched_runs USING (run_id)
    """,
    # Trials in the order of each tuner, against the default configuration of the same session of a block; best
    # so far, from 1 on.
    "tuning": """
        WITH defaults AS (
            SELECT block_id, session, exp(avg(ln(throughput_ops))) AS default_ops
            FROM ok_runs WHERE phase = 'tune' AND is_sentinel GROUP BY ALL
        ), judged AS (
            SELECT t.*, r.status, r.throughput_ops,
                CASE WHEN r.status = 'ok' THEN r.throughput_ops / default_ops END AS ratio
            FROM trials t JOIN runs r USING (run_id)
            LEFT JOIN defaults d ON d.block_id = r.block_id AND d.session IS NOT DISTINCT FROM r.session
        )
        SELECT *, greatest(1, coalesce(max(ratio) OVER (
            PARTITION BY dbms, device, workload, space, seed ORDER BY trial), 1)) AS best_ratio
        FROM judged
    """,
    # What the block layer can tell of a case. `obstacle`: a code for why nothing can be concluded from it, else NULL;
    # `watched`: how many runs there are, were watched, lost events, whether waits were watched, also of threads
    # that serve clients (`sessions`), and which share of a shared device's I/O is of unknown origin (NULL where that is
    # too little to be mentioned).
    "visibility": """
        WITH counted AS (
            SELECT c.*, count(r.run_id) AS runs,
                count(*) FILTER (monitor = 'bpf') AS bpf_runs, count(waits_s) AS waits_runs,
                count(*) FILTER (r.run_id IN (SELECT run_id FROM run_waits)) AS session_runs,
                count(*) FILTER (monitor = 'bpf' AND lost_events > 0) AS lossy_runs,
                coalesce(median(unattributed_share) FILTER (monitor = 'bpf'), 0) AS unattributed
            FROM cases c LEFT JOIN (SELECT * FROM ok_runs WHERE phase = 'sweep') r USING (dbms, device, workload)
            GROUP BY ALL
        )
        SELECT * EXCLUDE (runs, bpf_runs, waits_runs, session_runs, lossy_runs, unattributed),
            CASE
                WHEN runs = 0 THEN 'no_sweep'
                WHEN bpf_runs = 0 THEN 'not_watched'
                WHEN lossy_runs = bpf_runs THEN 'all_lossy'
                WHEN NOT dedicated AND unattributed > most_unattributed() THEN 'foreign'
            END AS obstacle,
            {
                runs: runs, bpf: bpf_runs, lossy: lossy_runs, waits: waits_runs > 0, sessions: session_runs > 0,
                foreign_share: CASE WHEN NOT dedicated AND unattributed > told_unattributed() THEN unattributed END
            } AS watched
        FROM counted JOIN serving_threads() USING (dbms, device, workload)
    """,
}

#: Those that ask table `blocks`, too, which comes with the effects.
BLOCK_VIEWS: dict[str, str] = {
    # Sessions on another level than most of their case; none where nobody can say which level is the usual one.
    "unusual_groups": """
        SELECT block_id, session FROM blocks b
        WHERE other_level AND EXISTS (
            FROM blocks o
            WHERE (o.dbms, o.device, o.workload) = (b.dbms, b.device, b.workload)
                AND NOT o.other_level AND o.level IS NOT NULL
        )
    """,
    # The runs behind a finding, successful ones of the sweep: those with the value of a knob (side `value`) and those
    # of what it is compared with in the same blocks (side `default`: the knob has its default there). A finding without
    # a knob is about all runs of the default configuration, but for those of sessions on another level. What is left
    # out of the effects is left out here, too.
    "runs_behind": """
        WITH compared AS (
            SELECT r.*, coalesce(monitor = 'bpf' AND coalesce(lost_events, 0) = 0, false) AS watched
            FROM sweep_runs r
            WHERE status = 'ok' AND NOT EXISTS (FROM set_aside_runs s WHERE s.run_id = r.run_id)
        ), changed AS (
            SELECT DISTINCT dbms, device, workload, knob, value, reference_id, block_id, session
            FROM compared WHERE knob IS NOT NULL
        ), measured AS (
            SELECT DISTINCT run_id, block_id, session, config_id, watched FROM compared
        )
        SELECT dbms, device, workload, knob, value, 'value' AS side, run_id, watched
        FROM compared WHERE knob IS NOT NULL
        UNION ALL
        SELECT c.dbms, c.device, c.workload, c.knob, c.value, 'default', r.run_id, r.watched
        FROM changed c
        JOIN measured r
            ON r.block_id = c.block_id AND r.session IS NOT DISTINCT FROM c.session AND r.config_id = c.reference_id
        UNION ALL
        SELECT dbms, device, workload, NULL, NULL, 'default', run_id, watched FROM compared c
        WHERE is_sentinel AND NOT EXISTS (
            FROM unusual_groups u WHERE u.block_id = c.block_id AND u.session IS NOT DISTINCT FROM c.session
        )
    """,
    # Of the runs with a value, and of those that it is compared with: how long a flush took on average, and which
    # share of the writes filled units of the device in part, and how many for each flush.
    "flushes_behind": """
        WITH sides AS (
            SELECT b.dbms, b.device, b.workload, b.knob, b.value, side,
                sum(flushes * mean_us) / nullif(sum(flushes), 0) AS flush_us,
                avg(unaligned_write_share) AS partly,
                avg(unaligned_writes_per_op) / nullif(avg(flushes_per_op), 0) AS partly_writes
            FROM runs_behind b JOIN run_metrics USING (run_id) LEFT JOIN run_flushes USING (run_id)
            WHERE b.knob IS NOT NULL
            GROUP BY ALL
        )
        SELECT dbms, device, workload, knob, value,
            any_value(flush_us) FILTER (side = 'value') AS value_us,
            any_value(flush_us) FILTER (side = 'default') AS reference_us,
            any_value(partly) FILTER (side = 'value') AS value_partly,
            any_value(partly) FILTER (side = 'default') AS reference_partly,
            any_value(partly_writes) FILTER (side = 'value') AS value_partly_writes,
            any_value(partly_writes) FILTER (side = 'default') AS reference_partly_writes
        FROM sides
        GROUP BY ALL
    """,
    # What the device did in each second of the same runs: for which share of the time it was busy, and how many writes
    # somebody waited for (NULL: not known), and bytes read in order: read-ahead makes few large requests of a scan.
    "device_behind": """
        WITH counted AS (
            SELECT run_id, sum(sync) FILTER (op = 'write') / any_value(window_s) AS waited,
                -- Earlier versions counted the requests alone.
                sum(coalesce(sequential_bytes, coalesce(sequential_share, sequential_requests / nullif(requests, 0))
                    * bytes)) FILTER (op = 'read') / any_value(window_s) AS in_order
            FROM io_profile JOIN watched_runs USING (run_id) GROUP BY run_id
        ), sides AS (
            SELECT b.dbms, b.device, b.workload, b.knob, b.value, side,
                median(busy_share) AS busy, avg(waited) AS waited, avg(in_order) AS in_order
            FROM runs_behind b LEFT JOIN counted USING (run_id) LEFT JOIN run_depths USING (run_id)
            WHERE b.knob IS NOT NULL
            GROUP BY ALL
        )
        SELECT dbms, device, workload, knob, value,
            any_value(busy) FILTER (side = 'value') AS value_busy,
            any_value(busy) FILTER (side = 'default') AS reference_busy,
            any_value(waited) FILTER (side = 'value') AS value_waited_writes,
            any_value(waited) FILTER (side = 'default') AS reference_waited_writes,
            any_value(in_order) FILTER (side = 'value') AS value_reads_in_order,
            any_value(in_order) FILTER (side = 'default') AS reference_reads_in_order
        FROM sides
        GROUP BY ALL
    """,
    **SIDE_VIEWS,
}

VIEWS = {**RUN_VIEWS, **BLOCK_VIEWS}
OPEN_VIEWS = frozenset({"ok_runs", "watched_runs", "sweep_runs"})

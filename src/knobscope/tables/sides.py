"""Views of both sides of a finding, next to each other: runs with the value, and those it is compared with."""

#: Each has a row per case, knob and value; columns `value_...` and `reference_...` are those of the two sides.
SIDE_VIEWS: dict[str, str] = {
    # How many reads there were, how long one took and how large it was on average, and for which share of the time the
    # device was busy.
    "reads_behind": """
        WITH sides AS (
            SELECT b.dbms, b.device, b.workload, b.knob, b.value, side,
                sum(p.requests) AS reads, sum(p.bytes) / nullif(sum(p.requests), 0) AS bytes,
                sum(p.requests * mean_us) / nullif(sum(p.requests) FILTER (mean_us IS NOT NULL), 0) AS read_us,
                median(busy_share) AS busy
            FROM runs_behind b
            JOIN io_profile p ON p.run_id = b.run_id AND p.op = 'read'
            LEFT JOIN run_reads ON run_reads.run_id = b.run_id
            LEFT JOIN run_depths ON run_depths.run_id = b.run_id
            WHERE b.knob IS NOT NULL AND b.watched
            GROUP BY ALL
        )
        SELECT dbms, device, workload, knob, value, sum(reads) AS reads,
            any_value(bytes) FILTER (side = 'value') AS value_bytes,
            any_value(bytes) FILTER (side = 'default') AS reference_bytes,
            any_value(read_us) FILTER (side = 'value') AS value_us,
            any_value(read_us) FILTER (side = 'default') AS reference_us,
            any_value(busy) FILTER (side = 'value') AS value_busy,
            any_value(busy) FILTER (side = 'default') AS reference_busy
        FROM sides
        GROUP BY ALL
    """,
    # How much longer the 95th and the 99th percentile of latency are with a value, from pairs of runs of one session:
    # median of the logarithms of their ratios (Hodges and Lehmann's estimate), and its 95 % interval by ranks
    # (Wilcoxon's test within sessions); no interval where the runs are so few that chance alone may put all ratios on
    # one side in more than one of twenty cases. A stalled run moves none of them, nor the medians of the sides, by more
    # than its place in the order.
    "tails_behind": """
        WITH runs_of AS (
            SELECT b.dbms, b.device, b.workload, b.knob, b.value, side, r.block_id, r.session,
                unnest(['latency_p95_rank', 'latency_p99_rank']) AS metric, unnest([95, 99]) AS percentile,
                unnest([latency_p95_us, latency_p99_us]) AS us
            FROM runs_behind b JOIN ok_runs r USING (run_id)
            WHERE b.knob IS NOT NULL
        ), sessions AS (
            SELECT dbms, device, workload, knob, value, metric, percentile, block_id, session,
                list(ln(us)) FILTER (side = 'value') AS changed,
                list(ln(us)) FILTER (side = 'default') AS unchanged
            FROM runs_of WHERE us > 0
            GROUP BY ALL HAVING changed IS NOT NULL AND unchanged IS NOT NULL
        ), pairs AS (
            SELECT dbms, device, workload, knob, value, metric, percentile,
                list_sort(flatten(list([[c - u FOR u IN unchanged] FOR c IN changed].flatten()))) AS ratios,
                sum(len(changed) * len(unchanged) * (len(changed) + len(unchanged) + 1) / 12) AS variance,
                2 * exp(sum(
                    lgamma(len(changed) + 1) + lgamma(len(unchanged) + 1) - lgamma(len(changed) + len(unchanged) + 1)
                )) AS least_p,
                exp(list_median(flatten(list(changed)))) AS value_us,
                exp(list_median(flatten(list(unchanged)))) AS reference_us
            FROM sessions
            GROUP BY ALL
        )
        SELECT * EXCLUDE (ratios, variance, least_p), list_median(ratios) AS estimate,
            greatest(0, floor(len(ratios) / 2 - 1.96 * sqrt(variance)))::BIGINT AS beyond,
            CASE WHEN least_p <= 0.05 THEN ratios[beyond + 1] END AS low,
            CASE WHEN least_p <= 0.05 THEN ratios[len(ratios) - beyond] END AS high
        FROM pairs
    """,
    # Within which time 99 % of the requests of a kind ended, with a value and with what it is compared with.
    "slow_requests_behind": """
        WITH buckets AS (
            SELECT b.dbms, b.device, b.workload, b.knob, b.value, side, op, high_us, sum(requests) AS requests
            FROM runs_behind b JOIN io_latency USING (run_id)
            WHERE b.knob IS NOT NULL AND b.watched AND op IN ('read', 'write', 'flush')
            GROUP BY ALL
        ), counted AS (
            SELECT *, sum(requests) OVER kind AS all_requests, sum(requests) OVER (kind ORDER BY high_us) AS up_to
            FROM buckets WINDOW kind AS (PARTITION BY dbms, device, workload, knob, value, side, op)
        )
        SELECT dbms, device, workload, knob, value, op,
            min(high_us) FILTER (side = 'value' AND up_to >= 0.99 * all_requests) AS value_us,
            min(high_us) FILTER (side = 'default' AND up_to >= 0.99 * all_requests) AS reference_us
        FROM counted
        WHERE all_requests >= least_requests()
        GROUP BY ALL
    """,
    # How many times as much was written and flushed per second in the slowest tenth of a run's intervals, by their 99th
    # percentile of latency, as in the others; runs of fewer than twenty intervals say nothing.
    "slow_moments_behind": """
        WITH compared AS (
            SELECT dbms, device, workload, knob, value, side, run_id FROM runs_behind WHERE knob IS NOT NULL AND watched
        ), moments AS (
            SELECT run_id, t_s, t_s - coalesce(lag(t_s) OVER run, 0) AS seconds,
                ntile(10) OVER (PARTITION BY run_id ORDER BY latency_p99_us DESC) = 1 AS is_slow
            FROM intervals
            WHERE latency_p99_us IS NOT NULL AND run_id IN (SELECT run_id FROM compared)
            WINDOW run AS (PARTITION BY run_id ORDER BY t_s)
            QUALIFY count(*) OVER (PARTITION BY run_id) >= 20
        ), written AS (
            SELECT s.run_id, m.t_s, sum(s.bytes) FILTER (op = 'write') AS bytes,
                sum(s.requests) FILTER (op = 'flush') AS flushes
            FROM io_series s ASOF JOIN moments m ON s.run_id = m.run_id AND s.t_s <= m.t_s
            GROUP BY ALL
        ), rates AS (
            SELECT c.* EXCLUDE (run_id), is_slow,
                sum(bytes) / sum(seconds) AS bytes_per_s, sum(flushes) / sum(seconds) AS flushes_per_s
            FROM compared c JOIN moments m USING (run_id) LEFT JOIN written w USING (run_id, t_s)
            GROUP BY ALL
        )
        SELECT s.dbms, s.device, s.workload, s.knob, s.value,
            any_value(s.bytes_per_s / nullif(o.bytes_per_s, 0)) FILTER (s.side = 'value') AS value_bytes,
            any_value(s.bytes_per_s / nullif(o.bytes_per_s, 0)) FILTER (s.side = 'default') AS reference_bytes,
            any_value(s.flushes_per_s / nullif(o.flushes_per_s, 0)) FILTER (s.side = 'value') AS value_flushes,
            any_value(s.flushes_per_s / nullif(o.flushes_per_s, 0)) FILTER (s.side = 'default') AS reference_flushes
        FROM rates s JOIN rates o USING (dbms, device, workload, knob, value, side)
        WHERE s.is_slow AND NOT o.is_slow
        GROUP BY ALL
    """,
}

-- io_sequentiality: a value of a knob makes I/O more sequential and costs CPU for it, and throughput drops here.
-- Source: He et al. (PVLDB 16(7), 2023), mismatch of I/O sequentiality: work that pays on
--        devices with slow random access (merging, sorting, reading ahead) is lost on those without.
-- Needs: effects (throughput_ops, cpu_s_per_op, write_sequential_share, read_sequential_share, flushes_per_op,
--        writes_per_op), flushes_behind, device_behind, runs_behind, watched_runs, io_profile, device_profile,
--        visibility.
-- Mismatch: of value and default, the one with the larger sequential share takes more CPU per operation and is slower;
--        each change is significant, and more than half of the rise of the share (as a logarithm) is one of the
--        writes in order per second, beyond noise, or of the bytes read in order per second: otherwise fewer others
--        come between those of the background, as with any slowdown. The additional CPU time (if waits were watched,
--        the time that clients compute or wait for a processor) accounts for cpu_share or more of the additional time
--        of an operation, as its client sees it. Not if its additional flushes or writes account for the rest of that
--        time or more: a flush with its average time in the slower one's runs (if no run has it, after 4 KiB on this
--        device; if waits were watched, the time that clients waited for flushes), or may do so when each takes
--        request_cpu_us of CPU of its own. Nor if cpu_share of the additional CPU time is more than putting the slower
--        one's requests in order takes: request_cpu_us each, and order_cpu_us for a KiB.
-- None: the intervals rule out that throughput, CPU or both shares change by an amount that matters, or throughput and
--        CPU per operation move the same way; or flushes, or something other than CPU, explain the loss.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of
--        unknown origin (each reported once per case); no interval, or too wide a one, for throughput, CPU or both
--        shares; no more writes and no more bytes read in order per second, or an unknown number; without waits, several
--        clients, whose CPU time accounts for the loss only if they share a processor, or flushes that were not counted or
--        take an unknown time; more additional CPU time than putting requests in order takes; additional flushes or writes,
--        whose CPU time may account for the loss.
-- Penalty: throughput of the better one / that of the worse.
-- Cannot see: work for order that costs no CPU, such as waiting for requests to merge.
WITH seen AS (
    SELECT dbms, device, workload, watched, serving, random_sequential_ratio, obstacle AS blind,
        coalesce(flush_p50_us, fsync_p50_us) AS usual_us
    FROM visibility LEFT JOIN device_profile USING (device)
),

-- Cases in which nothing hinders an answer.
throughput AS (
    FROM effects_on('throughput_ops') SEMI JOIN (FROM seen WHERE blind IS NULL) USING (dbms, device, workload)
),

-- Reads and writes in the monitored runs with a value and with the default; of few, no order is known.
asked AS (
    SELECT dbms, device, workload, knob, value,
        coalesce(sum(requests) FILTER (op <> 'flush' AND side = 'value'), 0) AS requests,
        coalesce(sum(requests) FILTER (op <> 'flush' AND side = 'default'), 0) AS default_requests,
        sum(requests) FILTER (op = 'write') / nullif(sum(requests) FILTER (op IN ('read', 'write')), 0) AS written_part
    FROM runs_behind JOIN io_profile USING (run_id)
    WHERE watched
    GROUP BY ALL
),

-- Microseconds of CPU time per operation that all requests in order can have taken, and their number.
in_order AS (
    SELECT run_id, sum(sequential_requests) / any_value(operations) AS in_order,
        in_order * getvariable('request_cpu_us')
            + sum(coalesce(sequential_bytes, sequential_requests / nullif(requests, 0) * bytes)) / any_value(operations)
            / 1024 * getvariable('order_cpu_us') AS order_us
    FROM io_profile JOIN watched_runs USING (run_id)
    WHERE op IN ('read', 'write')
    GROUP BY run_id
),

ordered AS (
    SELECT dbms, device, workload, knob, value,
        avg(in_order) FILTER (side = 'value') AS value_in_order,
        avg(in_order) FILTER (side = 'default') AS default_in_order,
        avg(order_us) FILTER (side = 'value') AS value_order_us,
        avg(order_us) FILTER (side = 'default') AS default_order_us
    FROM runs_behind JOIN in_order USING (run_id)
    WHERE watched
    GROUP BY ALL
),

compared AS (
    SELECT dbms, device, workload, watched, blind, serving, requests, default_requests, written_part,
        t.* EXCLUDE (dbms, device, workload),
        random_sequential_ratio, usual_us,
        c.estimate AS cpu, c.low AS cpu_low, c.high AS cpu_high, c.q_value AS cpu_q,
        share_by_time(
            computing.waited, computing.waited_low, computing.waited_high, computing.left_open, getvariable('cpu_share')
        ) AS computing_share,
        computing_share['sure'] AS computed, computing_share['low'] AS computed_low,
        computing_share['high'] AS computed_high,
        flushing.waited AS flushing_share,
        flushing.waited_low AS flushing_low,
        w.estimate AS write_share, w.low AS write_low, w.high AS write_high, w.q_value AS write_q,
        w.reference AS write_before,
        r.estimate AS read_share, r.low AS read_low, r.high AS read_high, r.q_value AS read_q,
        r.reference AS read_before,
        f.q_value AS flushes_q, n.estimate AS writes, n.q_value AS writes_q,
        -- Logarithms of how many times as many writes, and bytes read, are in order per second with the value.
        ln(nullif(as_share(w.reference + w.estimate), 0) / nullif(as_share(w.reference), 0)) AS write_rise,
        write_rise + n.estimate + t.estimate AS write_rate_rise,
        sqrt(pow((n.high - n.low) / 2, 2) + pow((t.high - t.low) / 2, 2)) AS write_margin,
        ln(nullif(as_share(r.reference + r.estimate), 0) / nullif(as_share(r.reference), 0)) AS read_rise,
        ln(nullif(value_reads_in_order, 0) / nullif(reference_reads_in_order, 0)) AS read_rate_rise,
        -- Microseconds per operation, of the slower side beyond the faster one: for a client, and of CPU time. Clients
        -- that are served at a time may share processors, so that CPU time counts for at most as much more.
        1e6 / t.reference * abs(exp(-t.estimate) - 1) AS difference_us,
        serving * difference_us AS slow_us,
        1e6 * c.reference * abs(exp(c.estimate) - 1) AS cpu_us,
        1e6 * c.reference * abs(exp(CASE WHEN c.estimate > 0 THEN c.high ELSE c.low END) - 1) AS most_cpu_us,
        -sign(t.estimate) * f.estimate AS more_flushes,
        coalesce(of_slower(t.estimate, value_us, reference_us), usual_us) AS flush_us,
        more_flushes * coalesce(flush_us, 0) AS flushing_us,
        -- Where fewer flushes store as much, each takes longer.
        of_slower(t.estimate, f.low, -f.high) * flush_us
            - of_slower(t.estimate, f.reference, number_after(f.reference, f.estimate))
                * greatest(of_slower(t.estimate, reference_us, value_us) - flush_us, 0) AS least_flushing_us,
        -- At most; the CPU time of these requests is not known.
        flushing_us + more_flushes * getvariable('request_cpu_us') AS most_flushing_us,
        -sign(t.estimate) * n.reference * (exp(n.estimate) - 1) * getvariable('request_cpu_us') AS most_writing_us,
        of_slower(t.estimate, value_in_order, default_in_order) AS in_order,
        of_slower(t.estimate, value_order_us, default_order_us) AS order_us
    FROM seen
    LEFT JOIN throughput t USING (dbms, device, workload)
    LEFT JOIN effects_on('cpu_s_per_op') c USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('write_sequential_share') w USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('read_sequential_share') r USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('flushes_per_op') f USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('writes_per_op') n USING (dbms, device, workload, knob, value)
    LEFT JOIN waited_for(['cpu', 'runnable'], unfollowed()) computing USING (dbms, device, workload, knob, value)
    LEFT JOIN waited_for(['flush'], unfollowed()) flushing USING (dbms, device, workload, knob, value)
    LEFT JOIN flushes_behind USING (dbms, device, workload, knob, value)
    LEFT JOIN asked USING (dbms, device, workload, knob, value)
    LEFT JOIN ordered USING (dbms, device, workload, knob, value)
    LEFT JOIN device_behind USING (dbms, device, workload, knob, value)
),

judged AS (
    SELECT *,
        is_significant(estimate, q_value) AND is_significant(cpu, cpu_q) AS both_matter,
        both_matter AND sign(cpu) = -sign(estimate) AS costs,
        coalesce(is_significant_share(write_share, write_q) AND sign(write_share) = sign(cpu), false) AS writes_ordered,
        coalesce(is_significant_share(read_share, read_q) AND sign(read_share) = sign(cpu), false) AS reads_ordered,
        -- Where one side has none in order, the rise has no logarithm, and is one of the rate.
        writes_ordered AND coalesce(write_rate_rise / write_rise > 0.5 AND abs(write_rate_rise) > write_margin, write_rise IS NULL)
            AS by_writes,
        reads_ordered AND coalesce(read_rate_rise / read_rise > 0.5, read_rise IS NULL) AS by_reads,
        CASE
            WHEN computed IS NOT NULL AND flushing_low >= 1 - getvariable('cpu_share') THEN 'flushes'
            WHEN computed IS NULL AND flushes_q <= getvariable('fdr')
                AND least_flushing_us >= (1 - getvariable('cpu_share')) * difference_us THEN 'flushes'
            WHEN coalesce(computed_high, most_cpu_us / nullif(difference_us, 0)) < getvariable('cpu_share') THEN 'time'
        END AS explained_by,
        are_flushes_unknown(computed, flushes_q, more_flushes, flush_us) AS unknown_flushes,
        coalesce(order_us < getvariable('cpu_share') * cpu_us, false) AS is_much_work,
        coalesce(
            computed IS NULL AND flushes_q <= getvariable('fdr')
                AND most_flushing_us >= (1 - getvariable('cpu_share')) * difference_us, false
        ) OR coalesce(
            is_significant(writes, writes_q) AND most_writing_us >= (1 - getvariable('cpu_share')) * slow_us, false
        ) AS may_be_requests,
        -- Clients spend their time on something else. That holds even if there are too few requests to know their order.
        coalesce(is_significant(estimate, q_value) AND computed_high < getvariable('cpu_share'), false)
            AS time_ruled_out,
        -- The side of a share's change that would matter is that of CPU, once that is known.
        -- Of a kind of which there is hardly any, no order can be known, nor matters.
        coalesce(
            (write_high < getvariable('min_effect') OR (costs AND cpu < 0))
                AND (write_low > -getvariable('min_effect') OR (costs AND cpu > 0)), coalesce(written_part, 0) < 0.05
        ) AND coalesce(
            (read_high < getvariable('min_effect') OR (costs AND cpu < 0))
                AND (read_low > -getvariable('min_effect') OR (costs AND cpu > 0)), coalesce(written_part, 1) > 0.95
        ) AS order_ruled_out
    FROM compared
),

verdicts AS (
    SELECT *,
        costs AND (by_writes OR by_reads) AND explained_by IS NULL AS can_be,
        can_be AND NOT is_much_work AND NOT unknown_flushes AND NOT may_be_requests
            AND NOT coalesce(computed IS NOT NULL AND flushing_share >= 1 - getvariable('cpu_share'), false) AND coalesce(
            computed >= getvariable('cpu_share') AND computed_low > 0, cpu_us >= getvariable('cpu_share') * slow_us, false
        ) AS is_mismatch,
        CASE
            WHEN blind IS NOT NULL THEN blind
            WHEN knob IS NULL THEN 'no_knob'
            WHEN q_value IS NULL THEN lack_of_runs(runs, blocks, estimate)
            WHEN cpu_q IS NULL THEN 'few_cpu_times'
            WHEN time_ruled_out THEN NULL
            WHEN coalesce(write_q, read_q) IS NULL THEN 'few_watched'
            WHEN is_mismatch OR rules_out_effect(low, high) OR rules_out_effect(cpu_low, cpu_high)
                OR (both_matter AND NOT costs) OR order_ruled_out OR (costs AND explained_by IS NOT NULL) THEN NULL
            WHEN can_be AND unknown_flushes THEN 'no_flushes'
            WHEN can_be AND is_much_work THEN 'much_work'
            WHEN can_be AND may_be_requests THEN 'more_requests'
            WHEN can_be AND computed IS NULL AND cpu_us < getvariable('cpu_share') * difference_us THEN 'noise_of_cpu'
            WHEN can_be AND computed IS NULL THEN 'shared_processors'
            WHEN can_be THEN 'noise_of_waits'
            WHEN costs AND reads_ordered AND read_rate_rise IS NULL AND read_rise IS NOT NULL THEN 'unknown_rate'
            WHEN costs AND (writes_ordered OR reads_ordered) THEN 'same_rate'
            WHEN costs THEN 'noise_of_order'
            WHEN is_significant(estimate, q_value) THEN 'noise_of_cpu'
            ELSE 'noise'
        END AS obstacle
    FROM judged
)

SELECT
    dbms, device, workload, knob, value,
    verdict_of(obstacle, is_mismatch) AS verdict,
    exp(estimate) - 1 AS effect,
    exp(low) - 1 AS effect_low,
    exp(high) - 1 AS effect_high,
    penalty_of(verdict, estimate) AS penalty,
    {
        baseline: baseline, step: step, mechanism: mechanism, throughput_ratio: exp(estimate), q_value: q_value,
        cpu: {effect: exp(cpu) - 1, low: exp(cpu_low) - 1, high: exp(cpu_high) - 1, q_value: cpu_q},
        random_sequential_ratio: random_sequential_ratio,
        cpu_us_per_op: cpu_us, in_order_per_op: in_order, order_us_per_op: order_us,
        us_per_op: coalesce(slow_us, difference_us),
        computed: CASE WHEN computed IS NOT NULL THEN {low: computed_low, high: computed_high} END,
        explained_by: CASE
            WHEN costs AND (writes_ordered OR reads_ordered) THEN explained_by WHEN time_ruled_out THEN 'time'
        END,
        write_share: {
            before: as_share(write_before), after: as_share(write_before + write_share), q_value: write_q, counts: by_writes
        },
        read_share: {
            before: as_share(read_before), after: as_share(read_before + read_share), q_value: read_q, counts: by_reads
        },
        slower: of_slower(estimate, 'value', 'baseline'),
        requests: requests, default_requests: default_requests, serving: serving,
        is_counted: coalesce(write_share, read_share) IS NOT NULL,
        obstacle: obstacle, smallest: smallest_effect(low, high), watched: watched
    } AS evidence
FROM verdicts
ORDER BY ALL

-- read_amplification: a setting reads more from the device for an operation, and is slower by the time that it waits
--        for these reads.
-- Source: ours; a page, block or read-ahead too large for point reads is among the most frequent complaints about
--        storage engines. The RUM conjecture (Athanassoulis et al., EDBT 2016) calls the ratio of bytes read to bytes
--        needed read amplification; the bytes that an operation needs are unknown, so settings are compared with each
--        other.
-- Needs: effects (throughput_ops, read_bytes_per_op, reads_per_op, read_us_per_op, read_busy_us_per_op and, where waits
--        were watched, wait_read_us_per_op and wait_fault_us_per_op), reads_behind, visibility (with the client
--        threads).
-- Mismatch: of value and default, the slower one reads more bytes or requests per operation, significantly, and the
--        additional waiting of its clients for reads accounts for read_share or more of the additional time per
--        operation, and surely for half of that (95 % interval). If waits were not watched, their time lies between two
--        bounds: the latencies of all reads, of which no more run at a time than there are clients, and the time of all
--        clients while the device is busy with reads. Then it must also read more bytes or requests per second, beyond
--        noise, or as many bytes from a device that is busy for saturated_share of the time: background reads per
--        operation rise with any slowdown.
-- None: the intervals rule out that throughput or what is read changes by an amount that matters, that the slower one
--        reads more, or that waiting for reads accounts for read_share of the difference; nothing was read from the
--        device.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of
--        unknown origin (each reported once per case); no interval, or too wide a one; without watched waits, bounds
--        that allow both answers, or no more reads per second.
-- Penalty: throughput of the better value / that of the worse, within what the share of the reads allows.
-- Cannot see: reads that the page cache serves, which cost CPU only; how much of what was read an operation used;
--        without watched waits, whether clients or background threads waited.
WITH seen AS (
    SELECT dbms, device, workload, watched, serving, obstacle AS blind FROM visibility
),

-- Cases in which nothing hinders an answer.
throughput AS (
    FROM effects_on('throughput_ops') SEMI JOIN (FROM seen WHERE blind IS NULL) USING (dbms, device, workload)
),

-- What clients wait for reads more with a value, in microseconds per operation, at least and at most: the only place
-- that knows where the time comes from.
waited AS (
    SELECT dbms, device, workload, knob, value,
        coalesce(decides(waited, waited_high, w.left_open, getvariable('read_share')), false) AS is_exact,
        CASE WHEN is_exact THEN more_us ELSE l.estimate END AS one,
        CASE WHEN is_exact THEN more_us_low ELSE l.low END AS one_low,
        CASE WHEN is_exact THEN more_us_high ELSE l.high END AS one_high,
        CASE WHEN is_exact THEN one ELSE m.estimate END AS other,
        CASE WHEN is_exact THEN one_low ELSE m.low END AS other_low,
        CASE WHEN is_exact THEN one_high ELSE m.high END AS other_high,
        -- What hides an unknown time may hide all of it.
        CASE WHEN is_exact THEN coalesce(w.left_open, 1) ELSE 0 END AS left_open
    FROM throughput
    LEFT JOIN effects_on('read_us_per_op') l USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('read_busy_us_per_op') m USING (dbms, device, workload, knob, value)
    LEFT JOIN waited_for(['read', 'fault'], may_hide(['read', 'fault'])) w USING (dbms, device, workload, knob, value)
),

compared AS (
    SELECT dbms, device, workload, watched, serving, blind, t.* EXCLUDE (dbms, device, workload),
        b.estimate AS bytes, b.low AS bytes_low, b.high AS bytes_high, b.q_value AS bytes_q, b.reference AS bytes_before,
        n.estimate AS number, n.low AS number_low, n.high AS number_high, n.q_value AS number_q,
        n.reference AS number_before,
        is_exact, one, one_low, one_high, other, other_low, other_high, left_open,
        -- Effects take half of the least that a run reads for a setting that reads nothing.
        CASE WHEN h.reads > 0 AND h.value_bytes IS NULL THEN 0 ELSE 1 END AS value_reads,
        CASE WHEN h.reads > 0 AND h.reference_bytes IS NULL THEN 0 ELSE 1 END AS default_reads,
        h.reads, h.value_bytes, h.reference_bytes, h.value_us, h.reference_us, h.value_busy, h.reference_busy
    FROM seen
    LEFT JOIN throughput t USING (dbms, device, workload)
    LEFT JOIN effects_on('read_bytes_per_op') b USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('reads_per_op') n USING (dbms, device, workload, knob, value)
    LEFT JOIN waited USING (dbms, device, workload, knob, value)
    LEFT JOIN reads_behind h USING (dbms, device, workload, knob, value)
),

-- Everything from the side of the slower setting. Times are those of all threads that serve clients, per operation.
sided AS (
    SELECT *,
        serving * 1e6 / reference * abs(exp(-estimate) - 1) AS slow_us,
        -sign(estimate) * bytes AS more_bytes,
        -sign(estimate) * number AS more_number,
        greatest(of_slower(estimate, bytes_high, -bytes_low), of_slower(estimate, number_high, -number_low))
            AS most_more,
        -sign(estimate) * one / nullif(slow_us, 0) AS one_share,
        -sign(estimate) * other / nullif(slow_us, 0) AS other_share,
        -- One bound alone says nothing.
        CASE WHEN one_low + other_low IS NOT NULL
             THEN least(of_slower(estimate, one_low, -one_high), of_slower(estimate, other_low, -other_high)) END
            / nullif(slow_us, 0) AS share_low,
        CASE WHEN one_low + other_low IS NOT NULL
             THEN greatest(of_slower(estimate, one_high, -one_low), of_slower(estimate, other_high, -other_low)) END
            / nullif(slow_us, 0) + left_open AS share_high
    FROM compared
),

judged AS (
    SELECT *,
        is_significant(estimate, q_value) AS matters,
        coalesce(bytes_q <= getvariable('fdr') AND rules_out_gain(more_bytes) = false, false) AS by_bytes,
        coalesce(number_q <= getvariable('fdr') AND rules_out_gain(more_number) = false, false) AS by_number,
        coalesce(
            is_exact OR (
                NOT rules_out_gain(greatest(more_bytes, more_number) - abs(estimate))
                AND abs(estimate) < greatest(
                    more_bytes - sqrt(pow((bytes_high - bytes_low) / 2, 2) + pow((high - low) / 2, 2)),
                    more_number - sqrt(pow((number_high - number_low) / 2, 2) + pow((high - low) / 2, 2))
                ))
                OR (of_slower(estimate, value_busy, reference_busy) >= getvariable('saturated_share')
                    AND rules_out_loss(more_bytes - abs(estimate))), false
        ) AS by_second,
        coalesce(
            least(one_share, other_share) >= getvariable('read_share') AND share_low >= getvariable('read_share') / 2, false
        ) AS by_time,
        coalesce(share_high < getvariable('read_share'), false) AS time_ruled_out
    FROM sided
),

verdicts AS (
    SELECT *,
        coalesce(matters AND reads > 0 AND (by_bytes OR by_number) AND by_second AND by_time, false) AS is_mismatch,
        CASE
            WHEN blind IS NOT NULL THEN blind
            WHEN knob IS NULL THEN 'no_knob'
            WHEN q_value IS NULL THEN lack_of_runs(runs, blocks, estimate)
            WHEN is_mismatch OR reads = 0 THEN NULL
            WHEN bytes_q IS NULL OR number_q IS NULL THEN 'few_watched'
            WHEN rules_out_effect(low, high) THEN NULL
            WHEN serving IS NULL THEN 'no_clients'
            WHEN share_low IS NULL OR share_high IS NULL THEN 'no_latency'
            WHEN matters AND (rules_out_gain(most_more) OR time_ruled_out) THEN NULL
            WHEN matters AND (by_bytes OR by_number) AND by_time THEN 'same_rate'
            WHEN matters AND (by_bytes OR by_number) AND NOT is_exact
                AND greatest(one_share, other_share) >= getvariable('read_share') THEN 'unknown_wait'
            WHEN matters THEN 'noise_of_reads'
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
    penalty_of_share(verdict, estimate, share_high) AS penalty,
    {
        baseline: baseline, step: step, mechanism: mechanism, throughput_ratio: exp(estimate), q_value: q_value,
        bytes_per_op: {before: bytes_before * default_reads, after: bytes_before * exp(bytes) * value_reads, q_value: bytes_q, counts: by_bytes, are_even: rules_out_effect(bytes_low, bytes_high)},
        reads_per_op: {before: number_before * default_reads, after: number_before * exp(number) * value_reads, q_value: number_q, counts: by_number, are_even: rules_out_effect(number_low, number_high)},
        bytes_per_read: {before: reference_bytes, after: value_bytes},
        read_us: {before: reference_us, after: value_us},
        difference_us: {of_client: slow_us, of_all: coalesce(slow_us / serving, 1e6 / reference * abs(exp(-estimate) - 1))}, serving: serving,
        least_share: least(one_share, other_share), most_share: greatest(one_share, other_share),
        share_low: share_low, share_high: share_high, is_exact: is_exact, time_ruled_out: matters AND (by_bytes OR by_number) AND time_ruled_out,
        reads_more: by_bytes OR by_number, no_reads: reads = 0, busy: of_slower(estimate, value_busy, reference_busy),
        slower: of_slower(estimate, 'value', 'baseline'),
        obstacle: obstacle, smallest: smallest_effect(low, high), watched: watched
    } AS evidence
FROM verdicts
ORDER BY ALL

-- io_sequentiality: a value of a knob makes I/O more sequential and costs CPU for it, and throughput drops here.
-- Source: "When Database Meets New Storage Devices" (PVLDB 2023), mismatch of I/O sequentiality: work that pays on
--        devices with slow random access (merging, sorting, reading ahead) is lost on those without.
-- Needs: effects (throughput_ops, cpu_s_per_op, write_sequential_share, read_sequential_share), visibility.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of unknown
--        origin; no interval for throughput or CPU, or for the sequential share of both reads and writes.
-- Mismatch: of value and default, the one with the larger sequential share takes more CPU per operation and is slower;
--        each change is significant. Penalty: throughput of the better one / that of the worse.
WITH compared AS (
    SELECT v.dbms, v.device, v.workload, v.obstacle, v.caveat, t.* EXCLUDE (dbms, device, workload),
        d.random_sequential_ratio,
        c.estimate AS cpu, c.q_value AS cpu_q,
        w.estimate AS write_share, w.q_value AS write_q, w.reference AS write_before,
        r.estimate AS read_share, r.q_value AS read_q, r.reference AS read_before,
        is_significant(t.estimate, t.q_value) AND is_significant(c.estimate, c.q_value)
            AND sign(c.estimate) = -sign(t.estimate) AS costs,
        coalesce(is_significant_share(w.estimate, w.q_value) AND sign(w.estimate) = sign(c.estimate), false) AS by_writes,
        coalesce(is_significant_share(r.estimate, r.q_value) AND sign(r.estimate) = sign(c.estimate), false) AS by_reads
    FROM visibility v
    LEFT JOIN (FROM effects WHERE metric = 'throughput_ops') t USING (dbms, device, workload)
    LEFT JOIN device_profile d USING (device)
    LEFT JOIN effects c
        ON c.metric = 'cpu_s_per_op'
        AND (c.dbms, c.device, c.workload, c.knob, c.value) = (v.dbms, v.device, v.workload, t.knob, t.value)
    LEFT JOIN effects w
        ON w.metric = 'write_sequential_share'
        AND (w.dbms, w.device, w.workload, w.knob, w.value) = (v.dbms, v.device, v.workload, t.knob, t.value)
    LEFT JOIN effects r
        ON r.metric = 'read_sequential_share'
        AND (r.dbms, r.device, r.workload, r.knob, r.value) = (v.dbms, v.device, v.workload, t.knob, t.value)
),

lacking AS (
    SELECT *,
        CASE
            WHEN obstacle IS NOT NULL THEN obstacle
            WHEN knob IS NULL THEN 'no knob was swept'
            WHEN q_value IS NULL THEN too_little(runs, blocks)
            WHEN cpu_q IS NULL THEN 'too few of its runs have a CPU time'
            WHEN coalesce(write_q, read_q) IS NULL THEN 'too few of its runs were watched, or used the device at all'
        END AS obstacle_here
    FROM compared
),

verdicts AS (
    SELECT *,
        CASE
            WHEN obstacle_here IS NOT NULL THEN 'insufficient'
            WHEN costs AND (by_writes OR by_reads) THEN 'mismatch'
            ELSE 'none'
        END AS verdict
    FROM lacking
)

SELECT
    'io_sequentiality' AS rule, dbms, device, workload, knob, value, verdict,
    exp(estimate) - 1 AS effect,
    exp(low) - 1 AS effect_low,
    exp(high) - 1 AS effect_high,
    CASE WHEN verdict = 'mismatch' THEN exp(abs(estimate)) END AS penalty,
    to_json({
        baseline: baseline, step: step, mechanism: mechanism, throughput_ratio: exp(estimate), q_value: q_value,
        cpu_ratio: exp(cpu), cpu_q_value: cpu_q, random_sequential_ratio: random_sequential_ratio,
        write_share: {before: write_before, after: write_before + write_share, q_value: write_q, counts: by_writes},
        read_share: {before: read_before, after: read_before + read_share, q_value: read_q, counts: by_reads},
        slower: CASE WHEN estimate < 0 THEN 'value' ELSE 'baseline' END, caveat: caveat
    })::VARCHAR AS evidence,
    coalesce(change_in_words(knob, baseline, value, unit, step), 'Sequential I/O') || ' ' || CASE verdict
        WHEN 'insufficient' THEN
            format('on {} with {} cannot be judged by the order of I/O: {}', device, workload, obstacle_here)
        ELSE
            effect_in_words(workload, device, estimate, low, high)
            || format('; CPU per operation changes by factor {:.2f}', exp(cpu))
            || coalesce(format(
                ', the sequential share of writes goes from {} to {}',
                as_percent(write_before), as_percent(write_before + write_share)
            ), '')
            || coalesce(format(
                ', the sequential share of reads goes from {} to {}',
                as_percent(read_before), as_percent(read_before + read_share)
            ), '')
            || CASE verdict
                WHEN 'none' THEN ': not a loss that sequential I/O is bought with'
                ELSE ': CPU is spent on sequential I/O that does not pay here'
            END
            || coalesce(' (' || caveat || ')', '')
    END || '.' AS sentence
FROM verdicts
ORDER BY ALL

-- io_size: more writes fill the device's units only in part, and throughput goes down.
-- Source: He et al. (PVLDB 16(7), 2023), mismatch of I/O size.
-- Needs: effects (throughput_ops, unaligned_write_share, unaligned_writes_per_op, flushes_per_op, cpu_s_per_op),
--        flushes_behind, device_behind, cases, device_profile (write_unit_bytes, write_unit_us), visibility.
-- Mismatch: throughput falls where the SHARE of such writes rises, whichever end of the change is the default; or where
--        their NUMBER per operation rises with the knob (not if it rises with a lower value: any knob that saves writes
--        saves unaligned ones too; special values, such as 0 = off, have no direction); or where more flushes per
--        operation wait for units to be filled (write_unit_us for the share of such writes). Each change is
--        significant, and its time is fill_share or more of the lost time, the additional time per operation. If waits
--        were watched, this is the time that clients waited for writes and flushes. Otherwise counts decide: the units
--        filled in addition in each second account for half of that or more, and two units for each such write can
--        account for all of it, within the busy time of the device, the writes that a thread waits for (if that is
--        known, and unless the device is busy for most_busy of the time), and what CPU time leaves. If the time of a
--        unit is unknown, the busy time must rise by as much. Not if the other part of the flushes' time accounts for
--        more than half of it: that is for rule flush.
-- None: the intervals rule out that throughput changes, or that such writes change with it, by an amount that matters, or
--        that flushes, which are more or take longer, wait for units for fill_share of the lost time, or surely the other
--        part of their time is more than half of it. A flush fills at most two units for each such write, and no more than
--        one and what it takes longer than after 4 KiB.
-- Insufficient: the block layer was not watched by bpf, or events were lost, or most I/O of a shared device is of
--        unknown origin, or the device has no profile, or no write unit was found (each reported once per case); no
--        interval, or too wide a one, for an effect or for the time that clients wait; flushes that may fill several
--        units each; without watched waits, such writes do not become more frequent per second, so the slowdown may be
--        what changes them, no thread waits for them, or CPU time is unknown, or may account for the difference, or
--        flushes were not counted, or take an unknown time; a special value whose number of such writes would decide.
-- Penalty: throughput of the better value / that of the worse, within what the share of such writes allows.
-- Cannot see: whether the size is the cause: values that change the size of writes may change more. Experiments test
--        that.
WITH seen AS (
    SELECT dbms, v.device, workload, watched, serving, write_unit_bytes, write_unit_us,
        coalesce(flush_p50_us, fsync_p50_us) AS usual_us,
        coalesce(
            obstacle, CASE WHEN d.device IS NULL THEN 'no_profile' WHEN write_unit_bytes IS NULL THEN 'no_unit' END
        ) AS blind
    FROM visibility v LEFT JOIN device_profile d ON d.device = v.device
),

-- Cases in which nothing hinders an answer.
throughput AS (
    FROM effects_on('throughput_ops') SEMI JOIN (FROM seen WHERE blind IS NULL) USING (dbms, device, workload)
),

compared AS (
    SELECT dbms, device, workload, watched, blind, serving, t.* EXCLUDE (dbms, device, workload),
        write_unit_bytes, write_unit_us, usual_us,
        s.estimate AS share, s.low AS share_low, s.high AS share_high, s.q_value AS share_q,
        s.reference AS share_before,
        n.estimate AS number, n.low AS number_low, n.high AS number_high, n.q_value AS number_q,
        n.reference AS number_before,
        f.estimate AS flushes, f.low AS flushes_low, f.high AS flushes_high, f.q_value AS flushes_q,
        f.reference AS flushes_before,
        value_us, reference_us, value_partly, reference_partly, value_partly_writes, reference_partly_writes,
        r.slower_rate, r.faster_rate, r.margin,
        g.slower_rate AS slower_flushes, g.faster_rate AS faster_flushes, g.margin AS flushes_margin,
        flushing.waited AS flushing_share,
        flushing.waited_low AS flushing_low, flushing.share_of_us,
        of_slower(t.estimate, flushing.reference_waited_us, flushing.value_waited_us) AS faster_waited_us,
        waits.waited, waits.waited_low, waits.waited_high, waits.left_open,
        of_slower(t.estimate, value_busy, reference_busy) AS busy,
        of_slower(t.estimate, reference_busy, value_busy) AS faster_busy,
        of_slower(t.estimate, value_waited_writes, reference_waited_writes) AS waited_writes,
        1e6 / t.reference * abs(exp(-t.estimate) - 1) AS slow_us,
        not_on_cpu(t.estimate, slow_us, c.reference, c.low, c.high, serving) AS not_cpu,
        sign(t.step) AS direction,
        getvariable('min_effect') AS share_matters,
        -- Of many writes a small share can take the time, too.
        least(
            getvariable('min_effect') * n.reference, getvariable('fill_share') * slow_us / nullif(2 * write_unit_us, 0)
        ) AS number_matters
    FROM seen
    LEFT JOIN throughput t USING (dbms, device, workload)
    LEFT JOIN effects_on('unaligned_write_share') s USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('unaligned_writes_per_op') n USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('flushes_per_op') f USING (dbms, device, workload, knob, value)
    LEFT JOIN effects_on('cpu_s_per_op') c USING (dbms, device, workload, knob, value)
    LEFT JOIN rates_of('unaligned_writes_per_op') r USING (dbms, device, workload, knob, value)
    LEFT JOIN rates_of('flushes_per_op') g USING (dbms, device, workload, knob, value)
    LEFT JOIN waited_for(['flush', 'write'], may_hide(['flush', 'write'])) waits USING (dbms, device, workload, knob, value)
    LEFT JOIN waited_for(['flush'], may_hide(['flush', 'write'])) flushing USING (dbms, device, workload, knob, value)
    LEFT JOIN flushes_behind USING (dbms, device, workload, knob, value)
    LEFT JOIN device_behind USING (dbms, device, workload, knob, value)
),

-- What such writes, and flushes that wait for units, make up of the lost time.
shared AS (
    SELECT *,
        of_slower(estimate, value_partly, reference_partly) AS partly,
        of_slower(estimate, value_us, reference_us) AS measured_us,
        coalesce(measured_us, usual_us) AS flush_us,
        of_slower(estimate, value_partly_writes, reference_partly_writes) AS partly_writes,
        most_filling_us(flush_us, usual_us, write_unit_us, partly_writes) AS most_fill_us,
        CASE WHEN partly IS NOT NULL THEN least(filling_us(flush_us, write_unit_us, partly), most_fill_us) END AS fill_us,
        coalesce(of_slower(estimate, reference_us, value_us), flush_us) AS faster_us,
        most_filling_us(
            faster_us, usual_us, write_unit_us, of_slower(estimate, reference_partly_writes, value_partly_writes)
        ) AS faster_most_fill_us,
        least(faster_most_fill_us, coalesce(
            filling_us(faster_us, write_unit_us, of_slower(estimate, reference_partly, value_partly)), 0
        )) AS faster_fill_us,
        -sign(estimate) * flushes AS more_flushes,
        of_slower(estimate, flushes_high, -flushes_low) AS more_flushes_high,
        of_slower(estimate, flushes_low, -flushes_high) AS more_flushes_low,
        more_flushes * fill_us / nullif(slow_us, 0) AS filling,
        -- A write that begins and ends between units fills two: all of the slower side's take this long at most.
        2 * write_unit_us
            * (of_slower(estimate, number_before + number, number_before) + (number_high - number_low) / 2) AS most_us,
        -- What additional flushes, and those that take longer than with the faster setting, fill for an operation at most.
        -- Of flushes whose time nobody measured, the number of such writes is the only bound: of all, not only of more, since
        -- several may share a unit with the faster setting.
        CASE WHEN more_flushes_high <= 0 THEN 0
             ELSE more_flushes_high
                * CASE WHEN measured_us IS NOT NULL THEN most_fill_us ELSE 2 * write_unit_us * partly_writes END
        END + CASE WHEN least(flushes_before, number_after(flushes_before, flushes)) <= 0 THEN 0 ELSE least(
                CASE WHEN value_us + reference_us IS NOT NULL
                     THEN greatest(measured_us - of_slower(estimate, reference_us, value_us), 0) END
                    * of_slower(estimate, flushes_before + flushes, flushes_before),
                most_us
        ) END AS most_filling_time_us,
        coalesce(most_filling_time_us < getvariable('fill_share') * slow_us, false) AS filling_ruled_out,
        coalesce(most_us < getvariable('fill_share') * slow_us, false) AS too_few,
        -- Of what nobody waits for, no time is lost, unless the device is so busy that writers are held back.
        allowed_share(busy, estimate) AS allowed,
        CASE WHEN coalesce(busy, 0) < getvariable('most_busy')
             THEN coalesce(least(waited_writes, slower_rate) * 2 * write_unit_us / 1e6 / nullif(lost_share(estimate), 0),
                CASE WHEN waited_writes = 0 THEN 0 END) END AS waited_share,
        least(allowed, coalesce(waited_share, 1), 1) AS most,
        share_by_time(waited, waited_low, waited_high, left_open, getvariable('fill_share')) AS by_time,
        share_of_cause(
            by_time,
            CASE WHEN write_unit_us IS NOT NULL
                THEN share_by_counts(
                    slower_rate, faster_rate, margin, write_unit_us, write_unit_us, estimate, 'infinity'::DOUBLE
                )
                ELSE share_by_counts(busy, faster_busy, 0, 1e6, 1e6, estimate, 'infinity'::DOUBLE)
            END
        ) AS of_writes,
        share_of_cause(
            by_time, share_by_counts(slower_flushes, faster_flushes, flushes_margin, fill_us, fill_us, estimate, most)
        ) AS of_filling
    FROM compared
),

judged AS (
    SELECT *,
        is_significant(estimate, q_value) AS matters,
        -- What flushes take without the filling of units: by the estimate, and surely.
        coalesce(
            CASE WHEN by_time IS NOT NULL THEN without_filling(
                    flushing_share, coalesce(fill_us / flush_us, 0), faster_waited_us,
                    coalesce(faster_most_fill_us / faster_us, 0), share_of_us
                )
                WHEN flushes_q <= getvariable('fdr')
                THEN more_flushes * (flush_us - coalesce(fill_us, 0)) / nullif(slow_us, 0) END
                > 1 - getvariable('fill_share'), false
        ) AS may_be_flushes,
        coalesce(
            CASE WHEN by_time IS NOT NULL THEN without_filling(
                    flushing_low, most_fill_us / flush_us, faster_waited_us, faster_fill_us / faster_us, share_of_us
                )
                -- Where fewer flushes store as much, each takes longer.
                ELSE (more_flushes_low * (flush_us - most_fill_us) - greatest(
                    of_slower(estimate, flushes_before, number_after(flushes_before, flushes)), 0
                ) * CASE WHEN value_us + reference_us IS NOT NULL
                    THEN greatest(faster_us - faster_fill_us - (flush_us - most_fill_us), 0) ELSE 0 END)
                    / nullif(slow_us, 0) END
                > 1 - getvariable('fill_share'), false
        ) AS by_flushes,
        are_flushes_unknown(by_time, flushes_q, more_flushes, flush_us) AS unknown_flushes,
        coalesce(matters AND by_time['high'] < getvariable('fill_share'), false) AS time_ruled_out,
        coalesce(is_significant_share(share, share_q) AND sign(share) = -sign(estimate), false) AND NOT too_few
            AS against_share,
        coalesce(
            number_q <= getvariable('fdr') AND abs(number) >= number_matters AND sign(number) = -sign(estimate), false
        ) AS number_against,
        coalesce(sign(number) = direction, false) AND number_against AND NOT too_few AS with_number,
        coalesce(slower_rate > (1 + getvariable('min_effect')) * faster_rate, false) AS more_per_second,
        -- Each such write fills one unit surely, and two at most.
        CASE WHEN of_writes['by_time'] THEN of_writes
            ELSE {low: of_writes['low'], sure: of_writes['sure'],
                high: least(2 * greatest(of_writes['high'], 0), most), by_time: false} END AS writes_share,
        coalesce(is_cause(writes_share, getvariable('fill_share')), false)
            AND (writes_share['by_time'] OR more_per_second) AS takes_time,
        against_share AND takes_time AS by_share,
        with_number AND takes_time AS by_number,
        coalesce(
            flushes_q <= getvariable('fdr') AND more_flushes > 0 AND filling >= getvariable('fill_share'), false
        ) AS can_fill,
        can_fill AND coalesce(is_cause(of_filling, getvariable('fill_share')), false) AS by_filling,
        -- Whether the intervals rule out a change of such writes that would make it a mismatch: for a value without a
        -- direction, in both.
        (share_high < share_matters OR (matters AND estimate > 0))
            AND (share_low > -share_matters OR (matters AND estimate < 0)) AS share_ruled_out,
        (direction > 0 OR number_low > -number_matters OR (matters AND estimate < 0))
            AND (direction < 0 OR number_high < number_matters OR (matters AND estimate > 0)) AS number_ruled_out
    FROM shared
),

verdicts AS (
    SELECT *,
        within(CASE WHEN by_share OR by_number THEN writes_share ELSE of_filling END, coalesce(not_cpu, 1)) AS cause_share,
        matters AND (by_share OR by_number OR by_filling) AND NOT may_be_flushes AS holds,
        holds AND (
            by_time IS NOT NULL OR (coalesce(not_cpu >= getvariable('fill_share'), false) AND NOT unknown_flushes)
        ) AS is_mismatch,
        CASE
            WHEN blind IS NOT NULL THEN blind
            WHEN knob IS NULL THEN 'no_knob'
            WHEN q_value IS NULL THEN lack_of_runs(runs, blocks, estimate)
            WHEN number_q IS NULL THEN 'few_watched'
            WHEN is_mismatch OR rules_out_effect(low, high) OR (matters AND (by_flushes OR too_few)) OR time_ruled_out
                THEN NULL
            WHEN matters AND unknown_flushes THEN 'no_flushes'
            WHEN matters AND may_be_flushes AND NOT coalesce(share_ruled_out AND number_ruled_out AND filling_ruled_out, false)
                THEN 'several_units'
            WHEN matters AND by_time IS NOT NULL AND (against_share OR with_number OR can_fill) THEN 'noise_of_waits'
            WHEN holds AND not_cpu IS NULL THEN 'no_cpu'
            WHEN holds THEN 'cpu'
            WHEN matters AND (against_share OR with_number) AND NOT more_per_second THEN 'same_rate'
            WHEN matters AND (against_share OR with_number) AND waited_share < getvariable('fill_share')
                THEN 'nobody_waits'
            WHEN matters AND (against_share OR with_number) THEN 'little_time'
            WHEN matters AND can_fill THEN 'same_flushes'
            WHEN share_q IS NULL THEN 'few_writes'
            WHEN share_ruled_out AND number_ruled_out AND filling_ruled_out THEN NULL
            WHEN matters AND number_against AND direction IS NULL THEN 'no_direction'
            WHEN matters AND number_against AND NOT more_per_second AND by_time IS NULL THEN 'same_rate'
            WHEN matters AND share_ruled_out AND number_ruled_out THEN 'several_units'
            WHEN matters THEN 'noise_of_writes'
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
    penalty_of_share(verdict, estimate, cause_share['high']) AS penalty,
    {
        baseline: baseline, step: step, mechanism: mechanism, write_unit_bytes: write_unit_bytes,
        throughput_ratio: exp(estimate), q_value: q_value,
        unaligned_share: {
            before: CASE WHEN share IS NOT NULL THEN as_share(share_before) END,
            after: CASE WHEN share IS NOT NULL THEN as_share(share_before + share) END,
            q_value: share_q, counts: by_share
        },
        unaligned_per_op: {
            before: greatest(number_before, 0), after: number_after(number_before, number), q_value: number_q,
            counts: by_number
        },
        flushes_per_op: {
            before: greatest(flushes_before, 0), after: number_after(flushes_before, flushes), q_value: flushes_q,
            counts: by_filling
        },
        partly_per_s: {slower: slower_rate, faster: faster_rate},
        share: cause_share, waited: by_time, time_ruled_out: time_ruled_out, busy_share: busy, not_cpu: not_cpu,
        fill_us: fill_us, fill_share: filling, most_share: most_us / nullif(slow_us, 0), too_few: matters AND too_few,
        difference_us: {of_client: slow_us * serving, of_all: slow_us}, serving: serving,
        by_flushes: matters AND by_flushes AND (against_share OR with_number OR can_fill),
        slower: of_slower(estimate, 'value', 'baseline'),
        obstacle: obstacle, smallest: smallest_effect(low, high), watched: watched
    } AS evidence
FROM verdicts
ORDER BY ALL

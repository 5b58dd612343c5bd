"""Macros of a study's database, which mismatch rules share.

Of a cause there are two kinds of evidence: the time that clients waited, where waits were watched (`waited_for`,
`share_by_time`), and counts (`rates_of`, `share_by_counts`). `share_of_cause` takes the time where it decides.
"""

from knobscope.text.formats import LEAST_REQUESTS
from knobscope.thread_classes import SESSION

#: What rules share. Estimates are natural-log ratios unless the name says share; thresholds are those of the study.
MACROS: dict[str, str] = {
    "is_significant(estimate, q)": """
        q <= getvariable('fdr') AND abs(exp(estimate) - 1) >= getvariable('min_effect')
    """,
    "is_significant_share(estimate, q)": """
        q <= getvariable('fdr') AND abs(estimate) >= getvariable('min_effect')
    """,
    # Which of two belongs to the slower setting: to the value, or to what it is compared with.
    "of_slower(estimate, of_value, of_reference)": "CASE WHEN estimate < 0 THEN of_value ELSE of_reference END",
    # The share of the time per operation of the slower setting that the faster one saves.
    "lost_share(estimate)": "1 - exp(-abs(estimate))",
    # Whether an interval rules out a loss, a gain, or any effect that matters.
    "rules_out_loss(low)": "low > ln(1 - least(getvariable('min_effect'), 0.999))",
    "rules_out_gain(high)": "high < ln(1 + getvariable('min_effect'))",
    "rules_out_effect(low, high)": "rules_out_loss(low) AND rules_out_gain(high)",
    # The smallest change (0.1: 10 %) that runs with such an interval could have told from none, and that matters.
    "smallest_effect(low, high)": "greatest(exp((high - low) / 2) - 1, getvariable('min_effect'))",
    # How many times the throughput is at most, when the requests of a device that is busy for a share of the time take
    # 1/faster of it (`knobscope.stages.detect.penalties`).
    "most_gain(busy, faster)": "1 / nullif(1 - busy + busy / faster, 0)",
    # Operations of a run while its waits were counted: a busy machine begins to count late. Where it is not known, that
    # was the window.
    "waited_operations(throughput, waits_s, operations)": "coalesce(throughput * waits_s, operations)",
    # Fewer requests have no share, nor a percentile.
    "least_requests()": f"{LEAST_REQUESTS}",
    # A share of requests; none where they are next to nothing.
    "share_of(part, requests)": f"CASE WHEN requests >= {LEAST_REQUESTS} THEN part / requests END",
    # A fitted share, which noise may carry out of its range.
    "as_share(x)": "CASE WHEN x IS NOT NULL THEN greatest(0, least(1, x)) END",
    # How much of a flush goes to fill units that writes filled in part: what one unit takes, for the share of the
    # writes. A device fills several at a time, so this is the least that is likely.
    "filling_us(flush_us, unit_us, partly)": """
        CASE WHEN unit_us * partly IS NOT NULL THEN least(flush_us, unit_us * partly) END
    """,
    # The most that is possible, where `writes` fill units in part for each flush, up to two each. The usual flush,
    # after 4 KiB, fills one; what this one takes longer may go to others. What is unknown (NULL) bounds nothing.
    "most_filling_us(flush_us, usual_us, unit_us, writes)": """
        CASE WHEN unit_us IS NOT NULL THEN least(
            flush_us, 2 * unit_us * writes,
            CASE WHEN usual_us IS NOT NULL THEN unit_us + greatest(flush_us - usual_us, 0) END
        ) END
    """,
    # Both: `partly` is the share of such writes, `writes` their number per flush. What is unknown fills nothing.
    "filling_of(us, usual, unit_us, partly, writes)": """
        {least: least(
            coalesce(most_filling_us(us, usual, unit_us, writes), 0), coalesce(filling_us(us, unit_us, partly), 0)
        ), most: coalesce(most_filling_us(us, usual, unit_us, writes), 0)}
    """,
    # What is left of a share of the lost time that clients wait for flushes, without the filling of units: a part of
    # each wait, which differs between the settings.
    "without_filling(waited_share, part_of_slower, waited_of_faster, part_of_faster, per_us)": """
        waited_share * (1 - part_of_slower) - waited_of_faster * (part_of_slower - part_of_faster) * per_us
    """,
    # The sum over the chosen rows of a group: nothing of none, and unknown where that of any of them is.
    "sum_of_all(x, chosen)": """
        CASE WHEN coalesce(bool_and(x IS NOT NULL) FILTER (chosen), true) THEN coalesce(sum(x) FILTER (chosen), 0) END
    """,
    # A fitted number after a change: what is left of it by rounding, or below nothing by noise, is nothing.
    "number_after(before, change)": """
        CASE WHEN before + change > 1e-9 * abs(before) THEN before + change WHEN before + change IS NOT NULL THEN 0 END
    """,
    # A table by its name, logs and temporary files (whose names change from run to run) together, other files apart.
    "group_of_files(file, role, table_name)": """
        CASE WHEN table_name IS NOT NULL THEN table_name
             WHEN role IN ('log', 'temp') THEN role || ' files' ELSE file END
    """,
    # The definition of the probes: a share of 0.8 or more gives the pattern its name; fewer than ten requests are too
    # few to have one.
    "pattern_of(requests, sequential, append, strided, random)": """
        CASE WHEN requests < 10 THEN 'few' WHEN sequential >= 0.8 THEN 'sequential' WHEN append >= 0.8 THEN 'append'
             WHEN strided >= 0.8 THEN 'strided' WHEN random >= 0.8 THEN 'random' ELSE 'mixed' END
    """,
    # Share of a shared device's data requests of unknown origin, above which nothing is concluded about the DBMS from
    # the block layer: beyond half, what is not known decides. A choice of ours, as `most_unknown` of rule
    # read_write_interference for files.
    "most_unattributed()": "0.5",
    # Share of it above which findings mention it: a twentieth, as for min_effect; less hides no effect that matters.
    "told_unattributed()": "0.05",
    # What a rule answers: an obstacle comes before everything else; a condition that is NULL makes no mismatch.
    "verdict_of(obstacle, is_mismatch)": """
        CASE WHEN obstacle IS NOT NULL THEN 'insufficient' WHEN is_mismatch THEN 'mismatch' ELSE 'none' END
    """,
    # How many times the throughput of the worse of two values the better one has, where that is a mismatch.
    "penalty_of(verdict, estimate)": "CASE WHEN verdict = 'mismatch' THEN exp(abs(estimate)) END",
    # The same where a cause is a share of the lost time: what is gained without it, at most.
    "penalty_of_share(verdict, estimate, share)": """
        CASE WHEN verdict = 'mismatch' THEN 1 / (1 - least(share, 1) * lost_share(estimate)) END
    """,
    # What the share of a cause is at most, where the device is busy for a share of the slower setting's time: while it
    # is idle nobody waits for it. No bound where that is unknown.
    "allowed_share(busy, estimate)": "coalesce(busy / nullif(lost_share(estimate), 0), 'infinity'::DOUBLE)",
    # The share of a cause by counts: costs of `slower_us` and `faster_us` at the rates of `rates_of`. `sure` is what
    # the device does more in each second, which no slowdown brings about by itself; `high` is what it does more for
    # each operation, which a slowdown does: fewer commits share a flush, and the background goes on. Both as shares of
    # the lost time; `low` is the lower end of the 95 % interval of `sure`.
    "share_by_counts(slower_rate, faster_rate, margin, slower_us, faster_us, estimate, most)": """
        {
            low: (slower_rate * slower_us - faster_rate * faster_us - margin * slower_us)
                / nullif(1e6 * lost_share(estimate), 0),
            sure: (slower_rate * slower_us - faster_rate * faster_us) / nullif(1e6 * lost_share(estimate), 0),
            high: least(
                (slower_rate * slower_us - exp(-abs(estimate)) * faster_rate * faster_us)
                    / nullif(1e6 * lost_share(estimate), 0),
                most
            ),
            by_time: false
        }
    """,
    # Reasons of clients that sleep, or wait for others that could not be followed: what these did is not known.
    # SQLite's clients sleep until the file is free.
    "unfollowed()": "['lock', 'timer', 'other', 'unknown']",
    # Reasons of threads that wait for requests to a device.
    "for_storage()": "['flush', 'write', 'read', 'fault', 'async', 'journal']",
    # The other reasons that may hide a wait for some requests: also those for other requests, which take longer when
    # the device is busy with the former. Reads of MariaDB wait for its flushes.
    "may_hide(own)": """
        unfollowed() || list_filter(for_storage(), lambda reason: NOT list_contains(own, reason))
    """,
    "is_wait_for(metric, reasons)": """
        list_contains(['wait_' || reason || '_us_per_op' FOR reason IN reasons], metric)
    """,
    # Whether time decides: not where waits that may hide the one asked for leave it open. A tenth, which leaves little
    # open, is our choice.
    "decides(waited, waited_high, left_open, asked)": """
        waited >= asked OR waited_high + left_open < asked OR (waited IS NOT NULL AND left_open < 0.1)
    """,
    # The same by the time that clients waited, with its interval, from `waited_for`; NULL where nobody watched waits,
    # (of one block there is no interval), or where they leave it open whether the share is as large as asked for. What
    # hides an unknown time may hide all of it.
    "share_by_time(waited, waited_low, waited_high, left_open, asked)": """
        CASE WHEN waited_low IS NOT NULL AND decides(waited, waited_high, left_open, asked)
             THEN {low: waited_low, sure: waited, high: coalesce(waited_high + left_open, greatest(waited_high, 1)),
                   by_time: true} END
    """,
    # Time decides where it can.
    "share_of_cause(by_time, by_counts)": "coalesce(by_time, by_counts)",
    # Whether additional flushes may take the time, and nobody knows: no waits tell, and they were not counted, or what
    # each takes is unknown. Our monitor counts them always, a table of others may not.
    "are_flushes_unknown(by_time, q, more, us)": """
        by_time IS NULL AND coalesce(q IS NULL OR (q <= getvariable('fdr') AND more > 0 AND us IS NULL), false)
    """,
    # Whether a share makes a cause of what was counted. By time: it is as large as asked for. By counts: it can be, and
    # half of that is more than a slowdown brings about.
    "is_cause(share, asked)": """
        CASE WHEN share['by_time'] THEN share['sure'] >= asked AND share['low'] > 0
             ELSE share['high'] >= asked AND share['sure'] >= asked / 2 AND share['low'] >= asked / 4 END
    """,
    # A share by counts that is no more than what something else leaves.
    "within(share, most)": """
        CASE WHEN share['by_time'] THEN share
             ELSE {low: least(share['low'], share['high'], most), sure: least(share['sure'], share['high'], most),
                   high: least(share['high'], most), by_time: false} END
    """,
    # How much of the lost time clients surely do not spend on CPU: what the slower setting may compute more (the upper
    # end of the interval), divided by the threads that serve them (one, where their number is unknown), is taken off.
    # Where CPU time is unknown, so is this.
    "not_on_cpu(estimate, slow_us, cpu_reference, cpu_low, cpu_high, serving)": """
        CASE WHEN cpu_reference + cpu_low + cpu_high IS NOT NULL
             THEN 1 - greatest(
                0, -1e6 * cpu_reference * sign(estimate) * (exp(of_slower(estimate, cpu_high, cpu_low)) - 1)
             ) / nullif(coalesce(serving, 1) * slow_us, 0) END
    """,
    # A code for why an effect has no interval.
    "lack_of_runs(runs, blocks, estimate)": """
        CASE WHEN coalesce(runs, 0) = 0 THEN 'no_run' WHEN blocks < 2 THEN 'one_block'
             WHEN estimate IS NULL THEN 'outside' ELSE 'few_runs' END
    """,
}

#: Tables with an argument, which rules share.
TABLE_MACROS: dict[str, str] = {
    # Effects of all values on one metric, to be joined by case, knob and value.
    "effects_on(asked)": "SELECT * FROM effects WHERE metric = asked",
    # How many threads serve the clients of a case at a time: one each, unless waits show fewer. An event loop serves
    # all of them alone, so what it waits for all of them wait for. NULL where neither is known (imported tables). Runs
    # of the default configuration tell it: in others the number of clients may be a factor.
    "serving_threads()": f"""
        WITH served AS (
            SELECT run_id, nullif(max(threads), 0) AS sessions
            FROM waits WHERE thread_class = '{SESSION}' GROUP BY run_id
        )
        SELECT dbms, device, workload,
            least(any_value(threads), median(sessions)) AS serving
        FROM cases LEFT JOIN (
            SELECT dbms, device, workload, sessions FROM served JOIN runs USING (run_id) WHERE is_sentinel
        ) USING (dbms, device, workload)
        GROUP BY dbms, device, workload
    """,  # noqa: S608 - a name of ours
    # How often in each second the slower and the faster setting do what a metric counts per operation (as differences),
    # and half the width of the 95 % interval of the difference between the two. Counts vary in proportion to their
    # size: where there are none, their number is certain, however many operations there are.
    "rates_of(counted)": """
        SELECT t.dbms, t.device, t.workload, t.knob, t.value,
            number_after(c.reference, c.estimate) AS value_number,
            value_number * t.reference * exp(t.estimate) AS value_rate,
            c.reference * t.reference AS reference_rate,
            of_slower(t.estimate, value_rate, reference_rate) AS slower_rate,
            of_slower(t.estimate, reference_rate, value_rate) AS faster_rate,
            sqrt(
                (pow(value_rate, 2) + pow(reference_rate, 2))
                    * pow((c.high - c.low) / 2 / nullif(greatest(value_number, c.reference), 0), 2)
                + pow((t.high - t.low) / 2 * value_rate, 2)
            ) AS margin
        FROM effects_on('throughput_ops') t
        JOIN effects_on(counted) c USING (dbms, device, workload, knob, value)
    """,
    # How many other threads of the DBMS wait for storage at a time, per thread that serves clients, in the run that has
    # most: so much of what these pass on, while they wait as if for a client, may be a wait for the device. A listener
    # that hands all operations to workers (Firebird) waits for nothing else.
    "waits_elsewhere()": f"""
        WITH waited AS (
            SELECT run_id,
                sum(time_us) FILTER (thread_class <> '{SESSION}' AND list_contains(for_storage(), reason)) / 1e6
                    AS waited_s
            FROM waits GROUP BY run_id
        )
        SELECT dbms, device, workload,
            max(coalesce(waited_s, 0) / coalesce(waits_s, window_s)) / nullif(any_value(serving), 0) AS elsewhere
        FROM waited JOIN runs USING (run_id) JOIN serving_threads() USING (dbms, device, workload)
        GROUP BY ALL
    """,  # noqa: S608 - a name of ours
    # The share of the lost time that clients waited for some reasons (`flush`, `write`, `read`), with its interval;
    # the time per operation with each setting, how much more it is with the value, and the share of the lost time that
    # a microsecond is. No row where nobody watched waits. `left_open`: the share that they waited for reasons which may
    # hide these; `waited_high` allows for the noise of that. Where the time for a reason is unknown, so are its sums.
    "waited_for(asked, hiding)": """
        WITH scaled AS (
            SELECT t.*, elsewhere / nullif(lost_share(estimate), 0) AS most_passed_on,
                -sign(estimate) * reference / nullif(1e6 * serving * abs(exp(-estimate) - 1), 0) AS scale
            FROM effects_on('throughput_ops') t
            JOIN serving_threads() USING (dbms, device, workload)
            LEFT JOIN waits_elsewhere() USING (dbms, device, workload)
        ), parts AS (
            SELECT s.dbms, s.device, s.workload, s.knob, s.value, scale, w.estimate, w.low, w.high, w.reference,
                if(scale * w.estimate < 0, 0, scale * w.estimate) AS more, most_passed_on,
                is_wait_for(w.metric, asked) AS is_asked, is_wait_for(w.metric, hiding) AS is_hiding,
                is_wait_for(w.metric, ['network']) AS is_passed_on
            FROM scaled s
            JOIN effects w USING (dbms, device, workload, knob, value)
            WHERE starts_with(w.metric, 'wait_')
        )
        SELECT dbms, device, workload, knob, value,
            sum_of_all(scale * estimate, is_asked) AS waited,
            sum_of_all(least(scale * low, scale * high), is_asked) AS waited_low,
            sum_of_all(greatest(scale * low, scale * high), is_asked)
                + coalesce(sqrt(sum(pow(scale * (high - low) / 2, 2)) FILTER (is_hiding)), 0) AS waited_high,
            sum_of_all(more, is_hiding) + sum_of_all(least(more, most_passed_on), is_passed_on) AS left_open,
            sum_of_all(number_after(reference, estimate), is_asked) AS value_waited_us,
            sum_of_all(reference, is_asked) AS reference_waited_us,
            sum_of_all(estimate, is_asked) AS more_us, sum_of_all(low, is_asked) AS more_us_low,
            sum_of_all(high, is_asked) AS more_us_high, any_value(abs(scale)) AS share_of_us
        FROM parts
        GROUP BY ALL
        HAVING bool_or(is_asked)
    """,
    # The share of the clients' time that they wait for any of some reasons with the default configuration, and the
    # share that they may; no row where nobody watched waits.
    "waiting_by_default(reasons)": """
        WITH levels AS (
            SELECT dbms, device, workload, metric, median(reference) AS level
            FROM effects
            WHERE beside IS NULL
            GROUP BY ALL
        )
        SELECT dbms, device, workload,
            any_value(level) FILTER (metric = 'throughput_ops') / 1e6 / any_value(serving) AS scale,
            scale * sum_of_all(level, is_wait_for(metric, reasons)) AS waiting,
            waiting + scale * sum_of_all(level, is_wait_for(metric, unfollowed()))
                + least(scale * sum_of_all(level, is_wait_for(metric, ['network'])), any_value(elsewhere))
                AS possibly_waiting
        FROM levels
        JOIN serving_threads() USING (dbms, device, workload)
        LEFT JOIN waits_elsewhere() USING (dbms, device, workload)
        GROUP BY ALL
        HAVING waiting IS NOT NULL AND bool_or(is_wait_for(metric, reasons))
    """,
}

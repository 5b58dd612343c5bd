-- cross_check: a mechanism that another rule found guilty in one DBMS exists in another DBMS of the study: was it tested
--        there?
-- Source: the mechanisms of the specs; He et al. (PVLDB 16(7), 2023) found the same mechanism
--        (double writes, page sizes, flushing) at fault in several DBMSs.
-- Needs: earlier_findings (what the other rules of the study returned), knobs (all that the specs name), effects,
--        importance (what screening varied), cases.
-- Mismatch: never: it says where to look, and what was not measured here is no mismatch. Of the mechanisms that it points
--        to, about three in four turn out to be at fault (docs/evidence/verdicts.md).
-- None: on the same device and workload no mechanism was found guilty elsewhere; or it was flagged here as well, whether
--        or not an experiment refuted that; or knobs of it were swept here, and a rule that blames it elsewhere judged
--        none of them to be at fault (not flagged).
-- Insufficient: the study has one DBMS only; or a mechanism is guilty elsewhere, and here none of its knobs was varied
--        (not tested), or screening varied some and selected none for the sweep (screened), or the rules that blame it
--        elsewhere could not judge all that was measured of them (not judged).
-- Penalty: none, since nothing was measured. One row per case and mechanism, without a knob.
--        What an experiment refuted counts as guilty nowhere: the rule is asked again after `imitate` and `remeasure`.
-- Cannot see: mechanisms that no spec names (`mechanism: other`).
WITH judged AS (
    SELECT DISTINCT f.rule, f.dbms, f.device, f.workload, f.knob, f.value, f.penalty, k.mechanism,
        CASE WHEN f.verdict = 'mismatch' AND f.confirmed = 'no' THEN 'withdrawn' ELSE f.verdict END AS verdict
    FROM earlier_findings f
    JOIN knobs k USING (dbms, knob)
    WHERE k.mechanism <> 'other'
),

guilty AS (
    SELECT DISTINCT dbms, device, workload, mechanism, rule, knob, max(penalty) OVER (
        PARTITION BY dbms, device, workload, mechanism, knob
    ) AS penalty
    FROM judged
    WHERE verdict = 'mismatch'
),

-- For every case: the mechanisms guilty in another DBMS on the same device with the same workload.
suspected AS (
    SELECT c.dbms, c.device, c.workload, g.mechanism,
        list_sort(list(DISTINCT {dbms: g.dbms, knob: g.knob})) AS elsewhere,
        list(DISTINCT g.rule ORDER BY g.rule) AS rules,
        max(g.penalty) AS elsewhere_penalty
    FROM cases c
    JOIN guilty g ON g.dbms <> c.dbms AND (g.device, g.workload) = (c.device, c.workload)
    GROUP BY ALL
),

-- How far every knob of a case was looked at. A prior's ranking (without a round) is of another study.
tried AS (
    SELECT c.dbms, c.device, c.workload, k.mechanism, k.knob,
        CASE
            WHEN EXISTS (
                FROM effects e WHERE (e.dbms, e.device, e.workload, e.knob) = (c.dbms, c.device, c.workload, k.knob)
            ) THEN 'swept'
            WHEN EXISTS (
                FROM importance i
                WHERE (i.dbms, i.device, i.workload, i.knob) = (c.dbms, c.device, c.workload, k.knob)
                    AND i.round IS NOT NULL
            ) THEN 'screened'
            ELSE 'untested'
        END AS how
    FROM cases c
    JOIN knobs k USING (dbms)
),

here AS (
    SELECT s.*, knobs, swept, screened, untested, verdicts_here
    FROM suspected s
    JOIN (
        SELECT dbms, device, workload, mechanism, list(knob ORDER BY knob) AS knobs,
            list(knob ORDER BY knob) FILTER (how = 'swept') AS swept,
            list(knob ORDER BY knob) FILTER (how = 'screened') AS screened,
            list(knob ORDER BY knob) FILTER (how = 'untested') AS untested
        FROM tried GROUP BY ALL
    ) USING (dbms, device, workload, mechanism)
    LEFT JOIN (
        SELECT s.dbms, s.device, s.workload, s.mechanism, list(DISTINCT j.verdict) AS verdicts_here
        FROM suspected s
        JOIN judged j
            ON (j.dbms, j.device, j.workload, j.mechanism) = (s.dbms, s.device, s.workload, s.mechanism)
            AND list_contains(s.rules, j.rule)
        GROUP BY ALL
    ) USING (dbms, device, workload, mechanism)
),

verdicts AS (
    SELECT c.dbms, c.device, c.workload, h.* EXCLUDE (dbms, device, workload),
        CASE
            WHEN (SELECT count(DISTINCT dbms) FROM cases) = 1 THEN 'alone'
            WHEN h.mechanism IS NULL THEN 'nothing_guilty'
            WHEN swept IS NULL AND screened IS NULL THEN 'not_tested'
            WHEN swept IS NULL THEN 'screened'
            WHEN list_contains(verdicts_here, 'mismatch') THEN 'flagged'
            WHEN list_contains(verdicts_here, 'withdrawn') THEN 'withdrawn'
            WHEN list_contains(verdicts_here, 'none') AND NOT list_contains(verdicts_here, 'insufficient') THEN 'not_flagged'
            ELSE 'not_judged'
        END AS state
    FROM cases c
    LEFT JOIN here h USING (dbms, device, workload)
)

SELECT
    dbms, device, workload,
    CASE
        WHEN state IN ('alone', 'not_tested', 'screened', 'not_judged') THEN 'insufficient'
        ELSE 'none'
    END AS verdict,
    {
        state: state, obstacle: CASE WHEN state = 'alone' THEN state END, mechanism: mechanism, guilty_elsewhere: elsewhere, by_rules: rules,
        penalty_elsewhere: elsewhere_penalty, knobs_here: knobs, swept_here: swept, screened_here: screened,
        untested_here: untested
    } AS evidence
FROM verdicts
ORDER BY ALL

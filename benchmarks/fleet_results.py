"""Writes docs/evidence/results.md from finished quick studies: which knobs matter, by DBMS, with what certainty.

Run as `python benchmarks/fleet_results.py STUDY ...` from the checkout; `make fleet` ends with it. It reads
results/STUDY/study.duckdb and nothing else; a study that has none is listed as missing.
"""

import math
import os
import platform
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from knobscope.specs import Dbms, read_spec
from knobscope.text.budgets import REASONS

ROOT = Path(__file__).resolve().parents[1]
TARGET = ROOT / "docs/evidence/results.md"
#: Runs that a study should have to be worth a line.
MIN_RUNS = 30

_INTRODUCTION = """# Results

Which knobs matter on one machine's disk: the `-quick` studies of all DBMSs that
[can be installed here](../how-to/install.md), a few minutes each. Written by `benchmarks/fleet_results.py` from the
databases of the studies; `make fleet` runs them and writes this page.

These are screenings with windows of 2 seconds or so, small data and one workload, half of which writes. They show the
large effects and the direction; for a decision run the `-io` study of your DBMS on your device. Unless stated, the
block layer was watched by BPF. Rules judge by the time that clients wait where it is shown, by counts elsewhere.
Studies of all knobs are in [introspect.md](introspect.md#what-studies-of-all-knobs-found).
"""


@dataclass(frozen=True)
class Outcome:
    """What one finished study says."""

    study: str
    dbms: str
    version: str
    device: str
    workload: str
    date: str
    knobscope: str  # the version that judged the runs
    runs: int
    ok: int
    monitor: str
    noise: float | None  # coefficient of variation of the default configuration within a block
    overhead_s: float | None
    durability: list[dict[str, Any]]  # effects of knobs that trade safety for speed
    ranking: list[dict[str, Any]]
    trustworthy: bool | None
    findings: list[dict[str, Any]]
    waits: list[dict[str, Any]]  # what an operation waits for more or less with the durability knob's largest effect


def read_outcome(database: Path, study: str) -> Outcome:
    """Return what the database of a finished study says; raises duckdb.Error when it is none."""
    with duckdb.connect(str(database), read_only=True) as connection:

        def rows(sql: str, *parameters: object) -> list[dict[str, Any]]:
            result = connection.execute(sql, parameters)
            names = [column[0] for column in result.description]
            return [dict(zip(names, row, strict=True)) for row in result.fetchall()]

        facts = rows(_FACTS)[0]
        fit = rows("SELECT trustworthy FROM fits ORDER BY round DESC LIMIT 1")
        return Outcome(
            study=study,
            **facts,
            noise=rows(_NOISE)[0]["noise"],
            durability=rows(_DURABILITY, durability_knobs(facts["dbms"])),
            ranking=rows(_RANKING),
            trustworthy=fit[0]["trustworthy"] if fit else None,
            findings=rows(_FINDINGS),
            waits=rows(_WAITS, durability_knobs(facts["dbms"])),
        )


_FACTS = """
SELECT any_value(dbms) AS dbms, coalesce(any_value(dbms_version), '?') AS version, any_value(device) AS device,
    any_value(workload) AS workload, strftime(min(started_at), '%Y-%m-%d') AS date, count(*) AS runs,
    (SELECT any_value(value) FROM setup WHERE part = 'knobscope' AND property = 'version') AS knobscope,
    count(*) FILTER (status = 'ok') AS ok, coalesce(any_value(monitor) FILTER (status = 'ok'), 'none') AS monitor,
    median(overhead_s) FILTER (status = 'ok') AS overhead_s
FROM runs
"""
# Within blocks: what changed from one block to the next is drift, not noise.
_NOISE = """
SELECT sqrt(sum((log_ops - centre) ** 2) / nullif(count(*) - count(DISTINCT block_id), 0)) AS noise FROM (
    SELECT block_id, ln(throughput_ops) AS log_ops, avg(ln(throughput_ops)) OVER (PARTITION BY block_id) AS centre
    FROM ok_runs WHERE is_sentinel)
"""
_DURABILITY = """
SELECT knob, value, baseline, estimate, low, high FROM effects
WHERE metric = 'throughput_ops' AND knob IN (SELECT unnest(?::VARCHAR[])) ORDER BY knob, abs(estimate) DESC
"""
# Parts below a twentieth of the change are left out, and so is waiting for the client.
_WAITS = """
WITH largest AS (
    SELECT dbms, device, workload, knob, value FROM effects
    WHERE metric = 'throughput_ops' AND beside IS NULL AND knob IN (SELECT unnest(?::VARCHAR[]))
    ORDER BY abs(estimate) DESC LIMIT 1
), parts AS (
    SELECT knob, value, regexp_extract(metric, '^wait_(.*)_us_per_op$', 1) AS reason, estimate
    FROM effects JOIN largest USING (dbms, device, workload, knob, value)
    WHERE metric LIKE 'wait_%_us_per_op' AND reason <> 'network'
)
SELECT * FROM parts
WHERE abs(estimate) >= (SELECT 0.05 * abs(sum(estimate)) FROM parts) ORDER BY abs(estimate) DESC
"""
_RANKING = """
SELECT knob, above_noise FROM importance
WHERE round = (SELECT max(round) FROM importance) ORDER BY rank LIMIT 3
"""
_FINDINGS = """
SELECT rule, count(*) FILTER (confirmed IS DISTINCT FROM 'no') AS mismatches,
    count(*) FILTER (confirmed IN ('yes', 'found')) AS borne_out, count(*) FILTER (confirmed = 'no') AS withdrawn,
    arg_max(sentence, coalesce(abs(effect), 0)) FILTER (confirmed IS DISTINCT FROM 'no') AS sentence
FROM findings WHERE verdict = 'mismatch' GROUP BY rule ORDER BY mismatches DESC, rule
"""


def durability_knobs(dbms: str) -> list[str]:
    """Return the knobs of a shipped spec of which some value risks committed data."""
    spec = read_spec(ROOT / f"specs/dbms/{dbms}.yaml", Dbms, None)[1]
    return [name for name, knob in spec.knobs.items() if knob.durability]


def describe_effect(effect: dict[str, Any]) -> str:
    """Say what a change does to throughput: the factor, with its confidence interval (effects are logarithms)."""
    factors = [f"{math.exp(effect[name]):.3g}" for name in ("estimate", "low", "high")]
    clear = "" if effect["low"] > 0 or effect["high"] < 0 else ", not clear of 1"
    change = f"`{effect['knob']}` {effect['baseline']} → {effect['value']}"
    return f"{change}: × {factors[0]} ({factors[1]} to {factors[2]}{clear})"


def render_table(outcomes: list[Outcome]) -> list[str]:
    """Return the lines of the table with one row for each study."""
    lines = [
        "| DBMS | version | runs ok | noise | overhead | durability knob, effect on throughput | knobs on top |",
        "|---|---|---|---|---|---|---|",
    ]
    for outcome in outcomes:
        noise = "?" if outcome.noise is None else f"{outcome.noise:.0%}"
        overhead = "?" if outcome.overhead_s is None else f"{outcome.overhead_s:.1f} s"
        durable = (
            describe_effect(max(outcome.durability, key=lambda row: abs(row["estimate"])))
            if outcome.durability
            else "–"
        )
        top = ", ".join(
            f"`{row['knob']}`" + ("" if row["above_noise"] else " (in the noise)") for row in outcome.ranking
        )
        few = "" if outcome.ok >= MIN_RUNS else f" (fewer than {MIN_RUNS})"
        cells = (
            outcome.dbms,
            outcome.version,
            f"{outcome.ok} of {outcome.runs}{few}",
            noise,
            overhead,
            durable,
            top or "–",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def describe_findings(of_rule: dict[str, Any]) -> str:
    """Say how many mismatches a rule found, what experiments said of them, and the largest that is left."""
    count, borne_out, withdrawn = (of_rule[name] for name in ("mismatches", "borne_out", "withdrawn"))
    parts = [f"{count} × mismatch, of which an experiment confirmed {borne_out}"] if count else []
    parts += [f"{withdrawn} × refuted by an experiment"] if withdrawn else []
    largest = f"; the largest: {of_rule['sentence']}" if count else ""
    return f"- `{of_rule['rule']}`: {'; '.join(parts)}{largest}"


def render_outcome(outcome: Outcome) -> list[str]:
    """Return the section of one study."""
    trust = {True: "trustworthy", False: "not trustworthy", None: "missing"}[outcome.trustworthy]
    watched = "" if outcome.monitor == "bpf" else f"; I/O from {outcome.monitor}"
    lines = [
        f"## {outcome.dbms}",
        "",
        f"`{outcome.study}`, {outcome.date}, {outcome.workload} on {outcome.device}{watched}; the ranking is {trust}.",
        "",
    ]
    lines += [f"- {describe_effect(effect)}" for effect in outcome.durability]
    if outcome.waits:
        parts = [f"{REASONS[row['reason']]} {row['estimate']:+.3g} µs" for row in outcome.waits]
        setting = f"`{outcome.waits[0]['knob']}` = {outcome.waits[0]['value']}"
        lines.append(f"- What clients wait for with {setting}, per operation: {', '.join(parts)}")
    lines += [describe_findings(row) for row in outcome.findings]
    lines += [] if outcome.findings else ["- No rule found a mismatch."]
    return [*lines, ""]


def describe_machine() -> str:
    """Say on what machine this page was made."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kernel = platform.release().split("-")[0]
    return f"{os.cpu_count()} cores ({platform.machine()}), {memory:.0f} GiB of memory, Linux {kernel}"


def render_page(outcomes: list[Outcome], missing: list[str]) -> str:
    """Return the whole page."""
    dates = sorted({outcome.date for outcome in outcomes})
    versions = sorted({outcome.knobscope for outcome in outcomes})
    lines = [
        _INTRODUCTION,
        f"Machine: {describe_machine()}. Measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))} with knobscope",
        f"{', '.join(versions)}; rules of later versions may judge otherwise, and say so in other words.",
        "",
        "Noise is the variation of the default configuration within a block. An effect is the factor by which",
        "throughput changes, with its 95 % interval, from blocks in which nothing else changed. Overhead is all of a",
        "run but warm-up and measured window (median).",
        "",
        *render_table(outcomes),
        "",
    ]
    if missing:
        lines += [f"Without a finished study here: {', '.join(f'`{name}`' for name in missing)}.", ""]
    for outcome in outcomes:
        lines += render_outcome(outcome)
    return "\n".join(lines).rstrip() + "\n"


def main(names: list[str]) -> int:
    """Write the page from the studies of these names, in their order; returns 1 when none is finished."""
    outcomes, missing = [], []
    for name in names:
        database = ROOT / "results" / name / "study.duckdb"
        if database.exists():
            outcomes.append(read_outcome(database, name))
        else:
            missing.append(name)
    if not outcomes:
        print("no finished study below results/; run `make fleet`", file=sys.stderr)
        return 1
    TARGET.write_text(render_page(outcomes, missing), encoding="utf-8")
    print("\n".join(render_table(outcomes)))
    print(f"{TARGET.relative_to(ROOT)}: {len(outcomes)} studies; missing: {', '.join(missing) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

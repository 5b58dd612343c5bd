"""A mismatch as Markdown: all that somebody needs who knows the DBMS and has never seen this study."""

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import fmean
from urllib.parse import quote

from knobscope.figures import Figure
from knobscope.machine_code import MOST_CALLS, Reader
from knobscope.stages.detect import Mismatch, find_runs_behind
from knobscope.study_data.budgets import read_budget, read_latency
from knobscope.study_data.study import Row, StudyData
from knobscope.text.answers import describe_answer, names_cause
from knobscope.text.budgets import describe_budget, describe_budget_change
from knobscope.text.formats import (
    UNKNOWN,
    describe_beside,
    describe_effect,
    describe_window,
    format_fold,
    format_micros,
    format_number,
    format_rate,
    format_share,
    format_size,
    format_value,
    loosen_units,
    plural,
)
from knobscope.text.settings import describe_knob

#: Figures of the runs that are shown in addition to throughput, where they were measured: column -> words and format.
_FIGURES: dict[str, tuple[str, Callable[[float | None], str]]] = {
    "latency_p95_us": ("95th percentile of latency", format_micros),
    "cpu_share": ("CPU of the DBMS, share of all cores", format_share),
    "machine_cpu_share": ("CPU of all that ran, share of all cores", format_share),
    "other_cpu_share": ("CPU of programs that have no part in the runs, share of all cores", format_share),
}


def describe_mismatch(
    data: StudyData,
    mismatch: Mismatch,
    study: Path,
    pictures: Sequence[tuple[Path, Figure]] = (),
    readers: Sequence[Reader] = (),
) -> str:
    """Return the report; `pictures` are files next to it with captions, `readers` functions that read the knob."""
    parts = [
        map(inert, _head(data, mismatch)),
        map(inert, _symptoms(data, mismatch)),
        map(inert, _cause(mismatch)),
        map(inert, _budget(data, mismatch)),
        map(inert, _code(mismatch, readers)),
        map(inert, _compared(data, mismatch)),
        map(inert, _machine(data, mismatch)),
        map(inert, _devices(data, mismatch)),
        _pictures(pictures),
        _repeat(mismatch, study),
    ]
    return loosen_units("\n\n".join("\n".join(lines) for part in parts if (lines := list(part)))) + "\n"


def inert(line: str) -> str:
    """Return a line whose foreign text is no HTML, link, picture or fence, and begins no new line."""
    line = " ".join(line.split()).replace("<", "&lt;").replace("```", "'''")
    if line.count("`") % 2:
        line = line.replace("`", "'")
    if "``" in line or "\\" in line or "](" in line:
        return line.replace("[", "\\[")
    # Where nothing can be a link, brackets in `code` stay: a backslash would be seen there.
    return re.sub(r"`[^`]*`|\[", lambda match: "\\[" if match[0] == "[" else match[0], line)


def _head(data: StudyData, mismatch: Mismatch) -> Iterator[str]:
    worst = mismatch.worst
    subject = f"`{mismatch.knob}`: " if mismatch.knob else ""
    yield f"# {worst['dbms']}: {subject}{_title(data, worst['rule'])}"
    yield ""
    yield f"Finding {mismatch.number} of the study {data.specs.study.name}, by knobscope."
    yield ""
    if description := describe_knob(data.specs.dbms.get(worst["dbms"]), mismatch.knob or ""):
        yield from (f"`{mismatch.knob}`: {description}", "")
    yield worst["sentence"] or ""


def _title(data: StudyData, rule: str) -> str:
    rule_spec = data.specs.rules.get(rule)
    return rule_spec.about.title if rule_spec else rule


def _symptoms(data: StudyData, mismatch: Mismatch) -> Iterator[str]:
    yield "## Where it shows"
    yield ""
    rows = []
    for row in mismatch.findings:
        about = data.specs.rules[row["rule"]].about.effect if row["rule"] in data.specs.rules else None
        directions = (about.more, about.less) if about else ("more", "less")
        label = f"{about.label}: " if about else ""
        rows.append(
            [
                row["device"],
                row["workload"],
                _value(data, row) if row["value"] else "default",
                f"{label}{_effect(row, *directions)}",
                UNKNOWN if row["penalty"] is None else format_fold(math.log(row["penalty"])),
                _title(data, row["rule"]),
                describe_answer(row["confirmed"]),
            ]
        )
    yield from _table(["device", "workload", "value", "effect", "penalty", "what is wrong", "cause"], rows)


def _effect(row: Row, more: str, less: str) -> str:
    estimate, low, high = (
        None if row[name] is None or row[name] <= -1 else math.log1p(row[name])
        for name in ("effect", "effect_low", "effect_high")
    )
    # That of a mismatch is clear by the study's `fdr`, whatever an interval of 95 % holds.
    return UNKNOWN if estimate is None else describe_effect(estimate, low, high, more, less, is_clear=True)


def _value(data: StudyData, row: Row) -> str:
    return format_value(data.specs.dbms.get(row["dbms"]), row["knob"], row["value"])


def _cause(mismatch: Mismatch) -> Iterator[str]:
    confirmations: dict[bool, dict[str, None]] = {True: {}, False: {}}
    for row in mismatch.findings:
        if row["confirmation"]:
            confirmations[names_cause(row["confirmed"])][row["confirmation"]] = None
    if confirmations[True]:
        yield from ("## What experiments showed", "")
        yield from (f"- {text}" for text in confirmations[True])
        return
    yield from (
        "## Cause",
        "",
        " ".join(["No experiment has told the cause.", *confirmations[False]]),
    )


def _budget(data: StudyData, mismatch: Mismatch) -> Iterator[str]:
    """Tell what an operation waits for with both settings of the costliest finding, where waits were watched."""
    worst = mismatch.worst
    behind = find_runs_behind(data.connection, worst)
    default, value = (read_budget(data, runs) for runs in (behind.default, behind.value))
    if not default:
        return
    yield from ("## What an operation waits for", "")
    yield "Time of the threads that serve clients, divided by the operations, without waiting for the client."
    yield ""
    beside = json.loads(worst["evidence"] or "{}").get("beside")
    beside_text = describe_beside(data.specs.dbms.get(worst["dbms"]), beside)
    yield f"- default configuration{beside_text}: {describe_budget(default, read_latency(data, behind.default))}"
    if value:
        yield f"- {worst['knob']} = {_value(data, worst)}{beside_text}: {describe_budget(value)}"
        yield f"- so an operation {describe_budget_change(default, value)}"


def _compared(data: StudyData, mismatch: Mismatch) -> Iterator[str]:
    """Tell the costliest finding's two settings, run by run, on each device that it compares."""
    worst = mismatch.worst
    yield from ("## The runs behind the costliest one", "")
    beside = json.loads(worst["evidence"] or "{}").get("beside")
    rows, beside_text = [], describe_beside(data.specs.dbms.get(worst["dbms"]), beside)
    for device in _devices_of(worst):
        behind = find_runs_behind(data.connection, {**worst, "device": device})
        changed = f"{worst['knob']} = {_value(data, worst)}"
        for name, ids in (
            (f"default configuration{beside_text}", behind.default),
            (f"{changed}{beside_text}", behind.value),
        ):
            runs = data.rows("SELECT * FROM runs WHERE list_contains(?, run_id) ORDER BY started_at", ids)
            if runs:
                cells = [f"{name} on {device}", str(len(runs)), _throughput(runs), *_figures(runs)]
                rows.append([*cells, " ".join(f"`{run}`" for run in ids)])
    titles = [title for title, _ in _FIGURES.values()]
    yield from _table(["setting", "runs", "throughput (geometric mean, range)", *titles, "run ids"], rows)
    if mismatch.knob and not data.is_imported:
        yield ""
        dbms = data.specs.dbms.get(worst["dbms"])
        start = " and a start of the server" if dbms is not None and dbms.lifecycle is not None else ""
        yield (
            f"Apart from this knob both have the default configuration of the study{beside_text}; each run was "
            f"preceded by a fresh copy of the data{start}, and the order of runs was drawn at random."
        )


def _code(mismatch: Mismatch, readers: Sequence[Reader]) -> Iterator[str]:
    """Tell where the server reads the knob, as far as its program says."""
    if not readers:
        return
    yield from ("## In the server's code", "")
    yield (
        f"These functions of the server, as it is installed where this was written, refer to the variable of "
        f"`{mismatch.knob}`. Next to each is the shortest way to a request to storage, of at most "
        f"{MOST_CALLS} calls; calls through pointers are not seen. An address is that of a function without an "
        "exported name: `addr2line -f` names it from the symbols of the same build."
    )
    yield ""
    rows = [[f"`{reader.name}`", " > ".join(f"`{name}`" for name in reader.path[1:]) or UNKNOWN] for reader in readers]
    yield from _table(["function", "calls"], rows)


def _throughput(runs: Sequence[Row]) -> str:
    values = [run["throughput_ops"] for run in runs if run["throughput_ops"]]
    if not values:
        return UNKNOWN
    mean = math.exp(fmean(map(math.log, values)))
    return f"{format_rate(mean)} ({format_rate(min(values))} to {format_rate(max(values))})"


def _figures(runs: Sequence[Row]) -> Iterator[str]:
    for column, (_, show) in _FIGURES.items():
        values = [run[column] for run in runs if run[column] is not None]
        yield show(fmean(values)) if values else UNKNOWN


def _machine(data: StudyData, mismatch: Mismatch) -> Iterator[str]:
    """Tell versions and the workload."""
    worst = mismatch.worst
    run = data.rows(
        "SELECT DISTINCT dbms_version, machine FROM runs WHERE dbms = ? AND status = 'ok' ORDER BY ALL", worst["dbms"]
    )
    yield from ("## What ran", "")
    versions, machines = ([row[column] for row in run if row[column]] for column in ("dbms_version", "machine"))
    yield f"- {worst['dbms']} {', '.join(dict.fromkeys(versions)) or 'of unknown version'}"
    yield f"- {'; '.join(dict.fromkeys(machines)) or 'unknown machine'}"
    for name in mismatch.names("workload"):
        workload = data.specs.workloads.get(name)
        if workload is not None and not data.is_imported:  # a table has no words on its load
            yield (
                f"- {name}: {workload.generator}, {workload.size}, "
                f"{loosen_units(plural(workload.threads, 'thread'))}, {workload.warmup_s:g} s of warm-up, "
                f"{describe_window(workload.measure_s, workload.measure_operations)} measured"
            )
    dbms = data.specs.dbms.get(worst["dbms"])
    if dbms is not None and (chosen := dbms.list_chosen(data.specs.study.baseline.get(dbms.name, {}))):
        yield f"- default configuration of {dbms.name}, not as built in: {', '.join(chosen)}"


def _devices(data: StudyData, mismatch: Mismatch) -> Iterator[str]:
    wanted = list(dict.fromkeys(name for row in mismatch.findings for name in _devices_of(row)))
    profiles = data.rows(
        "SELECT * FROM device_profile WHERE list_contains(?, device) ORDER BY tier_rank, device", wanted
    )
    if not profiles:
        return
    yield from ("## Devices, measured with fio", "")
    rows = [
        [
            profile["device"],
            f"{profile['tier']}, {profile['filesystem'] or 'unknown file system'}",
            format_size(profile["write_unit_bytes"]) if profile["write_unit_bytes"] else "none found",
            format_micros(profile["flush_p50_us"]),
            format_rate(profile["random_read_iops_qd1"], "/s"),
            format_rate(profile["random_read_iops_best"], "/s"),
            format_number(profile["saturating_depth"]) if profile["saturating_depth"] else UNKNOWN,
            f"{format_number(profile['random_sequential_ratio'])}x" if profile["random_sequential_ratio"] else UNKNOWN,
        ]
        for profile in profiles
    ]
    heads = ["device", "kind", "write unit", "fdatasync", "random 4 KiB reads, one at a time", "at best"]
    yield from _table([*heads, "depth that saturates", "random to sequential reads"], rows)
    for profile in profiles:
        spec = data.specs.devices.get(profile["device"])
        if spec is not None:
            yield from ("", f"{profile['device']}: {spec.description}")


def _devices_of(row: Row) -> Iterator[str]:
    yield row["device"]
    lower_device = json.loads(row["evidence"] or "{}").get("lower_device")
    if lower_device:
        yield lower_device


def _pictures(pictures: Sequence[tuple[Path, Figure]]) -> Iterator[str]:
    if not pictures:
        return
    yield "## Pictures"
    for path, figure in pictures:
        yield from ("", f"![{inert(figure.title)}]({quote(path.name)})", "", inert(figure.description))


def _repeat(mismatch: Mismatch, study: Path) -> Iterator[str]:
    rules = inert(", ".join(f"`{name}`" for name in mismatch.names("rule")))
    yield from ("## How to repeat it", "")
    yield "In a checkout of knobscope (the study's spec names DBMS, devices, workloads and all values):"
    yield from (
        "",
        "```sh",
        f"snakemake --cores all --config study={study}",
        f"knobscope finding {study} {mismatch.number}",
        "```",
        "",
    )
    yield f"Judged by the rules {rules}, whose claims and thresholds are in docs/reference/rules.md."


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"

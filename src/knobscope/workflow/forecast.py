"""What a study will take at most, told before it begins: rounds, runs and time, and what a budget leaves of them.

The time is an estimate (`knobscope.stages.plan.effort`). A budget bounds the rounds of screening: they end in time for
everything that follows to be within it, and at least one round and the sweep come whatever it says.
"""

from collections import Counter
from collections.abc import Iterator
from math import prod

from knobscope.specs import StudySpecs, value_text
from knobscope.stages.plan import (
    Effort,
    RefusedValue,
    case_space,
    effort_of,
    list_dependents,
    list_left_out,
    list_refused,
    screening_effort,
    sweep_effort,
)
from knobscope.stages.prepare import estimate_space
from knobscope.stages.remeasure import count_remeasuring_runs, expect_remeasuring_runs
from knobscope.stages.tune import count_runs
from knobscope.text.formats import format_seconds, format_size, loosen_units, plural


def affordable_rounds(specs: StudySpecs) -> int:
    """Return how many rounds of screening `sampling.max_rounds` and the budget allow; at least one."""
    budget, rounds = specs.study.budget, [float(specs.study.sampling.max_rounds)]
    if budget.runs is None and budget.hours is None:
        return specs.study.sampling.max_rounds  # what the rest takes is long to count in a large study
    each, later = screening_effort(specs), sweep_effort(specs) + _tuning_effort(specs) + _remeasuring_effort(specs)
    if budget.runs is not None:
        rounds.append((budget.runs - later.runs) // each.runs)
    if budget.hours is not None:
        rounds.append((3600 * budget.hours - later.seconds) // each.seconds)
    return max(1, int(min(rounds)))


def describe_study(specs: StudySpecs) -> str:
    """Return in one line how much the study will measure, then its budget and what is special in its sweep.

    That is which values are measured together with a change of other knobs, and which are left out.
    """
    study, cases = specs.study, len(specs.cases)
    rounds, each = affordable_rounds(specs), screening_effort(specs)
    rounds_words = f"{rounds} screening round{'s' if rounds != 1 else ''} of {each.runs // cases} runs each"
    screening = f"at most {rounds_words} ({_about(each, rounds)})"
    if specs.prior is not None:
        screening = f"no screening (ranking of prior {specs.prior.name})"
    later = ""
    if study.tune is not None:
        tuning = _tuning_effort(specs)
        later += f", then {tuning.runs} runs of tuners ({_about(tuning)})"
    if study.remeasure.findings:
        remeasuring = _remeasuring_effort(specs)
        later += f", then at most {remeasuring.runs} runs to measure mismatches again ({_about(remeasuring)})"
    sweep = f"{_describe_sweep(specs)} for the selected knobs ({_about(sweep_effort(specs))})"
    head = f"{study.name}: {cases} case{'s' if cases != 1 else ''}, {screening}"
    line = f"{head}, then {sweep}{later}; {describe_whole(specs)}"
    more = (_describe_budget, _describe_room, _describe_dependents, describe_left_out)
    return loosen_units("\n".join([line, *(line for describe in more for line in describe(specs))]))


def describe_whole(specs: StudySpecs) -> str:
    """Return how many runs the whole study takes, and how long: if each case has one mismatch, and at most."""
    whole = _whole(specs)
    most = f"at most {whole.runs} runs, {_about(whole)}"
    if not specs.study.remeasure.findings:
        return f"in all {most}"
    again = ((case, expect_remeasuring_runs(specs, case)) for case in specs.cases)
    usual = _before_remeasuring(specs) + effort_of(specs, again)
    return f"in all about {usual.runs} runs, {format_seconds(usual.seconds)}, with one mismatch per case, and {most}"


def _about(effort: Effort, times: int = 1) -> str:
    return f"about {format_seconds(effort.seconds * times)}"


def _whole(specs: StudySpecs) -> Effort:
    """Return the effort of the whole study, at most."""
    return _before_remeasuring(specs) + _remeasuring_effort(specs)


def _before_remeasuring(specs: StudySpecs) -> Effort:
    """Return the effort of screening, sweep and tuners, at most."""
    rounds = 0 if specs.prior is not None else affordable_rounds(specs)
    return sum([screening_effort(specs)] * rounds, sweep_effort(specs) + _tuning_effort(specs))


def _describe_sweep(specs: StudySpecs) -> str:
    sweep = specs.study.sweep
    if sweep.most is None:
        return f"{sweep.repeats} blocks"
    return f"{sweep.repeats} blocks, {sweep.most} at most where noise hides effects of {sweep.effect:g}x,"


def _describe_budget(specs: StudySpecs) -> list[str]:
    """Return a line that says what a budget of runs or hours allows, and whether it holds; none without a budget."""
    budget, rounds = specs.study.budget, 0 if specs.prior is not None else affordable_rounds(specs)
    limits = [f"{budget.runs} runs"] if budget.runs is not None else []
    limits += [f"{budget.hours:g} h"] if budget.hours is not None else []
    if not limits:
        return []
    whole = _whole(specs)
    parts = f"{rounds} of {specs.study.sampling.max_rounds} screening rounds and what follows them take"
    holds = whole.runs <= (budget.runs or whole.runs) and whole.seconds <= 3600 * (budget.hours or whole.seconds)
    cost = f"{parts if rounds else 'the study takes'} at most {whole.runs} runs, {_about(whole)}"
    more = "" if holds else ", which is more: leave out knobs, values, repeats or cases"
    return [f"budget of {' and '.join(limits)}: {cost}{more}"]


def _describe_room(specs: StudySpecs) -> list[str]:
    """Return a line for each case whose data may not fit on its device, or into the budget, as far as is known now."""
    lines = []
    for case in specs.cases:
        workload, emulated = specs.workloads[case.workload], specs.devices[case.device].emulate
        levels = case_space(specs, case).levels
        loaded = [len(levels[name]) for name in levels if specs.dbms[case.dbms].knobs[name].apply == "load"]
        loads = min(prod(loaded), specs.study.sampling.runs_per_round)
        room = specs.study.budget.disk_gb * 1e9
        room = min(room, emulated.size.bytes) if emulated is not None else room
        each = estimate_space(workload, specs.generators.get(workload.generator))
        if each * (loads + 1) / 2 > room:  # half of the estimate is the copy of the run in hand, of which there is one
            needs = f"may take {format_size(each * (loads + 1) / 2)} by estimate ({plural(loads, 'load-time setting')})"
            counts = "refused at once" if each > room else "judged by the size of the first load once that is known"
            lines.append(f"{case}: data of {workload.name} {needs}; there is room for {format_size(room)}: {counts}")
    return lines


def _describe_dependents(specs: StudySpecs) -> list[str]:
    """Return a line for each knob and change of others with which the sweep measures values of it."""
    dependents: dict[tuple[str, str, str], dict[str, None]] = {}
    for case in specs.cases:
        for dependent in list_dependents(specs, case):
            beside = ", ".join(f"{name} = {value_text(value)}" for name, value in (dependent.change or {}).items())
            dependents.setdefault((case.dbms, dependent.knob, beside), {})[value_text(dependent.value)] = None
    return [
        f"{dbms}: {knob} = {', '.join(values)} {'is' if len(values) == 1 else 'are'} swept with {beside}"
        for (dbms, knob, beside), values in dependents.items()
    ]


def describe_left_out(specs: StudySpecs) -> list[str]:
    """Return a line for each value that the sweep cannot measure, with the reason, and one on what `all` leaves out."""
    replaced = {
        (dbms, refused.knob, value_text(refused.value)) for dbms, refused in _list_refused(specs) if refused.is_replaced
    }
    rows = [row for case in specs.cases for row in list_left_out(specs, case) if "value" in row]
    rows = [row for row in rows if (row["dbms"], row["knob"], row["value"]) not in replaced]
    lines = [f"{row['dbms']}: {row['knob']} = {row['value']} is left out: {row['reason']}" for row in rows]
    return [*dict.fromkeys(lines), *_count_replaced(specs), *_count_left_out(specs)]


def _list_refused(specs: StudySpecs) -> Iterator[tuple[str, RefusedValue]]:
    """Yield what the DBMSs of a study refuse of its knobs, or take for other values."""
    for name, dbms in specs.dbms.items():
        yield from ((name, refused) for refused in list_refused(dbms, specs.study.knobs[name]))


def _count_replaced(specs: StudySpecs) -> list[str]:
    """Return a line for each DBMS that takes values for others: how many."""
    counts = Counter(dbms for dbms, refused in _list_refused(specs) if refused.is_replaced)
    return [
        f"{dbms}: {plural(count, 'value')} of its knobs {'is' if count == 1 else 'are'} taken for others, which are "
        "measured instead: the report lists them"
        for dbms, count in counts.items()
    ]


def _count_left_out(specs: StudySpecs) -> list[str]:
    """Return a line for each DBMS of which `all` leaves knobs out: how many, of how many."""
    counts = [(name, len(specs.study.knobs[name]), len(knobs)) for name, knobs in specs.left_out.items() if knobs]
    return [
        f"{name}: {varied} knobs are varied; `all` leaves out {count} of {varied + count}, which the report lists with "
        "the reason of each"
        for name, varied, count in counts
    ]


def _tuning_effort(specs: StudySpecs) -> Effort:
    tune = specs.study.tune
    return effort_of(specs, ((case, count_runs(case, tune)) for case in specs.cases)) if tune else Effort(0, 0)


def _remeasuring_effort(specs: StudySpecs) -> Effort:
    """Return the effort of measuring mismatches again, as if all were of the case whose runs take longest."""
    count = count_remeasuring_runs(specs)
    return max((effort_of(specs, [(case, count)]) for case in specs.cases), key=lambda effort: effort.seconds)

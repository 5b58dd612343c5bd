"""How many runs a study takes at most, and how long they last: the estimate by which a budget bounds screening."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from knobscope.specs import Case, StudySpecs, Workload
from knobscope.stages.plan.blocks import sentinel_positions, split_into_blocks
from knobscope.stages.plan.dependents import sweep_configurations, swept_values
from knobscope.stages.plan.pairs import count_combinations
from knobscope.stages.plan.rounds import case_space, screening_blocks

#: Copying, starting and stopping around warm-up and measured time.
_OVERHEAD_S = 1.5
#: Writing rows, killing the server and starting it again, where the study measures recovery.
_RECOVERY_S = 2.5


@dataclass(frozen=True)
class Effort:
    """So many runs, which take so many seconds."""

    runs: int
    seconds: float

    def __add__(self, other: "Effort") -> "Effort":
        """Return the effort of both."""
        return Effort(self.runs + other.runs, self.seconds + other.seconds)


def _seconds_of_run(workload: Workload) -> float:
    """Return how long one run of a workload takes: warm-up, measured time, and a usual overhead."""
    return workload.warmup_s + workload.measure_s + _OVERHEAD_S


def effort_of(specs: StudySpecs, runs: Iterable[tuple[Case, int]]) -> Effort:
    """Return the effort of so many runs of each case."""
    counted = list(runs)
    more = _RECOVERY_S if "recovery" in specs.study.measure else 0.0
    seconds = (count * (_seconds_of_run(specs.workloads[case.workload]) + more) for case, count in counted)
    return Effort(sum(count for _, count in counted), sum(seconds))


def screening_effort(specs: StudySpecs) -> Effort:
    """Return the effort of one round of screening of all cases."""
    parts = split_into_blocks(range(specs.study.sampling.runs_per_round), screening_blocks(specs))
    runs = sum(len(part) + len(sentinel_positions(len(part))) for part in parts)
    return effort_of(specs, ((case, runs) for case in specs.cases))


def sweep_effort(specs: StudySpecs) -> Effort:
    """Return the effort of the sweeps of all cases at most: the selected knobs may be those with the most values."""
    return effort_of(specs, ((case, _count_sweep_runs(specs, case)) for case in specs.cases))


def _count_sweep_runs(specs: StudySpecs, case: Case) -> int:
    study, space = specs.study, case_space(specs, case)
    swept = list(swept_values(specs, case, space, list(space.levels)))
    counts = {
        name: len(sweep_configurations([value for value in swept if value.knob == name])) for name in space.levels
    }
    always = sum(count for name, count in counts.items() if name in study.sweep.always)
    candidates = sorted((count for name, count in counts.items() if name not in study.sweep.always), reverse=True)
    # What is selected in any case of a DBMS is swept in all of them, and so are both knobs of a pair.
    rankings = sum(other.dbms == case.dbms for other in specs.cases)
    values = always + sum(candidates[: study.screening.top * rankings + 2 * study.sweep.pairs])
    together = (count_combinations(first, second) for first, second in combinations(counts.values(), 2))
    values += sum(sorted(together, reverse=True)[: study.sweep.pairs])
    return (study.sweep.most or study.sweep.repeats) * (values + len(sentinel_positions(values)))

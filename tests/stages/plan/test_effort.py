"""How many runs a study takes at most, and what a budget leaves of them."""

from dataclasses import replace
from typing import Any

import pytest
from shipped_specs import shipped_study

from knobscope.specs import StudySpecs
from knobscope.specs.models.study import Budget, Remeasure
from knobscope.stages.plan import Effort, effort_of, plan_screening, plan_sweep, screening_effort, sweep_effort
from knobscope.stages.remeasure import count_remeasuring_runs, expect_remeasuring_runs
from knobscope.workflow.forecast import affordable_rounds, describe_study


@pytest.fixture(scope="module")
def specs() -> StudySpecs:
    """Two cases of 26.5 s a run, 12 knobs of which 5 of any go on; at most 4 rounds."""
    return shipped_study("sqlite-io")


def with_budget(specs: StudySpecs, **limits: Any) -> StudySpecs:
    return replace(specs, study=specs.study.model_copy(update={"budget": Budget(**limits)}))


def later_effort(specs: StudySpecs) -> Effort:
    """Return what comes after screening at most: the sweep, and mismatches measured again."""
    return sweep_effort(specs) + effort_of(specs, [(specs.cases[0], count_remeasuring_runs(specs))])


def test_a_round_takes_as_many_runs_as_are_planned(specs: StudySpecs) -> None:
    planned = [len(plan_screening(specs, case, 0)) for case in specs.cases]
    assert screening_effort(specs).runs == sum(planned)
    assert screening_effort(specs).seconds == pytest.approx(sum(planned) * 26.5)


def test_no_sweep_takes_more_runs_than_are_foreseen(specs: StudySpecs) -> None:
    study, most = specs.study, 0
    names = list(study.knobs["sqlite"])
    others = [name for name in names if name not in study.sweep.always]
    for start in range(len(others)):
        selected = (others[start:] + others[:start])[
            : study.screening.top * len(specs.cases)
        ]  # other ones in each case
        chosen = [*study.sweep.always, *selected]
        most = max(most, sum(len(plan_sweep(specs, case, chosen)) for case in specs.cases))
    assert most <= sweep_effort(specs).runs <= 1.5 * most


def test_hours_bound_the_rounds_so_that_all_fits(specs: StudySpecs) -> None:
    each, later = screening_effort(specs), later_effort(specs)
    for rounds in (1, 2, 3, 4):
        hours = (rounds * each.seconds + later.seconds) / 3600
        assert affordable_rounds(with_budget(specs, hours=hours * 1.001)) == rounds
        assert affordable_rounds(with_budget(specs, hours=hours * 0.999)) == max(1, rounds - 1)
    assert affordable_rounds(with_budget(specs, hours=1000)) == specs.study.sampling.max_rounds
    assert affordable_rounds(with_budget(specs)) == specs.study.sampling.max_rounds


def test_runs_bound_the_rounds_so_that_all_fits(specs: StudySpecs) -> None:
    each, later = screening_effort(specs), later_effort(specs)
    assert affordable_rounds(with_budget(specs, runs=2 * each.runs + later.runs)) == 2
    assert affordable_rounds(with_budget(specs, runs=2 * each.runs + later.runs - 1)) == 1
    assert affordable_rounds(with_budget(specs, runs=2 * each.runs + later.runs, hours=0.1)) == 1


def test_the_budget_is_reported_with_what_it_leaves(specs: StudySpecs) -> None:
    each, later = screening_effort(specs), later_effort(specs)
    runs, hours = 2 * each.runs + later.runs, (2 * each.seconds + later.seconds) / 3600
    told = describe_study(with_budget(specs, hours=hours + 0.01)).splitlines()
    assert "at most 2 screening rounds" in told[0]
    assert told[1] == (
        f"budget of {hours + 0.01:g} h: 2 of 4 screening rounds and what follows them take at most {runs} runs, "
        f"about {int(hours)} h {round(60 * hours) % 60} min"
    )
    short = describe_study(with_budget(specs, hours=0.5, runs=100)).splitlines()
    assert short[1].startswith("budget of 100 runs and 0.5 h: 1 of 4 screening rounds and what follows them take")
    assert short[1].endswith(", which is more: leave out knobs, values, repeats or cases")
    assert "budget" not in describe_study(specs)


def test_what_is_measured_again_is_reported_unless_nothing_is(specs: StudySpecs) -> None:
    count = count_remeasuring_runs(specs)
    assert f"then at most {count} runs to measure mismatches again" in describe_study(specs)
    usual = screening_effort(specs).runs * affordable_rounds(specs) + sweep_effort(specs).runs
    usual += sum(expect_remeasuring_runs(specs, case) for case in specs.cases)
    assert f"; in all about {usual} runs, " in describe_study(specs)
    off = replace(specs, study=specs.study.model_copy(update={"remeasure": Remeasure(findings=0)}))
    assert "again" not in describe_study(off)
    assert "; in all at most" in describe_study(off)


def test_effort_adds_up(specs: StudySpecs) -> None:
    one = effort_of(specs, [(specs.cases[0], 3)])
    assert (one + one).runs == 6
    assert (one + one).seconds == pytest.approx(6 * 26.5)


def test_a_run_that_ends_with_a_crash_takes_longer() -> None:
    specs = shipped_study("postgresql-recovery")
    calm = replace(specs, study=specs.study.model_copy(update={"measure": []}))
    crashed, ended = (effort_of(each, [(specs.cases[0], 1)]).seconds for each in (specs, calm))
    assert crashed - ended > 1.5, "rows are written for so long, and then the server has to start"

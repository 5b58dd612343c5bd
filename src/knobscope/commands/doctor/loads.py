"""Whether the load of a study works: each case loads its data and measures its default configuration once."""

from pathlib import Path

from knobscope.commands.doctor.checks import Finding, attempt
from knobscope.devices import open_locked
from knobscope.errors import UserError
from knobscope.specs import Case, StudySpecs, load_study
from knobscope.stages.measure import Bench, measure_run
from knobscope.stages.plan import case_space
from knobscope.stages.prepare import SnapshotFailedError, load_values_of, prepare_snapshot, remove_leftovers
from knobscope.text.formats import format_micros, format_rate
from knobscope.watch import open_watch

_PAGE = 4096


def try_loads(study: Path, root: Path) -> list[Finding]:
    """Return what came of a run of each case. SpecErrors: the study is wrong, or lacks something else."""
    specs = load_study(study, root)
    results = [(str(case), *attempt(lambda case=case: _try(specs, case, root))) for case in specs.cases]  # type: ignore[misc]
    return [Finding("load", name, usable, True, text) for name, usable, text in results]


def _try(specs: StudySpecs, case: Case, root: Path) -> str:
    """Carry out one run, and leave the loaded data to the study; UserError: it failed."""
    dbms, workload, study = specs.dbms[case.dbms], specs.workloads[case.workload], specs.study
    generator, default = specs.generators.get(workload.generator), case_space(specs, case).default
    with open_locked([specs.devices[case.device]], root, study.name) as [opened]:
        remove_leftovers(opened.directory)
        try:
            loaded = prepare_snapshot(dbms, workload, load_values_of(dbms, dict(default)), opened.directory, generator)
        except SnapshotFailedError as error:
            raise UserError(f"{error}: {error.log_tail}") from error
        with open_watch(opened.block, _PAGE, "process", "procfs") as watch:
            bench = Bench(
                dbms, workload, opened.directory, watch, generator, blocks=[opened.block], client=study.client
            )
            run = measure_run(bench, "trial", default, loaded)["run"]
    if run["status"] != "ok":
        raise UserError(f"{run['status']}: {run['reason']}")
    return f"{format_rate(run['throughput_ops'])}, {format_micros(run['latency_p95_us'])} at the 95th percentile"

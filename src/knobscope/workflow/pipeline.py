"""What the Snakefile knows of a study: its cases, files and rounds, and what must trigger a new calculation.

Only the Snakefile imports this module. Snakemake sees spec contents through `params`, so that a changed range plans
anew and a changed comment does nothing.
"""

import atexit
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from knobscope.errors import UserError
from knobscope.identity import data_identity, hash_identity, remember_programs, run_identity, varied_knobs
from knobscope.processes import PIPELINE_VARIABLE
from knobscope.specs import SPECS_VARIABLE, Case, StudySpecs, digest_specs, load_study, parse_case, select_fields
from knobscope.specs.checks.emulation_limits import describe_limits
from knobscope.specs.models.study import Remeasure
from knobscope.stages.detect import check_queries
from knobscope.stages.plan import RESPONSIVE, aim_of, case_space, identify_sampling, sampling_method, screening_blocks
from knobscope.workflow import recovery
from knobscope.workflow.checkpoints import find_output, is_asked, read_output
from knobscope.workflow.fitting import describe_fitting
from knobscope.workflow.forecast import affordable_rounds, describe_study
from knobscope.workflow.options import find_study_file
from knobscope.workflow.retry import retry_failed_runs
from knobscope.workflow.windows import describe_windows

Dump = dict[str, Any]


@dataclass(frozen=True)
class Pipeline:
    """A study as files and rounds."""

    specs: StudySpecs
    study_file: str

    @classmethod
    def open(cls, config: Dump, workflow: Any) -> "Pipeline":
        """Read the study that ``--config study=...`` names; wrong specs end Snakemake with exit code 2.

        On a cluster each job's node reads it again, in a Snakemake of its own: what is there once in a study (who works
        in the folder, what is damaged, what is to be measured again) is settled by the one that submits the jobs.
        """
        plans = not is_asked(recovery.LOOKS)
        runs = plans and not workflow.output_settings.dryrun
        try:
            study_file = find_study_file(config)
            # Known before the executor is: `jobs` says that jobs go elsewhere, `cores` that they run here.
            is_here = not workflow.remote_exec and workflow.resource_settings.nodes is None
            pipeline = cls(load_study(Path(study_file), Path.cwd(), runnable=is_here), study_file)
            if plans and not workflow.remote_exec:
                recovery.require_own_files(Path(pipeline.results))
                pipeline.require_installed()
                check_queries(pipeline.specs)
            if runs:
                recovery.require_writable(Path(pipeline.results))
            if runs and not workflow.remote_exec:
                recovery.claim_study(pipeline.specs.study.name, workflow.snakemake_tmp_dir)
            description = "" if workflow.remote_exec else pipeline.describe()  # finds what cannot be planned
        except UserError as error:
            print(f"knobscope: {error}", file=sys.stderr)
            sys.exit(2)
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ[PIPELINE_VARIABLE] = str(os.getpid())
        for name in ("machine", *pipeline.all_devices):
            workflow.global_resources.setdefault(name, 1)
        if workflow.remote_exec:
            return pipeline
        os.environ[SPECS_VARIABLE] = json.dumps(digest_specs(pipeline.specs))
        for sentence in recovery.tell_damaged(Path(pipeline.results), sets_aside=runs):
            print(f"knobscope: {sentence}", file=sys.stderr)
        if plans and config.get("retry_failed"):
            description += f"\n{retry_failed_runs(Path(pipeline.results), runs=runs)}"
        limits = [text for device in pipeline.specs.devices.values() for text in describe_limits(device)]
        print("\n".join([description, *limits]), file=sys.stderr)
        if not runs:  # hundreds of lines about jobs follow, whatever --quiet says
            atexit.register(print, description, file=sys.stderr)
        return pipeline

    def require_installed(self) -> None:
        """Raise UserError when a program is missing whose version defines runs: Snakemake would show a traceback."""
        for case in self.cases:
            self.run_spec(str(case), "screen")

    def check_versions(self, workflow: Any) -> None:
        """Run what tells the versions of the DBMSs; a study for other ones ends Snakemake with exit code 2.

        Not before something is to be done: a dry run runs no program of a spec. On a cluster it is each job's own
        business: the machine that submits them need not have a DBMS or a device.
        """
        if not workflow.local_exec:
            return
        remember_programs(self.specs)
        try:
            load_study(Path(self.study_file), Path.cwd(), ask_versions=True)
        except UserError as error:
            print(f"knobscope: {error}", file=sys.stderr)
            sys.exit(2)

    def describe(self) -> str:
        """Return what the study will measure at most and leave out, what windows will hold, and which priors fit."""
        models = Path(self.study_file).absolute().parent.parent.parent / "models"
        windows = describe_windows(self.specs, Path("results"))
        return "\n".join([describe_study(self.specs), *windows, *describe_fitting(self.specs, models)])

    @property
    def results(self) -> str:
        """Folder of everything the study makes."""
        return f"results/{self.specs.study.name}"

    @property
    def cases(self) -> list[Case]:
        """All combinations of DBMS, device and workload."""
        return self.specs.cases

    @property
    def devices(self) -> list[str]:
        """Names of the devices."""
        return list(self.specs.devices)

    @cached_property  # it takes longer in a large study, and is asked for with each fit
    def max_rounds(self) -> int:
        """Rounds that `sampling.max_rounds` and the budget allow; at least one."""
        return affordable_rounds(self.specs)

    @property
    def device_resources(self) -> dict[str, Any]:
        """One Snakemake resource per device, of which there is one: a device is used by one job at a time."""

        def uses(device: str) -> Any:
            return lambda wildcards: int(device in self.case_devices(wildcards.case))

        return {f"device_{device.replace('-', '_')}": uses(device) for device in self.devices}

    def case_devices(self, case: str) -> list[str]:
        """Return the device of the data, and those that parts of it may lie on."""
        names = parse_case(case)
        return [names.device, *self.specs.layout_devices(names.dbms)]

    def profiles(self, case: str) -> list[str]:
        """Return the device profiles of a case, that of the data's device first."""
        return [f"{self.results}/devices/{device}.json" for device in self.case_devices(case)]

    @property
    def all_devices(self) -> dict[str, int]:
        """The resources of all devices, for a job that may use any."""
        return {f"device_{device.replace('-', '_')}": 1 for device in self.devices}

    @property
    def judged_database(self) -> str:
        """The database whose findings `imitate` puts to the test: that of `remeasure`, where it measures anything."""
        return f"{self.results}/{'explained' if self.specs.study.remeasure.findings else 'detected'}.duckdb"

    @property
    def remeasure_spec(self) -> Dump:
        """What the causes depend on, in addition to the findings and the devices, as finished studies recorded it.

        A study without a number of effects to follow recorded 0, one with the usual number of power cuts none: they
        stay finished.
        """
        recorded = dict(select_fields(self.specs.study, "remeasure")["remeasure"])
        if recorded["cuts"] == Remeasure.model_fields["cuts"].default:
            del recorded["cuts"]
        return {"explain": {**recorded, "what_if": recorded["what_if"] or 0}}

    @property
    def rule_files(self) -> list[str]:
        """Files of the study's mismatch rules: an edited rule judges anew."""
        return [os.path.relpath(file) for rule in self.specs.rules.values() for file in rule.files]

    def by_case(self, files: Callable[[str], list[str]]) -> list[Callable[[Any], list[str]]]:
        """Return an input function for each case, in their order: what `files` gives for it.

        A function ends at the first checkpoint that has not been evaluated. One function for all cases would end at one
        of the first case: Snakemake would hear of the others one by one, evaluate the whole study anew each time, and
        begin the second round of a case only after the last round of the case before.
        """

        def of(case: str) -> Callable[[Any], list[str]]:
            return lambda wildcards: files(case)

        return [of(str(case)) for case in self.cases]

    def last_fits(self, checkpoints: Any, dbms: str | None = None) -> list[str]:
        """Return the fit each case ends with: the first that may stop, that of the last round, or that of the prior."""
        return [self._last_fit(checkpoints, case) for case in self.cases if dbms in (None, case.dbms)]

    def last_fit(self, checkpoints: Any, case: str) -> str:
        """Return the fit that one case ends with."""
        return self._last_fit(checkpoints, parse_case(case))

    def _last_fit(self, checkpoints: Any, case: Case) -> str:
        if self.specs.prior is not None:
            return f"{self.results}/{case}/fit/prior.json"
        path = ""
        for round_ in range(self.max_rounds):
            path = find_output(checkpoints.select, str(case), round_)
            fit = read_output(path)
            if fit is None or (fit["stopped"] and self._suffices(fit)):
                break
        return path

    def _suffices(self, fit: Dump) -> bool:
        """Whether a fit that stopped would stop under the threshold of now, too."""
        screening = self.specs.study.screening
        return screening.stop == "stability" or bool(min(fit["r2_splits"]) >= screening.threshold)

    def screening_runs(self, case: str, round_: int) -> list[str]:
        """Return the blocks of all screening rounds up to this one."""
        blocks = range(screening_blocks(self.specs))
        return [f"{self.results}/{case}/runs/screen-{r}-{block}" for r in range(round_ + 1) for block in blocks]

    def screening_plans(self, case: str, round_: int) -> list[str]:
        """Return the plans of all screening rounds up to this one."""
        return [f"{self.results}/{case}/plan/screen-{r}.parquet" for r in range(round_ + 1)]

    def earlier_runs(self, case: str, round_: int) -> list[str]:
        """Return the blocks that a screening round is planned by; none unless its sampling method looks at them."""
        return self.screening_runs(case, round_ - 1) if self._is_responsive(case) else []

    def earlier_plans(self, case: str, round_: int) -> list[str]:
        """Return the plans that the plan of a screening round goes by."""
        return self.screening_plans(case, round_ - 1) if self._is_responsive(case) else []

    def _is_responsive(self, case: str) -> bool:
        return sampling_method(self.specs, parse_case(case)) in RESPONSIVE

    def all_runs(self, checkpoints: Any) -> list[str]:
        """Return all blocks of the study: screening, sweep, and what tuners tried."""
        tuned = ["runs/tune"] if self.specs.study.tune else []
        return [
            path
            for case, round_ in self._last_rounds(checkpoints)
            for path in [
                *self.screening_runs(str(case), round_),
                *self.sweep_runs(checkpoints, str(case)),
                *(f"{self.results}/{case}/{name}" for name in tuned),
            ]
        ]

    def all_plans(self, checkpoints: Any) -> list[str]:
        """Return the plans of all rounds."""
        later = ["tune"] if self.specs.study.tune else []
        return [
            path
            for case, round_ in self._last_rounds(checkpoints)
            for path in [
                *self.screening_plans(str(case), round_),
                *self.sweep_plans(checkpoints, str(case)),
                *(f"{self.results}/{case}/plan/{name}.parquet" for name in later),
            ]
        ]

    def sweep_runs(self, checkpoints: Any, case: str, last: int | None = None) -> list[str]:
        """Return the blocks of all rounds of a sweep, or of those up to `last`."""
        rounds = self._sweep_rounds(checkpoints, case, last)
        return [f"{self.results}/{case}/runs/sweep-{r}-{block}" for r, blocks in rounds for block in range(blocks)]

    def sweep_plans(self, checkpoints: Any, case: str, last: int | None = None) -> list[str]:
        """Return the plans of all rounds of a sweep, or of those up to `last`."""
        return [f"{self.results}/{case}/plan/sweep-{r}.parquet" for r, _ in self._sweep_rounds(checkpoints, case, last)]

    def last_reinforcement(self, checkpoints: Any, case: str) -> list[str]:
        """Return what ended the sweep of a case; nothing in a study that measures every value equally often."""
        if self.specs.study.sweep.most is None:
            return []
        *_, (round_, _) = self._sweep_rounds(checkpoints, case)
        return [f"{self.results}/{case}/repeat/{round_}.json"]

    def reinforcement_before(self, case: str, round_: int) -> str:
        """Return what asked for a further round of a sweep."""
        return f"{self.results}/{case}/repeat/{round_ - 1}.json"

    def _sweep_rounds(self, checkpoints: Any, case: str, last: int | None = None) -> Iterator[tuple[int, int]]:
        """Yield each round of a sweep with its number of blocks: those that the round before has asked for."""
        sweep = self.specs.study.sweep
        round_, blocks = 0, sweep.repeats
        while blocks:
            yield round_, blocks
            if sweep.most is None or round_ == last:
                return
            wanted = read_output(find_output(checkpoints.reinforce, case, round_))
            blocks = wanted["more"] if wanted is not None else 0
            round_ += 1

    def all_fits(self, checkpoints: Any) -> list[str]:
        """Return the fits of all rounds, or those of the prior."""
        if self.specs.prior is not None:
            return self.last_fits(checkpoints)
        return [
            f"{self.results}/{case}/fit/{r}.json"
            for case, round_ in self._last_rounds(checkpoints)
            for r in range(round_ + 1)
        ]

    def _last_rounds(self, checkpoints: Any) -> Iterator[tuple[Case, int]]:
        """Yield each case with its last screening round, -1 when a prior replaces all rounds."""
        for case in self.cases:
            screened = self.specs.prior is None
            yield case, int(Path(self._last_fit(checkpoints, case)).stem) if screened else -1

    def plan_spec(self, case: str) -> Dump:
        """What a screening plan depends on."""
        return {**self._planned(case, "plan"), **identify_sampling(self.specs, parse_case(case))}

    def sweep_spec(self, case: str) -> Dump:
        """What the plan of the sweep depends on."""
        return self._planned(case, "sweep")

    @property
    def reinforce_spec(self) -> Dump:
        """What the number of blocks of a sweep depends on, in addition to its runs; tiers are recorded if alike."""
        aim = aim_of(self.specs, values=1)
        return {
            **({"tiers": 1} if len(self.devices) > 1 and not aim.between_devices else {}),
            **select_fields(self.specs.study, "reinforce"),
            "fdr": aim.fdr,
            "comparisons_per_value": aim.comparisons,
        }

    def _planned(self, case: str, product: Literal["plan", "sweep", "tune"]) -> Dump:
        dbms = self.specs.dbms[parse_case(case).dbms]
        knobs = {name: dbms.knobs[name] for name in varied_knobs(self.specs, dbms.name)}
        return {
            "study": select_fields(self.specs.study, product),
            "dbms": select_fields(dbms.model_copy(update={"knobs": knobs}), product),
            "facts": case_space(self.specs, parse_case(case)).facts,
        }

    def device_spec(self, device: str) -> Dump:
        """What a device profile depends on."""
        return {
            "device": select_fields(self.specs.devices[device], "profile"),
            "study": select_fields(self.specs.study, "profile"),
        }

    def data_spec(self, case: str) -> Dump:
        """What the loaded data of a case depends on, next to the plan."""
        dbms, device, workload = (getattr(self.specs, kind) for kind in ("dbms", "devices", "workloads"))
        names = parse_case(case)
        generator = self.specs.generators.get(workload[names.workload].generator)
        knobs = varied_knobs(self.specs, names.dbms)
        return {
            **data_identity(dbms[names.dbms], workload[names.workload], generator, knobs),
            "device": select_fields(device[names.device], "run"),
        }

    def run_spec(self, case: str, phase: str) -> Dump:
        """What the runs of a case depend on, next to the plan; the same for all its blocks."""
        names = parse_case(case)
        if (case, phase) not in self._run_specs:
            self._run_specs[case, phase] = run_identity(self.specs, names, phase, varied_knobs(self.specs, names.dbms))
        return self._run_specs[case, phase]

    @cached_property
    def _run_specs(self) -> dict[tuple[str, str], Dump]:
        """What is known of the runs of cases; filled by `run_spec`."""
        return {}

    def prior_spec(self, case: str) -> Dump:
        """What a fit depends on that comes from a prior."""
        names = parse_case(case)
        return {
            "prior": self.specs.prior.model_dump(mode="json") if self.specs.prior else {},
            "knobs": sorted(self.specs.study.knobs[names.dbms]),
            "workload": select_fields(self.specs.workloads[names.workload], "prior"),
            "dbms": select_fields(self.specs.dbms[names.dbms], "prior"),
            "study": select_fields(self.specs.study, "prior"),
        }

    def tune_spec(self, case: str) -> Dump:
        """What the tuners of a case depend on, in addition to its ranking."""
        return {"runs": self.run_spec(case, "tune"), "tuners": self._planned(case, "tune")}

    @property
    def fit_spec(self) -> Dump:
        """What a fit depends on, in addition to the runs."""
        return select_fields(self.specs.study, "fit")

    @property
    def detect_spec(self) -> Dump:
        """What the verdicts depend on, in addition to the runs."""
        knobs = {name: select_fields(dbms, "verdict") for name, dbms in self.specs.dbms.items()}
        workloads = {name: select_fields(workload, "verdict") for name, workload in self.specs.workloads.items()}
        # Left out where nothing is said, so that finished studies stay finished.
        stated = {"workloads": workloads} if any(any(fields.values()) for fields in workloads.values()) else {}
        return {"study": select_fields(self.specs.study, "verdict"), "dbms": knobs, **stated}

    @property
    def report_spec(self) -> str:
        """A hash of the words of specs that only the report shows: there may be many."""
        specs = [*self.specs.devices.values(), *self.specs.dbms.values(), *self.specs.workloads.values()]
        return hash_identity({"words": [select_fields(spec, "report") for spec in (self.specs.study, *specs)]}, 12)

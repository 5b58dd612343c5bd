"""What the Snakefile knows of a study: its cases, files and rounds, and what must trigger a new calculation.

Only the Snakefile imports this module. Snakemake sees spec contents through `params`, so that a changed range plans
anew and a changed comment does nothing.
"""

import fcntl
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from knobscope.errors import UserError
from knobscope.explain import count_explaining_runs
from knobscope.identity import data_identity, run_identity, varied_knobs
from knobscope.plan import RESPONSIVE, case_space, list_left_out, parse_case, screening_blocks
from knobscope.processes import PIPELINE_VARIABLE
from knobscope.recovery import require_writable, set_aside_damaged
from knobscope.retry import forget_failed_runs
from knobscope.specs import Case, StudySpecs, load_study, select_fields
from knobscope.specs.emulation_limits import describe_limits
from knobscope.storage import read_sealed
from knobscope.tune import count_runs

__all__ = ["Pipeline"]

#: Folder of notes below .snakemake: where pipelines keep Snakemake's temporary files.
_TEMPORARY = "knobscope-temporary"
_DEFAULT_STUDY = "specs/studies/quickstart.yaml"
#: Copying, starting and stopping around warm-up and measured time, for the estimate only.
_OVERHEAD_S = 1.5

Dump = dict[str, Any]


@dataclass(frozen=True)
class Pipeline:
    """A study as files and rounds."""

    specs: StudySpecs
    study_file: str

    @classmethod
    def open(cls, config: Dump, workflow: Any) -> "Pipeline":
        """Read the study that ``--config study=...`` names; wrong specs end Snakemake with exit code 2."""
        study_file = str(config.get("study", _DEFAULT_STUDY))
        try:
            pipeline = cls(load_study(Path(study_file), Path.cwd()), study_file)
            if not workflow.output_settings.dryrun:
                require_writable(Path(pipeline.results))
        except UserError as error:
            print(f"knobscope: {error}", file=sys.stderr)
            sys.exit(2)
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ[PIPELINE_VARIABLE] = str(os.getpid())
        for name in ("machine", *(f"device_{device.replace('-', '_')}" for device in pipeline.devices)):
            workflow.global_resources.setdefault(name, 1)
        if not workflow.output_settings.dryrun:
            _claim_directory(workflow.snakemake_tmp_dir)
            for sentence in set_aside_damaged(Path(pipeline.results)):
                print(f"knobscope: {sentence}", file=sys.stderr)
            if config.get("retry_failed"):
                count = forget_failed_runs(Path(pipeline.results))
                print(f"knobscope: {count} runs that failed are measured again", file=sys.stderr)
        print(pipeline.describe(), file=sys.stderr)
        for device in pipeline.specs.devices.values():
            for text in describe_limits(device):
                print(text, file=sys.stderr)
        return pipeline

    def check_versions(self) -> None:
        """Run what tells the versions of the DBMSs; a study for other ones ends Snakemake with exit code 2.

        Not before something is to be done: a dry run runs no program of a spec.
        """
        try:
            load_study(Path(self.study_file), Path.cwd(), ask_versions=True)
        except UserError as error:
            print(f"knobscope: {error}", file=sys.stderr)
            sys.exit(2)

    def describe(self) -> str:
        """Return in one line how much the study will measure at most, then what its sweep leaves out."""
        study = self.specs.study
        cases = len(self.cases)
        seconds = [
            self.specs.workloads[case.workload].warmup_s + self.specs.workloads[case.workload].measure_s + _OVERHEAD_S
            for case in self.specs.cases
        ]
        rounds = self.max_rounds
        runs = study.sampling.runs_per_round + 3 * screening_blocks(self.specs)
        minutes = sum(seconds) * runs * rounds / 60
        screening = f"at most {rounds} screening rounds of {runs} runs each (about {minutes:.0f} min)"
        if self.specs.prior is not None:
            screening = f"no screening (ranking of prior {self.specs.prior.name})"
        tuning = ""
        if study.tune is not None:
            counts = [count_runs(case, study.tune) for case in self.specs.cases]
            minutes = sum(count * each for count, each in zip(counts, seconds, strict=True)) / 60
            tuning = f", then {sum(counts)} runs of tuners (about {minutes:.0f} min)"
        if study.explain is not None:
            count = count_explaining_runs(self.specs, study.explain)
            tuning += f", then at most {count} runs on what-if devices (about {count * max(seconds) / 60:.0f} min)"
        line = (
            f"{study.name}: {cases} case{'s' if cases != 1 else ''}, {screening}, "
            f"then {study.sweep.repeats} blocks for the selected knobs{tuning}"
        )
        return "\n".join([line, *self.describe_left_out()])

    def describe_left_out(self) -> list[str]:
        """Return a line for each value that the sweep cannot measure, with the reason."""
        rows = [row for case in self.cases for row in list_left_out(self.specs, case)]
        lines = [f"{row['dbms']}: {row['knob']} = {row['value']} is left out: {row['reason']}" for row in rows]
        return list(dict.fromkeys(lines))

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

    @property
    def max_rounds(self) -> int:
        """Rounds that `sampling.max_rounds` and the budget allow; at least one."""
        sampling, budget = self.specs.study.sampling, self.specs.study.budget.runs
        affordable = budget // (sampling.runs_per_round * len(self.cases)) if budget else sampling.max_rounds
        return max(1, min(sampling.max_rounds, affordable))

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
        """The database whose findings `confirm` puts to the test: that of `explain`, where a study asks for it."""
        return f"{self.results}/{'detected' if self.specs.study.explain is None else 'explained'}.duckdb"

    @property
    def explain_spec(self) -> Dump:
        """What the causes depend on, beside the findings and the devices."""
        return select_fields(self.specs.study, "explain")

    @property
    def rule_files(self) -> list[str]:
        """Files of the study's mismatch rules: an edited rule judges anew."""
        return [os.path.relpath(file) for rule in self.specs.rules.values() for file in rule.files]

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
            path = str(checkpoints.select.get(case=str(case), round=round_).output[0])
            fit = read_sealed(Path(path))
            if fit["stopped"] and self._suffices(fit):
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
        return self.screening_runs(case, round_ - 1) if self._is_responsive else []

    def earlier_plans(self, case: str, round_: int) -> list[str]:
        """Return the plans that the plan of a screening round goes by."""
        return self.screening_plans(case, round_ - 1) if self._is_responsive else []

    @property
    def _is_responsive(self) -> bool:
        return self.specs.study.sampling.method in RESPONSIVE

    def all_runs(self, checkpoints: Any) -> list[str]:
        """Return all blocks of the study: screening, sweep, and what tuners tried."""
        sweeps = range(self.specs.study.sweep.repeats)
        tuned = ["runs/tune"] if self.specs.study.tune else []
        return [
            path
            for case, round_ in self._last_rounds(checkpoints)
            for path in [
                *self.screening_runs(str(case), round_),
                *(f"{self.results}/{case}/runs/sweep-0-{block}" for block in sweeps),
                *(f"{self.results}/{case}/{name}" for name in tuned),
            ]
        ]

    def all_plans(self, checkpoints: Any) -> list[str]:
        """Return the plans of all rounds."""
        later = ["sweep-0", *(["tune"] if self.specs.study.tune else [])]
        return [
            path
            for case, round_ in self._last_rounds(checkpoints)
            for path in [
                *self.screening_plans(str(case), round_),
                *(f"{self.results}/{case}/plan/{name}.parquet" for name in later),
            ]
        ]

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
        return self._planned(case, "plan")

    def sweep_spec(self, case: str) -> Dump:
        """What the plan of the sweep depends on."""
        return self._planned(case, "sweep")

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
        """What the loaded data of a case depends on, beside the plan."""
        dbms, device, workload = (getattr(self.specs, kind) for kind in ("dbms", "devices", "workloads"))
        names = parse_case(case)
        generator = self.specs.generators.get(workload[names.workload].generator)
        knobs = varied_knobs(self.specs, names.dbms)
        return {
            **data_identity(dbms[names.dbms], workload[names.workload], generator, knobs),
            "device": select_fields(device[names.device], "run"),
        }

    def run_spec(self, case: str, phase: str) -> Dump:
        """What the runs of a case depend on, beside the plan."""
        names = parse_case(case)
        return run_identity(self.specs, names, phase, varied_knobs(self.specs, names.dbms))

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
        """What the tuners of a case depend on, beside its ranking."""
        return {"runs": self.run_spec(case, "tune"), "tuners": self._planned(case, "tune")}

    @property
    def fit_spec(self) -> Dump:
        """What a fit depends on, beside the runs."""
        return select_fields(self.specs.study, "fit")

    @property
    def detect_spec(self) -> Dump:
        """What the verdicts depend on, beside the runs."""
        knobs = {name: select_fields(dbms, "verdict") for name, dbms in self.specs.dbms.items()}
        return {"study": select_fields(self.specs.study, "verdict"), "dbms": knobs}


def _claim_directory(temporary: Path) -> None:
    """Take over from pipelines that were killed: remove Snakemake's locks and temporary folders when none runs here.

    Each pipeline holds our lock, shared, until it ends, whatever study it is of: who gets it alone is the only one.
    `temporary` is the folder of this pipeline, which the next one removes if this one cannot.
    """
    directory = Path(".snakemake")
    directory.mkdir(exist_ok=True)
    claim = os.open(directory / "knobscope.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for lock in (directory / "locks").glob("*.lock"):
            lock.unlink()
        for note in (directory / _TEMPORARY).glob("*"):
            _remove_temporary(Path(note.read_text(encoding="utf-8")))
            note.unlink()
    except BlockingIOError:
        pass  # another pipeline is at work here; Snakemake's own locks decide
    fcntl.flock(claim, fcntl.LOCK_SH)
    (directory / _TEMPORARY).mkdir(exist_ok=True)
    (directory / _TEMPORARY / temporary.name).write_text(str(temporary), encoding="utf-8")


def _remove_temporary(folder: Path) -> None:
    if folder.name.startswith("snakemake") and folder.is_dir() and folder.lstat().st_uid == os.geteuid():
        shutil.rmtree(folder)

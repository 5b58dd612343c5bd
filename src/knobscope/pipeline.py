"""What the Snakefile knows of a study: its cases, files and rounds, and what must trigger a new calculation.

Only the Snakefile imports this module. Snakemake sees spec contents through `params`, so that a changed range plans
anew and a changed comment does nothing.
"""

import fcntl
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from knobscope.errors import UserError
from knobscope.plan import RESPONSIVE, parse_case, screening_blocks
from knobscope.processes import PIPELINE_VARIABLE
from knobscope.specs import Case, StudySpecs, load_study
from knobscope.tune import count_runs

__all__ = ["Pipeline"]

_DEFAULT_STUDY = "specs/studies/quickstart.yaml"
#: Copying, starting and stopping around warm-up and measured time, for the estimate only.
_OVERHEAD_S = 1.5

Dump = dict[str, Any]


@dataclass(frozen=True)
class Pipeline:
    """A study as files and rounds."""

    specs: StudySpecs
    study_file: str
    home: Path  # of the Snakefile

    @classmethod
    def open(cls, config: Dump, workflow: Any) -> "Pipeline":
        """Read the study that ``--config study=...`` names; wrong specs end Snakemake with exit code 2."""
        study_file = str(config.get("study", _DEFAULT_STUDY))
        try:
            pipeline = cls(load_study(Path(study_file), Path.cwd()), study_file, Path(workflow.basedir))
        except UserError as error:
            print(f"knobscope: {error}", file=sys.stderr)
            sys.exit(2)
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        os.environ[PIPELINE_VARIABLE] = str(os.getpid())
        for name in ("machine", *(f"device_{device.replace('-', '_')}" for device in pipeline.devices)):
            workflow.global_resources.setdefault(name, 1)
        _claim_directory()
        print(pipeline.describe(), file=sys.stderr)
        return pipeline

    def describe(self) -> str:
        """Return in one line how much the study will measure at most."""
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
            screening = f"no screening (ranking of model {self.specs.prior.name})"
        tuning = ""
        if study.tune is not None:
            counts = [count_runs(case, study.tune) for case in self.specs.cases]
            minutes = sum(count * each for count, each in zip(counts, seconds, strict=True)) / 60
            tuning = f", then {sum(counts)} runs of tuners (about {minutes:.0f} min)"
        return (
            f"{study.name}: {cases} case{'s' if cases != 1 else ''}, {screening}, "
            f"then {study.sweep.repeats} blocks for the selected knobs{tuning}"
        )

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
            return lambda wildcards: int(wildcards.case.split("/")[1] == device)

        return {f"device_{device.replace('-', '_')}": uses(device) for device in self.devices}

    @property
    def rule_files(self) -> list[str]:
        """Mismatch rules of the study: an edited rule judges anew."""
        folder = os.path.relpath(self.home / "rules/mismatch")
        return [f"{folder}/{name}.sql" for name in self.specs.study.rules]

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
            fit = json.loads(Path(path).read_text())
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
        """Yield each case with its last screening round, -1 when a prior takes the place of all rounds."""
        for case in self.cases:
            screened = self.specs.prior is None
            yield case, int(Path(self._last_fit(checkpoints, case)).stem) if screened else -1

    def plan_spec(self, case: str) -> Dump:
        """What a screening plan depends on."""
        study = self.specs.study.model_dump(mode="json", include={"seed", "knobs", "baseline", "sampling"})
        study["sampling"].pop("max_rounds")
        dbms = self.specs.dbms[case.split("/", maxsplit=1)[0]]
        chosen = set(self.specs.study.knobs[dbms.name])
        return {**study, "definitions": dbms.model_dump(mode="json", include={"knobs": chosen})}

    def sweep_spec(self, case: str) -> Dump:
        """What the plan of the sweep depends on."""
        return {**self.plan_spec(case), "sweep": self.specs.study.sweep.model_dump(mode="json")}

    def device_spec(self, device: str) -> Dump:
        """What a device profile depends on."""
        return {**self.specs.devices[device].model_dump(mode="json"), "mode": self.specs.study.characterise}

    def case_spec(self, case: str) -> Dump:
        """What the runs of a case depend on."""
        dbms, device, workload = case.split("/")
        generator = self.specs.generators.get(self.specs.workloads[workload].generator)
        return {
            "dbms": self.specs.dbms[dbms].model_dump(mode="json", exclude={"description"}),
            "device": self.specs.devices[device].model_dump(mode="json", exclude={"description"}),
            "workload": self.specs.workloads[workload].model_dump(mode="json", exclude={"description"}),
            "generator": generator.model_dump(mode="json", exclude={"description"}) if generator else None,
            "monitor": self.specs.study.monitor,
        }

    def prior_spec(self, case: str) -> Dump:
        """What a fit depends on that comes from a prior."""
        dbms, _, workload = case.split("/")
        prior = self.specs.prior.model_dump(mode="json") if self.specs.prior else {}
        knobs = sorted(self.specs.study.knobs[dbms])
        workload_class = self.specs.workloads[workload].class_
        return {"prior": prior, "knobs": knobs, "class": workload_class, "top": self.specs.study.screening.top}

    def tune_spec(self, case: str) -> Dump:
        """What the tuners of a case depend on, beside its ranking."""
        tune = self.specs.study.tune.model_dump(mode="json") if self.specs.study.tune else {}
        return {**self.case_spec(case), **self.plan_spec(case), "tune": tune}

    @property
    def fit_spec(self) -> Dump:
        """What a fit depends on, beside the runs."""
        return self.specs.study.model_dump(mode="json", include={"screening", "seed"})

    @property
    def detect_spec(self) -> Dump:
        """What the verdicts depend on, beside the runs."""
        return self.specs.study.model_dump(mode="json", include={"rules", "thresholds"})


def _claim_directory() -> None:
    """Take over from a pipeline that was killed: remove its Snakemake locks when nobody holds ours any more."""
    directory = Path(".snakemake")
    directory.mkdir(exist_ok=True)
    claim = os.open(directory / "knobscope.lock", os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)  # held until this process ends
    except BlockingIOError:
        return  # another pipeline is at work here; Snakemake's own locks decide
    for lock in (directory / "locks").glob("*.lock"):
        lock.unlink()

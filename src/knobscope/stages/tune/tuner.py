"""One tuner: an Optuna study over a search space. The same seed and results give the same configurations again."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from knobscope.errors import UserError
from knobscope.specs import Case, StudySpecs
from knobscope.specs.models.study import Tune
from knobscope.stages.plan.blocks import seed_of
from knobscope.stages.plan.search_space import Configuration, SearchSpace, search_space
from knobscope.stages.tune.optuna_space import distributions, load_optuna, parameters_of, suggest

if TYPE_CHECKING:
    import optuna

#: So many suggestions that break a `requires` mean that the space hardly allows anything.
_ATTEMPTS = 1000


class Tuner:
    """Maximises throughput over a space; configurations that fail count as the worst."""

    def __init__(self, name: str, seed: int, space: SearchSpace, sampler: "optuna.samplers.BaseSampler") -> None:
        self.name = name  # of the space
        self.seed = seed  # 1, 2, ...
        self.space = space
        self._optuna = load_optuna()
        self._optuna.logging.set_verbosity(self._optuna.logging.WARNING)
        self._study = self._optuna.create_study(direction="maximize", sampler=sampler)
        self._trial: optuna.trial.Trial | None = None

    def begin(self, throughput: float) -> None:
        """Tell the throughput of the default configuration, with which every tuner starts."""
        parameters = parameters_of(self.space, self.space.default)
        applicable = {
            name: distribution for name, distribution in distributions(self.space).items() if name in parameters
        }
        trial = self._optuna.trial.create_trial(params=parameters, distributions=applicable, value=throughput)
        self._study.add_trial(trial)

    def ask(self) -> Configuration:
        """Return the next configuration to measure. UserError: none that the knobs' `requires` allow is found."""
        for _ in range(_ATTEMPTS):
            self._trial = self._study.ask()
            configuration = suggest(self._trial, self.space)
            if self.space.allows(configuration):
                return configuration
            self._study.tell(self._trial, state=self._optuna.trial.TrialState.FAIL)
        raise UserError(
            f"{_ATTEMPTS} suggestions for {self.space.case} ({self.name}) break a `requires` of their knobs; "
            "narrow the ranges of the study so that more configurations are allowed"
        )

    def tell(self, throughput: float | None) -> None:
        """Tell what the configuration asked for last gave; None when it failed."""
        if self._trial is None:
            raise RuntimeError("tell before ask")
        if throughput is None:
            self._study.tell(self._trial, state=self._optuna.trial.TrialState.PRUNED)
            return
        self._study.tell(self._trial, throughput)


def make_tuners(specs: StudySpecs, case: Case, tune: Tune, ranking: Sequence[str]) -> list[Tuner]:
    """Return a tuner for each space and seed. UserError: Optuna is missing, or a space has no knob."""
    optuna = load_optuna()
    tuners = []
    for name in tune.spaces:
        top = None if name == "all" else int(name.removeprefix("top"))
        space = search_space(specs, case, ranking, top, with_durability=tune.with_durability)
        if not space.parameters:
            raise UserError(
                f"all values of {case} but its defaults risk committed data; "
                "`tune: {with_durability: true}` allows them"
                if space.risky
                else f"tune: no knob of {case.dbms} is varied in {case}; expected one or more under `knobs`"
            )
        for seed in range(1, tune.seeds + 1):
            number = seed_of(specs.study.seed, str(case), "tune", name, seed)
            kinds = {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
            tuners.append(Tuner(name, seed, space, kinds[tune.sampler](seed=number)))
    return tuners

"""The one small interface of all models, and the table of them: a new model is a module and a line here."""

from collections.abc import Callable, Sequence
from typing import Protocol, Self

from knobscope.errors import UserError
from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.explained import ExplainedTerm
from knobscope.statistics.models.anova import Anova
from knobscope.statistics.models.boosting import LightGbm
from knobscope.statistics.models.forest import ExtraTrees, RandomForest
from knobscope.statistics.models.gaussian import GaussianProcess
from knobscope.statistics.models.mlp import Mlp
from knobscope.statistics.models.stepwise import StepwiseAnova


class Model(Protocol):
    """What a model of the response over configurations has to do."""

    name: str

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Choose the model's form and fit it to a response per row."""

    def fresh(self) -> Self:
        """Return a model of the same kind that has not been fitted, so that its form is chosen anew."""

    def refit(self, settings: Settings, response: Floats) -> Self:
        """Return a model of the chosen form, fitted on other rows."""

    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row."""

    def importance(self, settings: Settings) -> dict[str, float]:
        """Return the model's own importance of each factor, not negative; settings are the training rows."""

    def explain(self, settings: Settings, response: Floats) -> list[ExplainedTerm]:
        """Return the share of the response's variance that each term explains; arguments are the training rows."""


#: Name -> so many of its first models decide whether to stop; the others only predict, where they are better at it.
DECIDING = {"auto": 3}
#: Of more columns than these `auto` tries only so many models.
_MANY_COLUMNS = 60
#: Name -> models to try, simplest first; a function of the seed, and of the knobs that are expected to matter.
MODELS: dict[str, Callable[[int, frozenset[str]], Sequence[Model]]] = {
    "anova": lambda seed, expected: [Anova(1), Anova(2)],
    "lightgbm": lambda seed, expected: [LightGbm(seed)],
    "random_forest": lambda seed, expected: [RandomForest(seed)],
    "extra_trees": lambda seed, expected: [ExtraTrees(seed)],
    "auto": lambda seed, expected: [
        *(Anova(1), StepwiseAnova(expected), LightGbm(seed)),
        *(ExtraTrees(seed), RandomForest(seed), GaussianProcess(seed)),
    ],
    "gaussian_process": lambda seed, expected: [GaussianProcess(seed)],
    "mlp": lambda seed, expected: [Mlp(seed)],
}


def make_models(name: str, seed: int, expected: frozenset[str] = frozenset(), columns: int = 0) -> Sequence[Model]:
    """Return the models that a name stands for, simplest first. UserError: unknown name.

    Knobs that are `expected` to matter need less evidence where few of many do, in model `auto`; of many `columns` it
    leaves out the models that do not decide: they are slow then, and predict no better.
    """
    if name not in MODELS:
        raise UserError(f"no model {name!r}; expected one of {', '.join(MODELS)}")
    models = MODELS[name](seed, expected)
    return models[: DECIDING.get(name)] if columns > _MANY_COLUMNS else models

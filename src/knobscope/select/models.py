"""The one small interface of all models, and the table of them: a new model is a module and a line here."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, Self

from knobscope.errors import UserError
from knobscope.select.anova import Anova
from knobscope.select.boosting import LightGbm
from knobscope.select.design import Floats, Settings
from knobscope.select.forest import ExtraTrees, RandomForest
from knobscope.select.mlp import Mlp
from knobscope.select.stepwise import StepwiseAnova

__all__ = ["MODELS", "Model", "explain_terms", "make_models"]


class Model(Protocol):
    """What a model of the response over configurations has to do."""

    name: str

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Choose the model's form and fit it to a response per row."""

    def refit(self, settings: Settings, response: Floats) -> Self:
        """Return a model of the chosen form, fitted on other rows."""

    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row."""

    def importance(self, settings: Settings) -> dict[str, float]:
        """Return the model's own importance of each factor, not negative; settings are the training rows."""


#: Name -> models to try, simplest first; a function of the seed.
MODELS: dict[str, Callable[[int], Sequence[Model]]] = {
    "anova": lambda seed: [Anova(1), Anova(2)],
    "lightgbm": lambda seed: [LightGbm(seed)],
    "random_forest": lambda seed: [RandomForest(seed)],
    "extra_trees": lambda seed: [ExtraTrees(seed)],
    "auto": lambda seed: [Anova(1), StepwiseAnova(), LightGbm(seed)],
    "mlp": lambda seed: [Mlp(seed)],
}


def make_models(name: str, seed: int) -> Sequence[Model]:
    """Return the models that a name stands for, simplest first. UserError: unknown name."""
    if name not in MODELS:
        raise UserError(f"no model {name!r}; expected one of {', '.join(MODELS)}")
    return MODELS[name](seed)


def explain_terms(model: Model, settings: Settings) -> list[dict[str, Any]]:
    """Return the model's terms with explained share (of the total sum of squares) and p, the largest share first.

    Only ANOVA has interactions as terms and p values; other models give a term per factor that they use, with
    the factor's share of their importance and no p.
    """
    if isinstance(model, Anova):
        rows: list[tuple[tuple[str, ...], float, float | None]] = [
            (test.term.factors, test.explained_share, test.p_value) for test in model.tests()
        ]
    else:
        rows = [((factor,), share, None) for factor, share in model.importance(settings).items() if share > 0]
    return [
        {"term": ":".join(factors), "factors": list(factors), "explained_share": float(share), "p_value": p_value}
        for factors, share, p_value in sorted(rows, key=lambda row: -row[1])
    ]

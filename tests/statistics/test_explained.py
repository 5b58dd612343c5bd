"""The small interface that all models share: fit, predict, importance, explained variance per term."""

import numpy as np
import pytest
from known_tables import grid, known_grid

from knobscope.statistics.design import Settings
from knobscope.statistics.explained import list_terms
from knobscope.statistics.models import MODELS, make_models

LONG = pytest.mark.long
FACTORS = ["page", "flush", "cache", "log", "idle", "other"]


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG if name == "mlp" else ()) for name in MODELS])
def test_every_model_predicts_and_explains_the_same_terms(name: str) -> None:
    sample = known_grid().sample(220, random_state=1)
    settings, values = Settings.from_frame(sample, FACTORS), np.log(sample.y.to_numpy())
    for number, model in enumerate(make_models(name, 1)):
        fitted = model.fit(settings, values)
        assert np.corrcoef(fitted.predict(settings), values)[0, 1] > 0.9
        own = fitted.importance(settings)
        assert set(own) == set(FACTORS) and max(own, key=own.__getitem__) == "page"
        shares = {term.term.name: term.explained_share for term in fitted.explain(settings, values)}
        assert shares["page"] == pytest.approx(0.8, abs=0.08)
        assert shares.get("idle", 0) < 0.02 and shares.get("other", 0) < 0.03
        if name not in ("anova", "auto") or number:  # the first one of these has no interactions
            assert shares.get("flush:cache", 0) > 0.03


def test_shares_of_a_forest_are_those_of_the_truth() -> None:
    table = grid(a=[1, 2, 3, 4], b=[1, 2, 3, 4], c=[0, 1], idle=[1, 2, 3])
    table["y"] = 3.0 * table.a + table.b + 4 * (table.c == 1) * (table.b == 4)
    settings, values = Settings.from_frame(table, ["a", "b", "c", "idle"]), table.y.to_numpy()
    (model,) = make_models("random_forest", 1)
    found = {term.term.name: term for term in model.fit(settings, values).explain(settings, values)}
    centred = table.y - table.groupby("b").y.transform("mean") - table.groupby("c").y.transform("mean") + table.y.mean()
    truth = {
        "a": table.groupby("a").y.transform("mean").var(ddof=0) / values.var(),
        "b": table.groupby("b").y.transform("mean").var(ddof=0) / values.var(),
        "c": table.groupby("c").y.transform("mean").var(ddof=0) / values.var(),
        "b:c": centred.groupby([table.b, table.c]).transform("mean").var(ddof=0) / values.var(),
    }
    for name, share in truth.items():
        assert found[name].explained_share == pytest.approx(share, abs=0.03)
    assert "idle" not in found
    assert all(term.p_value is None for term in found.values())


def test_terms_of_a_document_come_in_order_of_their_share() -> None:
    sample = known_grid().sample(200, random_state=1)
    settings, values = Settings.from_frame(sample, FACTORS), sample.y.to_numpy()
    terms = list_terms(make_models("anova", 1)[1].fit(settings, values).explain(settings, values))
    assert terms[0]["term"] == "page" and terms[0]["factors"] == ["page"] and terms[0]["p_value"] < 1e-10
    assert [t["explained_share"] for t in terms] == sorted((t["explained_share"] for t in terms), reverse=True)


def test_a_constant_response_explains_nothing() -> None:
    table = grid(a=[1, 2], b=[1, 2, 3])
    settings = Settings.from_frame(table, ["a", "b"])
    (model,) = make_models("extra_trees", 1)
    assert model.fit(settings, np.ones(6)).explain(settings, np.ones(6)) == []

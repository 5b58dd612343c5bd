"""Least squares and analysis of variance, against statsmodels and against known truth."""

import warnings

import numpy as np
import pandas as pd
import pytest
from known_tables import grid, known_grid, measured

from knobscope.statistics.design import Settings, Term, pairwise_terms, single_terms
from knobscope.statistics.models.anova import Anova, InsufficientSamplesError
from knobscope.statistics.models.stepwise import StepwiseAnova


def reference(frame: pd.DataFrame, factors: list[str], response: str) -> tuple[object, pd.DataFrame]:
    import statsmodels.api as sm  # slow to import, and every process of a test run collects this file
    from statsmodels.formula.api import ols

    formula = f"{response} ~ (" + " + ".join(f"C({name}, Sum)" for name in factors) + ") ** 2"
    fitted = ols(formula, frame).fit()
    return fitted, sm.stats.anova_lm(fitted, typ=2)


def check_against_statsmodels(frame: pd.DataFrame, factors: list[str], response: str) -> None:
    settings, values = Settings.from_frame(frame, factors), frame[response].to_numpy(float)
    own = Anova().fit_terms(settings, values, pairwise_terms(factors))
    fitted, table = reference(frame, factors, response)
    np.testing.assert_allclose(own.predict(settings), fitted.fittedvalues, rtol=1e-8)
    # In an interaction patsy's first factor runs fastest.
    coefficients = np.concatenate([block.ravel(order="F") for block in own.coefficients.values()])
    np.testing.assert_allclose(coefficients, fitted.params, rtol=1e-8, atol=1e-8)
    tests = own.tests()
    np.testing.assert_allclose([t.sum_of_squares for t in tests], table["sum_sq"][:-1], rtol=1e-8)
    np.testing.assert_allclose([t.p_value for t in tests], table["PR(>F)"][:-1], rtol=1e-7, atol=1e-12)
    assert [t.degrees for t in tests] == table["df"][:-1].astype(int).tolist()


def test_agrees_with_statsmodels_on_an_unbalanced_sample() -> None:
    frame = known_grid().sample(150, random_state=3)
    check_against_statsmodels(frame, ["page", "flush", "cache", "log", "other"], "y")


def test_agrees_with_statsmodels_on_the_mysql_grid() -> None:
    frame = pd.read_csv(measured("mysql_5.6.26_grid.csv")).sample(frac=0.15, random_state=1)
    factors = [name for name in frame if name not in ("runtime", "rel_sd_of_5")]
    check_against_statsmodels(frame, factors, "runtime")


def test_rank_deficient_design_predicts_like_the_pseudo_inverse() -> None:
    from statsmodels.formula.api import ols

    frame = known_grid()
    frame = frame[~((frame.page == 4) & (frame.cache == 64))].sample(120, random_state=5)
    factors = ["page", "cache", "flush"]
    settings, values = Settings.from_frame(frame, factors), frame.y.to_numpy()
    own = Anova().fit_terms(settings, values, pairwise_terms(factors))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # statsmodels says that the design is rank-deficient: so it shall be
        fitted = ols("y ~ (C(page) + C(cache) + C(flush)) ** 2", frame).fit()
    np.testing.assert_allclose(own.predict(settings), fitted.fittedvalues, rtol=1e-8)
    assert sum(t.degrees for t in own.tests()) == 6 + 11  # one cell, so one degree of the interaction, is missing


def test_keeps_the_true_terms_and_their_parts() -> None:
    frame = known_grid().sample(200, random_state=1)
    factors = ["page", "flush", "cache", "log", "idle", "other"]
    model = Anova(2).fit(Settings.from_frame(frame, factors), np.log(frame.y.to_numpy()))
    kept = {term.name for term in model.terms}
    assert {"page", "flush", "cache", "flush:cache"} <= kept
    for term in model.terms:
        assert all(Term((factor,)) in model.terms for factor in term.factors)


def test_pure_noise_leaves_about_one_term_in_twenty() -> None:
    frame = grid(a=[1, 2, 3], b=[1, 2, 3], c=[1, 2], d=[1, 2, 3, 4])
    rng = np.random.default_rng(0)
    settings = Settings.from_frame(frame, ["a", "b", "c", "d"])
    kept = [len(Anova(1).fit(settings, rng.normal(size=len(frame))).terms) for _ in range(200)]
    assert 0.02 < np.mean(kept) / 4 < 0.09


def test_fewer_rows_than_columns_is_said_so() -> None:
    frame = known_grid().sample(30, random_state=1)
    with pytest.raises(InsufficientSamplesError, match="30 runs for"):
        Anova(2).fit(Settings.from_frame(frame, ["page", "flush", "cache", "other"]), frame.y.to_numpy())


def test_unseen_level_counts_as_average_not_as_base() -> None:
    frame = grid(a=[1, 2, 3], b=[1, 2, 3, 4])
    settings = Settings.from_frame(frame, ["a", "b"])
    values = frame.a.map({1: 0.0, 2: 10.0, 3: 20.0}).to_numpy() + frame.b.to_numpy()
    seen = frame.b.to_numpy() != 1
    model = Anova().fit_terms(settings.take(seen), values[seen], single_terms(["a", "b"]))
    missing = model.predict(settings.take(~seen))
    np.testing.assert_allclose(missing, [3.0, 13.0, 23.0])  # b is 3 on average over 2, 3 and 4


def test_factor_of_which_one_level_was_seen_explains_nothing() -> None:
    frame = known_grid()
    sample = frame[frame.page == 4].sample(60, random_state=1)
    settings = Settings.from_frame(pd.concat([sample, frame]), ["page", "flush", "cache"]).take(slice(len(sample)))
    tests = Anova().fit_terms(settings, sample.y.to_numpy(), single_terms(["page", "flush", "cache"])).tests()
    assert [(test.degrees, test.sum_of_squares) for test in tests if test.term.name == "page"] == [(0, 0.0)]
    kept = {term.name for term in Anova(1).fit(settings, sample.y.to_numpy()).terms}
    assert "page" not in kept and "flush" in kept


def test_explained_shares_of_a_full_grid_add_up() -> None:
    frame = known_grid()
    factors = ["page", "flush", "cache"]
    settings, values = Settings.from_frame(frame, factors), frame.y.to_numpy()
    model = Anova().fit_terms(settings, values, pairwise_terms(factors))
    residual = values - model.predict(settings)
    r2 = 1 - residual.var() / values.var()
    assert sum(t.explained_share for t in model.tests()) == pytest.approx(r2)


def test_stepwise_finds_the_interaction_with_fewer_rows_than_backward_elimination_needs() -> None:
    frame = known_grid().sample(55, random_state=2)
    settings = Settings.from_frame(frame, ["page", "flush", "cache", "log", "idle", "other"])
    with pytest.raises(InsufficientSamplesError):
        Anova(2).fit(settings, frame.y.to_numpy())
    terms = StepwiseAnova().fit(settings, frame.y.to_numpy()).terms
    assert Term(("flush", "cache")) in terms
    assert not any("idle" in term.factors and len(term.factors) == 2 for term in terms)

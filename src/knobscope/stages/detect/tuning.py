"""Fills table `tuned`: how good the best configuration of each tuner is, by runs not chosen for being good."""

from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.stages.detect.effects import add_frame
from knobscope.statistics.regression import Nuisance, fit_blocks, t_interval
from knobscope.tables import CutColumns

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

_CASE = ["dbms", "device", "workload"]


def add_tuned(connection: "duckdb.DuckDBPyConnection") -> None:
    """Fill the table from the trials and the last blocks of a tuning session, where winners met the default again."""
    import pandas as pd

    runs = connection.execute(
        "SELECT dbms, device, workload, block_id, session, config_id, is_sentinel, throughput_ops FROM ok_runs"
        " WHERE phase = 'tune' AND round = 1 ORDER BY run_id"
    ).df()
    trials = connection.execute("FROM trials ORDER BY ALL").df()
    rows: list[dict[str, Any]] = []
    for case, tried in trials.groupby(_CASE, sort=True):
        confirmed = runs[(runs[_CASE] == list(case)).all(axis=1)]
        effects = _effects(confirmed)
        for (space, seed), own in tried.groupby(["space", "seed"], sort=True):
            about = {**dict(zip(_CASE, case, strict=True)), "space": space, "seed": seed}
            winner = own[own["is_winner"]]
            if winner.empty:  # the default stays: nothing to confirm
                rows.append({**about, "trial": None, "estimate": 0.0, "low": 0.0, "high": 0.0, "runs": 0})
            else:
                config = winner["config_id"].iloc[0]
                effect = effects.get(config, {"runs": 0})
                cuts = {name: winner[name].iloc[0] for name in CutColumns.__annotations__}
                rows.append({**about, "trial": winner["trial"].iloc[0], "config_id": config, **effect, **cuts})
    columns = [*_CASE, "space", "seed", "trial", "config_id", "estimate", "low", "high", "runs"]
    columns += CutColumns.__annotations__
    add_frame(connection, "tuned", pd.DataFrame(rows, columns=columns))


def _effects(runs: "pd.DataFrame") -> dict[str, dict[str, Any]]:
    """Return configuration -> log ratio to the default with a 95 % interval, in a model with a level per session."""
    if runs.empty:
        return {}
    sessions = runs.groupby(["block_id", "session"], dropna=False)
    # A winner that another session than the default's measured has nothing to be compared with.
    has_default = sessions["is_sentinel"].transform("max").astype(bool)
    session, runs = sessions.ngroup()[has_default].to_numpy(np.int64), runs[has_default]
    configs = list(dict.fromkeys(runs.loc[~runs["is_sentinel"], "config_id"]))
    if not configs or not runs["is_sentinel"].any():
        return {}
    code = np.array([0 if row.is_sentinel else 1 + configs.index(row.config_id) for row in runs.itertuples()], np.int64)
    levels = Nuisance.levels(np.unique(session, return_inverse=True)[1].astype(np.int64))
    fit = fit_blocks(np.log(runs["throughput_ops"].to_numpy(float)), code, levels, len(configs) + 1)
    errors = fit.errors if fit.degrees > 0 else np.full(len(configs), np.nan)
    low, high = t_interval(fit.estimates, errors, max(fit.degrees, 1))
    counts = np.bincount(code, minlength=len(configs) + 1)[1:]
    return {
        config: {"estimate": fit.estimates[i], "low": low[i], "high": high[i], "runs": int(counts[i])}
        for i, config in enumerate(configs)
    }

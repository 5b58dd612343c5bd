"""Optuna: the trials of a study in an SQLite storage, read through Optuna itself."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knobscope.commands.importing.tools.runs import FAILED, ToolRun, ToolRuns, describe_direction
from knobscope.commands.importing.tools.sqlite_file import read_only_uri
from knobscope.errors import UserError
from knobscope.stages.tune.optuna_space import IN_RANGE, load_optuna

if TYPE_CHECKING:
    import optuna

_EXPECTED = "an SQLite storage of Optuna"
_SPECIAL = ".special"


def read_optuna(paths: Sequence[Path], study: str | None) -> ToolRuns:
    """Return the completed and failed trials of a study; its name is needed where the storage has several.

    UserError: no such storage or study, another version of Optuna, or Optuna is not installed.
    """
    if len(paths) != 1:
        raise UserError(f"found {len(paths)} files; expected one, {_EXPECTED}")
    (path,) = paths
    optuna = load_optuna()
    uri = read_only_uri(path, _EXPECTED, ("studies", "trials", "version_info", "alembic_version"))
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        storage = optuna.storages.RDBStorage(f"sqlite:///{uri}&uri=true", skip_table_creation=True)
        names = sorted(optuna.get_all_study_names(storage))
        if study is None and len(names) != 1:
            raise UserError(f"{path}: found {len(names)} studies ({', '.join(names)}); expected --study NAME")
        if study is not None and study not in names:
            raise UserError(f"--study is {study!r}; expected one of {', '.join(names)}")
        return _read_study(optuna.load_study(study_name=study or names[0], storage=storage))
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path}: found {type(error).__name__}: {str(error)[:500]}; expected {_EXPECTED}") from error


def _read_study(study: "optuna.Study") -> ToolRuns:
    names = study.metric_names or (
        ["value"] if len(study.directions) == 1 else [f"value_{number}" for number in range(len(study.directions))]
    )
    states = Counter(trial.state.name for trial in study.trials)
    runs = [
        ToolRun(str(trial.number), _settings(trial.params), dict(zip(names, _values(trial, len(names)), strict=True)))
        for trial in study.trials
        if trial.state.name in ("COMPLETE", "FAIL")
    ]
    directions = zip(names, study.directions, strict=True)
    notes = [describe_direction(name, is_minimised=direction.name == "MINIMIZE") for name, direction in directions]
    left_out = [f"{count} {state.lower()}" for state, count in states.items() if state not in ("COMPLETE", "FAIL")]
    if left_out:
        notes.append(f"left out: trials that are {', '.join(left_out)}")
    return ToolRuns(runs, names[0], notes)


def _values(trial: "optuna.trial.FrozenTrial", count: int) -> list[Any]:
    values = trial.values or [math.nan] * count
    return [value if math.isfinite(value) else FAILED for value in values]


def _settings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as settings; `KNOB.special` of an exported space goes back to its knob."""
    settings = {name: value for name, value in parameters.items() if not name.endswith(_SPECIAL)}
    for name, value in parameters.items():
        if name.endswith(_SPECIAL) and value != IN_RANGE:
            settings[name.removesuffix(_SPECIAL)] = json.loads(value)
    return settings

"""mlos_bench: the trials of an experiment in its SQLite storage, read through mlos_bench itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knobscope.commands.importing.tools.runs import FAILED, ToolRun, ToolRuns, describe_direction
from knobscope.commands.importing.tools.sqlite_file import read_only_uri
from knobscope.errors import UserError

if TYPE_CHECKING:
    from mlos_bench.storage.base_experiment_data import ExperimentData

_EXPECTED = "an SQLite storage of mlos_bench"
_TABLES = ("experiment", "objectives", "config", "config_param", "trial", "trial_result")
_SETTING, _FIGURE = "config.", "result."


def read_mlos(paths: Sequence[Path], study: str | None) -> ToolRuns:
    """Return the finished trials of an experiment; its name is needed where the storage has several.

    UserError: no such storage or experiment, another version of mlos_bench, or mlos_bench is not installed.
    """
    if len(paths) != 1:
        raise UserError(f"found {len(paths)} files; expected one, {_EXPECTED}")
    (path,) = paths
    try:
        from mlos_bench.storage.sql.experiment_data import ExperimentSqlData
        from mlos_bench.storage.sql.schema import DbSchema
        from sqlalchemy import create_engine
    except ImportError as error:
        raise UserError("mlos_bench is not installed; its storages need it: pip install mlos-bench pytz") from error
    uri = read_only_uri(path, _EXPECTED, _TABLES)
    try:
        engine = create_engine(f"sqlite:///{uri}&uri=true")
        schema = DbSchema(engine)
        with engine.connect() as connection:
            rows = connection.execute(schema.experiment.select()).mappings().all()
        experiments = {
            row["exp_id"]: ExperimentSqlData(
                engine=engine,
                schema=schema,
                experiment_id=row["exp_id"],
                description=row["description"],
                root_env_config=row["root_env_config"],
                git_repo=row["git_repo"],
                git_commit=row["git_commit"],
            )
            for row in rows
        }
        if study is None and len(experiments) != 1:
            names = ", ".join(experiments)
            raise UserError(f"{path}: found {len(experiments)} experiments ({names}); expected --study NAME")
        if study is not None and study not in experiments:
            raise UserError(f"--study is {study!r}; expected one of {', '.join(experiments)}")
        return _read_experiment(experiments[study or next(iter(experiments))])
    except UserError:
        raise
    except Exception as error:
        raise UserError(f"{path}: found {type(error).__name__}: {str(error)[:500]}; expected {_EXPECTED}") from error


def _read_experiment(experiment: "ExperimentData") -> ToolRuns:
    objectives = dict(experiment.objectives)
    response = next(iter(objectives))
    rows: list[dict[str, Any]] = experiment.results_df.to_dict("records")
    runs, left_out = [], 0
    for row in rows:
        status = getattr(row["status"], "name", str(row["status"]))
        if status not in ("SUCCEEDED", "FAILED", "TIMED_OUT"):
            left_out += 1
            continue
        settings = {name.removeprefix(_SETTING): value for name, value in row.items() if name.startswith(_SETTING)}
        figures = {name.removeprefix(_FIGURE): value for name, value in row.items() if name.startswith(_FIGURE)}
        if status != "SUCCEEDED":
            figures[response] = FAILED
        runs.append(ToolRun(str(row["trial_id"]), settings, {response: FAILED, **figures}))
    notes = [describe_direction(name, is_minimised=goal == "min") for name, goal in objectives.items()]
    return ToolRuns(runs, response, [*notes, *([f"left out: {left_out} unfinished trials"] if left_out else [])])

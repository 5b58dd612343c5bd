"""The exported files are read by the tuners themselves; what they draw is a configuration that the DBMS could run."""

import csv
import dataclasses
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from shipped_specs import ROOT, shipped_dbms, shipped_study
from studies import make_folder, write_study

from knobscope.cli import main
from knobscope.commands.export import to_mlos, to_optuna, to_smac
from knobscope.specs import KnobChoice, StudySpecs, load_study
from knobscope.stages.detect import create_schema
from knobscope.stages.plan.search_space import Parameter, SearchSpace, _risky_values, _without, search_space
from knobscope.stages.tune.optuna_space import parameters_of, suggest
from knobscope.tables import insert_rows

STUDY = """
name: tuned
description: a study whose knobs a tuner gets
dbms: [postgresql]
devices: [local-disk]
workloads:
  ycsb-a:
knobs:
  postgresql:
    synchronous_commit:
    fsync:
    commit_delay:
    shared_buffers: {range: [1024, 65536]}
    min_wal_size:
    max_wal_size: {values: [64, 256, 1024]}
    wal_level:
    max_wal_senders:
    wal_compression: {values: [off, lz4]}
    wal_recycle:
    checkpoint_completion_target:
    bgwriter_flush_after: {values: [0, 64]}
"""
RANKING = ["synchronous_commit", "max_wal_size", "shared_buffers", "commit_delay", "fsync"]

Make = Callable[..., SearchSpace]


@pytest.fixture(scope="module")
def specs(tmp_path_factory: pytest.TempPathFactory) -> StudySpecs:
    folder = make_folder(tmp_path_factory.mktemp("tuned"))
    return load_study(write_study(folder, "tuned", STUDY), ROOT, runnable=False)


@pytest.fixture(scope="module")
def make(specs: StudySpecs) -> Make:
    def space(top: int | None = None, *, with_durability: bool = False) -> SearchSpace:
        return search_space(specs, specs.cases[0], RANKING, top, with_durability=with_durability)

    return space


def names(space: SearchSpace) -> list[str]:
    return [one.name for one in space.parameters]


def test_values_that_risk_data_are_left_out_and_a_knob_of_them_does_not_count(make: Make) -> None:
    """`synchronous_commit = local` is as safe as the default on one machine; `fsync` has nothing but its default."""
    assert names(make(5)) == ["synchronous_commit", "max_wal_size", "shared_buffers", "commit_delay", "min_wal_size"]
    assert make(5).parameters[0].choices == ("local", "on")
    assert make(5).risky == {"synchronous_commit": ("off",), "fsync": (False,)}
    assert make(5).left_out == ["fsync"] and make(5).fixed["fsync"] is True
    assert make(5, with_durability=True).parameters[0].choices == ("off", "local", "on")


def test_a_knob_that_acts_only_with_one_of_the_first_comes_along(specs: StudySpecs) -> None:
    """By default no commit waits for others, so `commit_siblings` has no effect, and no ranking sees it."""
    choices = {**specs.study.knobs["postgresql"], "commit_siblings": KnobChoice(range=[1, 10])}
    study = specs.study.model_copy(update={"knobs": {"postgresql": choices}})
    wider = dataclasses.replace(specs, study=study)

    def first(ranking: Sequence[str]) -> list[str]:
        return names(search_space(wider, wider.cases[0], ranking, 2, with_durability=False))

    assert first(["shared_buffers", "commit_delay"]) == ["shared_buffers", "commit_delay", "commit_siblings"]
    assert first(["shared_buffers", "max_wal_size"]) == ["shared_buffers", "max_wal_size"]
    assert first(["commit_siblings", "commit_delay"]) == ["commit_siblings", "commit_delay"]


def test_no_tuner_gets_a_negative_control(tmp_path: Path) -> None:
    study = STUDY + "    array_nulls:\n    xmlbinary:\n"
    specs = load_study(write_study(make_folder(tmp_path), "tuned", study), ROOT, runnable=False)
    space = search_space(specs, specs.cases[0], ["array_nulls", *RANKING], 1, with_durability=True)
    assert [parameter.name for parameter in space.parameters] == ["synchronous_commit"]
    every = search_space(specs, specs.cases[0], RANKING, None, with_durability=True)
    assert not {parameter.name for parameter in every.parameters} & {"array_nulls", "xmlbinary"}


def test_a_knob_whose_risky_values_no_study_asks_for_is_exported_whole() -> None:
    specs = shipped_study("quickstart")
    space = search_space(specs, specs.cases[0], [], None, with_durability=False)
    assert "journal_mode" in names(space) and "journal_mode" not in space.risky
    assert space.left_out == ["synchronous"] and space.risky["synchronous"] == ("off", "normal")
    for text in (json.dumps(to_optuna(space)), json.dumps(to_smac(space)), json.dumps(to_mlos(space))):
        plain = text.replace("\\", "").replace('"synchronous": ["off", "normal"]', "")
        assert '"wal"' in plain and '"normal"' not in plain


def test_a_study_without_a_knob_of_the_dbms_has_nothing_to_export(tmp_path: Path, refuses: Callable[..., str]) -> None:
    database = tmp_path / "study.duckdb"
    with duckdb.connect(str(database)) as connection:
        create_schema(connection)
        connection.execute(
            "INSERT INTO importance (dbms, device, workload, round, knob, rank) "
            "VALUES ('sqlite', 'hdd-7200', 'ycsb-scan', 0, 'workload.load_order', 1)"
        )
    study = str(ROOT / "specs/studies/sqlite-key-order.yaml")
    files = ["--case", "sqlite/hdd-7200/ycsb-scan", "--database", str(database), "--out", str(tmp_path / "space.json")]
    said = refuses("export", study, "--to", "mlos", "--root", ROOT, *files)
    assert "no knob of sqlite is varied in sqlite/hdd-7200/ycsb-scan" in said


@pytest.mark.parametrize(("top", "trustworthy"), [(["--top", "1"], False), (["--top", "1"], True), ([], False)])
def test_the_first_knobs_of_a_ranking_that_cannot_be_trusted_come_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], top: list[str], trustworthy: bool
) -> None:
    case = {"dbms": "sqlite", "device": "local-disk", "workload": "ycsb-a"}
    database = tmp_path / "study.duckdb"
    with duckdb.connect(str(database)) as connection:
        create_schema(connection)
        insert_rows(connection, "importance", [{**case, "round": 0, "knob": "journal_mode", "rank": 1}])
        fits = [{"round": 0, "trustworthy": not trustworthy}, {"round": 1, "trustworthy": trustworthy}]
        insert_rows(connection, "fits", [{**case, **fit, "reason_trust": "few runs"} for fit in fits])
    study = str(ROOT / "specs/studies/quickstart.yaml")
    files = ["--database", str(database), "--out", str(tmp_path / "space.json")]
    assert main(["export", study, "--to", "mlos", "--root", str(ROOT), *top, *files]) == 0
    warning = "the ranking cannot be trusted, so other knobs may belong to the first 1: few runs\n"
    assert (warning in capsys.readouterr().err) == (bool(top) and not trustworthy)


def test_a_number_of_few_values_loses_those_that_risk_data(specs: StudySpecs) -> None:
    knob = specs.dbms["postgresql"].knobs["commit_delay"]
    risky = knob.model_copy(update={"range": [0, 2], "default": 1, "durability": [0, 2], "special": {}})
    one = Parameter("flush", risky, 1, 0, 2)
    assert _risky_values(one, {}) == (0, 2)
    assert _without(one, (0, 2)) is None
    assert _without(one, (0,)) == Parameter("flush", risky, 1, choices=(1, 2))


def test_what_is_a_risk_with_others_stays_where_nobody_tunes_those() -> None:
    knob = shipped_dbms("sqlite").knobs["synchronous"]
    tuned = Parameter("synchronous", knob, "extra", choices=("off", "full", "extra"))
    assert _risky_values(tuned, {"journal_mode": "wal", "locking_mode": "normal"}) == ("off",)
    assert _risky_values(tuned, {"locking_mode": "normal"}) == ("off", "full")


def test_all_knobs_follow_the_ranked_ones(make: Make) -> None:
    assert names(make())[:4] == ["synchronous_commit", "max_wal_size", "shared_buffers", "commit_delay"]
    assert len(make().parameters) == 11


def test_a_parameter_covers_what_the_study_looked_at(make: Make) -> None:
    found = {one.name: one for one in make().parameters}
    assert found["shared_buffers"].bounds == (1024, 65536)
    assert found["max_wal_size"].bounds == (64, 1024)
    assert found["commit_delay"].special == (0,)
    assert found["commit_delay"].bounds == (10, 100000)
    assert found["wal_compression"].choices == ("off", "lz4")
    assert found["bgwriter_flush_after"].choices == (64, 0)


def write(tmp_path: Path, content: Any) -> Path:
    path = tmp_path / "space.json"
    path.write_text(json.dumps(content))
    return path


def decode(values: dict[str, Any]) -> dict[str, Any]:
    """Special values put where their knob is, numpy's types made Python's."""
    plain = {name: getattr(value, "item", lambda value=value: value)() for name, value in values.items()}
    chosen = {name.removesuffix(".special"): value for name, value in plain.items() if name.endswith(".special")}
    special = {name: int(value) for name, value in chosen.items() if value != "range"}
    return {name: value for name, value in plain.items() if not name.endswith(".special")} | special


def broken(space: SearchSpace, values: dict[str, Any]) -> list[str]:
    """What a knob cannot take."""
    return [name for name, value in values.items() if space.dbms.knobs[name].problem_with(value) is not None]


def test_smac_draws_only_configurations_that_the_dbms_allows(make: Make, tmp_path: Path) -> None:
    import ConfigSpace

    space = make()
    read = ConfigSpace.ConfigurationSpace.from_json(write(tmp_path, to_smac(space)))
    read.seed(1)
    drawn = [decode(dict(one)) for one in read.sample_configuration(500)]
    assert [one for one in drawn if broken(space, one)] == []
    assert [one for one in drawn if not space.allows(space.complete(one))] == []
    assert {one["commit_delay"] == 0 for one in drawn} == {True, False}
    assert {one["wal_level"] for one in drawn} == {"minimal", "replica", "logical"}
    assert decode(dict(read.get_default_configuration())) == {name: space.default[name] for name in names(space)}
    assert read["shared_buffers"].log


def test_constraints_on_fixed_knobs_become_limits_or_nothing(specs: StudySpecs) -> None:
    space = search_space(specs, specs.cases[0], ["min_wal_size"], 1, with_durability=False)
    # wal_segment_size is fixed at 16: min_wal_size >= 32 holds everywhere in [32, 4096]; max_wal_size at 1024
    assert to_smac(space)["hyperparameters"][0]["meta"]["requires"] == "min_wal_size >= 2 * wal_segment_size"
    assert to_smac(space)["forbiddens"] == [{"type": "CLAUSE_GT", "name": "min_wal_size", "value": 1024}]


def test_optuna_reads_the_distributions_and_draws_from_them(make: Make, tmp_path: Path) -> None:
    import optuna

    space = make()
    content = json.loads(write(tmp_path, to_optuna(space)).read_text())
    read = {name: optuna.distributions.json_to_distribution(text) for name, text in content["distributions"].items()}
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for _ in range(200):
        values = dict(study.ask(read).params)
        if values["commit_delay.special"] != "range":
            del values["commit_delay"]
        assert broken(space, decode(values)) == []
    assert content["special"] == {"commit_delay": [0]}
    assert content["requires"]["max_wal_size"] == "max_wal_size >= min_wal_size"
    assert content["fixed"]["fsync"] is True
    assert content["left_out_for_durability"] == ["fsync"]
    assert content["values_left_out_for_durability"] == {"synchronous_commit": ["off"], "fsync": [False]}


def test_optuna_suggestions_and_their_parameters_are_inverse(make: Make) -> None:
    import optuna

    space = make()
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=2))
    for _ in range(50):
        trial = study.ask()
        configuration = suggest(trial, space)
        assert broken(space, configuration) == []
        rounded = {name: value for name, value in trial.params.items() if name != "checkpoint_completion_target"}
        assert parameters_of(space, configuration).items() >= rounded.items()


def test_mlos_accepts_the_file_by_schema_and_as_tunables(make: Make) -> None:
    # It takes a second to import, in each process that only collects the tests of this file, too.
    from mlos_bench.config.schemas.config_schemas import ConfigSchema
    from mlos_bench.optimizers.convert_configspace import tunable_groups_to_configspace
    from mlos_bench.tunables.tunable_groups import TunableGroups

    space = make()
    content = to_mlos(space)
    ConfigSchema.TUNABLE_PARAMS.validate(content)
    groups = TunableGroups(content)
    tunable, _ = groups.get_tunable("commit_delay")
    assert tunable.special == [0]
    assert tunable.is_log
    assert groups["max_wal_size"] == 1024
    assert groups["wal_recycle"] == "on"
    converted = tunable_groups_to_configspace(groups, seed=1)
    assert len(converted.sample_configuration(20)) == 20
    assert content["postgresql"]["params"]["synchronous_commit"]["values"] == ["local", "on"]


def test_constraints_of_mlos_stand_in_meta(make: Make) -> None:
    params = to_mlos(make())["postgresql"]["params"]
    assert params["max_wal_size"]["meta"]["requires"] == "max_wal_size >= min_wal_size"


def test_all_formats_hold_the_same_space_by_value(make: Make, tmp_path: Path) -> None:
    """Bounds, scales, values, special values and defaults, as the tools themselves read them."""
    import ConfigSpace
    import optuna
    from mlos_bench.tunables.tunable_groups import TunableGroups

    space = make()
    smac = ConfigSpace.ConfigurationSpace.from_json(write(tmp_path, to_smac(space)))
    exported = json.loads(json.dumps(to_optuna(space)))
    texts = exported["distributions"]
    groups = TunableGroups(json.loads(json.dumps(to_mlos(space))))
    assert sorted(smac) == sorted(texts)
    for parameter in space.parameters:
        mlos, _ = groups.get_tunable(parameter.name)
        drawn = optuna.distributions.json_to_distribution(texts[parameter.name])
        read = smac[parameter.name]
        if parameter.is_number:
            is_log = parameter.knob.scale == "log"
            expected = (*parameter.bounds, is_log)
            assert (read.lower, read.upper, read.log) == (drawn.low, drawn.high, drawn.log) == expected
            assert (*mlos.range, mlos.is_log) == expected
            assert mlos.special == exported["special"].get(parameter.name, []) == list(parameter.special)
            assert mlos.default == exported["default"][parameter.name] == parameter.default
        else:
            assert tuple(read.choices) == tuple(drawn.choices) == parameter.choices
            assert list(mlos.categories) == [space.dbms.write(value) for value in parameter.choices]
            assert read.default_value == exported["default"][parameter.name] == parameter.default


def test_a_study_of_optuna_on_an_exported_space_comes_back_as_knobs(make: Make, tmp_path: Path) -> None:
    import optuna

    space = make(4)
    texts = to_optuna(space)["distributions"]
    distributions = {name: optuna.distributions.json_to_distribution(text) for name, text in texts.items()}
    storage = tmp_path / "tuned.db"
    sampler = optuna.samplers.RandomSampler(seed=1)
    study = optuna.create_study(storage=f"sqlite:///{storage}", sampler=sampler, direction="maximize")
    drawn = []
    for number in range(6):
        trial = study.ask(distributions)
        drawn.append(decode(dict(trial.params)))
        study.tell(trial, 100.0 + number)
    assert main(["import", "--from", "optuna", str(storage), "--out", str(tmp_path / "trials.csv")]) == 0
    with (tmp_path / "trials.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [{name: row[name] for name in names(space)} for row in rows] == [
        {name: str(configuration[name]) for name in names(space)} for configuration in drawn
    ]
    assert [row["value"] for row in rows] == [str(100.0 + number) for number in range(6)]

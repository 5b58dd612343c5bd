"""Starting from a prior: what is refused and where the message points, and which ranking comes out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml
from studies import make_folder

from knobscope.commands.models import fit_from_prior, saving, write_prior
from knobscope.durable_files import write_sealed
from knobscope.specs import Dbms, Prior, SpecErrors, check_prior_version, load_study, major_version
from knobscope.specs.reading.source import load_document
from knobscope.stages.detect import create_schema
from knobscope.tables import insert_rows
from knobscope.workflow.fitting import describe_fitting

STUDY = """\
name: later
description: starts from a prior
dbms: [sqlite]
devices: [local-disk]
workloads:
  ycsb-a: {records: 300}
knobs:
  sqlite:
    synchronous:
    journal_mode:
    cache_size: {values: [-500, -2000]}
screening:
  prior: earlier
  top: 2
"""


def knob(name: str, rank: int, stands_out: bool = True) -> dict[str, Any]:
    figures = {"importance": 0.5 / rank, "permutation": 0.4 / rank, "above_noise": stands_out}
    return {"knob": name, "rank": rank, "rank_low": rank, "rank_high": rank, "stands_out": stands_out, **figures}


def ranking(**changes: Any) -> dict[str, Any]:
    return {
        "dbms": "sqlite",
        "dbms_version": "3.46.1",
        "workload": "ycsb-a",
        "workload_class": "write",
        "device": "local-disk",
        "device_profile": {"tier": "cloud", "preferred_write_bytes": 16384},
        "measured": "2026-11-21T08:00:00",
        "model": "anova",
        "runs": 34,
        "holdout_r2": 0.93,
        "trustworthy": True,
        "reason": "held-out R2 is 0.93",
        "knobs": [knob("journal_mode", 1), knob("synchronous", 2), knob("cache_size", 3, stands_out=False)],
        **changes,
    }


def make_prior(*rankings: dict[str, Any]) -> Prior:
    about = {"name": "earlier", "study": "earlier", "study_hash": "0" * 16, "saved": "2026-11-21", "knobscope": "0.1.0"}
    return Prior.model_validate({**about, "rankings": list(rankings) or [ranking()]})


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes a study and the priors beside it."""
    make_folder(tmp_path)

    def write(*priors: Prior, text: str = STUDY) -> Path:
        for one in priors:
            write_prior(one, tmp_path / "models")
        path = tmp_path / "specs/studies/later.yaml"
        path.write_text(text)
        return path

    return write


def problems(path: Path) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        load_study(path, path.parents[2], runnable=False)
    return [f"{one.line} {one.key}: {one.found}; {one.expected}" for one in caught.value.problems]


def test_a_written_prior_is_read_as_it_was(study: Callable[..., Path]) -> None:
    path = study(make_prior())
    assert load_study(path, path.parents[2], runnable=False).prior == make_prior()


def test_a_ranking_has_the_version_of_its_last_run(study: Callable[..., Path], tmp_path: Path) -> None:
    """A DBMS that was updated while its study ran: 3.46.1 came after 3.9.2, and as a text before it."""
    path, results = study(text=SCREENED), tmp_path / "results/later"
    case = {"dbms": "sqlite", "device": "local-disk", "workload": "ycsb-a"}
    of_runs = {**case, "phase": "screen", "status": "ok", "workload_class": "write"}
    fit, profile = results / "/".join(case.values()) / "fit/0.json", results / "devices/local-disk.json"
    for file in (fit, profile):
        file.parent.mkdir(parents=True)
    about = {"holdout_r2": 0.9, "trustworthy": True, "reason_trust": "held-out R2 is 0.9"}
    write_sealed(fit, {**about, "importance": [knob("journal_mode", 1)]})
    write_sealed(profile, {"device": "local-disk"})
    with duckdb.connect(str(results / "study.duckdb")) as connection:
        create_schema(connection)
        insert_rows(connection, "fits", [{**case, "round": 0, "model": "anova", "runs": 2}])
        rows = [
            {**of_runs, "run_id": version, "dbms_version": version, "started_at": f"2026-11-{day}"}
            for day, version in ((20, "3.9.2"), (21, "3.46.1"))
        ]
        insert_rows(connection, "runs", rows)
    specs = load_study(path, path.parents[2], runnable=False)
    (ranked,) = saving.make_prior(specs, results, "later").rankings
    assert ranked.dbms_version == "3.46.1"


def test_a_prior_can_be_given_as_a_file(study: Callable[..., Path]) -> None:
    path = study(make_prior(), text=STUDY.replace("prior: earlier", "prior: models/earlier.yaml"))
    assert load_study(path, path.parents[2], runnable=False).prior == make_prior()


def test_the_first_knobs_that_stand_out_are_selected(study: Callable[..., Path]) -> None:
    path = study(make_prior())
    specs = load_study(path, path.parents[2], runnable=False)
    fit = fit_from_prior(specs, make_prior(), specs.cases[0])
    assert [entry["knob"] for entry in fit["importance"] if entry["selected"]] == ["journal_mode", "synchronous"]
    assert fit["stopped"]
    assert (fit["runs"], fit["prior"], fit["holdout_r2"]) == (0, "earlier", 0.93)
    assert "sqlite 3.46.1 on local-disk" in fit["reason"]


def test_rankings_of_several_devices_are_joined_by_the_best_rank(study: Callable[..., Path]) -> None:
    path = study(make_prior())
    specs = load_study(path, path.parents[2], runnable=False)
    slow = ranking(
        device="slow",
        knobs=[knob("cache_size", 1), knob("journal_mode", 2), knob("page_size", 3)],
        trustworthy=False,
        holdout_r2=0.4,
    )
    fit = fit_from_prior(specs, make_prior(ranking(), slow), specs.cases[0])
    assert [entry["knob"] for entry in fit["importance"]] == ["cache_size", "journal_mode", "synchronous"]
    assert [entry["rank"] for entry in fit["importance"]] == [1, 2, 3]
    assert not fit["trustworthy"]
    assert fit["holdout_r2"] == 0.4


def test_another_workload_class_is_refused_where_the_prior_is_named(study: Callable[..., Path]) -> None:
    (problem,) = problems(study(make_prior(ranking(workload_class="read"))))
    assert problem.startswith("13 screening.prior: prior 'earlier', which ranks the knobs of sqlite 3.46.1 under")
    assert problem.endswith("one that ranks sqlite under workloads of class write (as ycsb-a is)")


def test_another_dbms_is_refused(study: Callable[..., Path]) -> None:
    (problem,) = problems(study(make_prior(ranking(dbms="postgresql"))))
    assert "13 screening.prior" in problem


def test_a_knob_that_was_never_ranked_is_refused_unless_it_is_swept_always(study: Callable[..., Path]) -> None:
    more = STUDY.replace("    synchronous:\n", "    synchronous:\n    page_size: {values: [1024, 4096]}\n")
    (problem,) = problems(study(make_prior(), text=more))
    assert problem.startswith("10 knobs.sqlite.page_size: a knob that prior 'earlier' does not rank")
    path = study(make_prior(), text=more + "sweep: {always: [page_size]}\n")
    assert load_study(path, path.parents[2], runnable=False).prior is not None


def test_a_missing_prior_names_those_that_are_there(study: Callable[..., Path]) -> None:
    (problem,) = problems(study(make_prior(), text=STUDY.replace("prior: earlier", "prior: earlyer")))
    assert problem == "13 screening.prior: no prior 'earlyer'; earlier (did you mean that?)"


def test_a_broken_prior_is_reported_with_its_own_lines(study: Callable[..., Path]) -> None:
    path = study(make_prior())
    file = path.parents[2] / "models/earlier.yaml"
    file.write_text(file.read_text().replace("trustworthy: true", "trustworthy: perhaps"))
    (problem,) = problems(path)
    assert "rankings.0.trustworthy: 'perhaps'; true or false" in problem


def test_another_major_version_is_refused_and_a_minor_one_is_not(study: Callable[..., Path], sqlite: Dbms) -> None:
    path = study(make_prior())
    document = load_document(path)
    assert list(check_prior_version(document, make_prior(), sqlite, "3.50.4", "write")) == []
    (problem,) = check_prior_version(document, make_prior(), sqlite, "4.0.1", "write")
    assert str(problem).endswith(
        "later.yaml:13: screening.prior: found prior 'earlier', measured with sqlite 3.46.1; "
        "expected a prior of major version 4: this machine has sqlite 4.0.1"
    )


def test_the_spec_says_how_many_numbers_make_a_major_version(sqlite: Dbms) -> None:
    two = sqlite.model_copy(update={"major_version_parts": 2})
    assert (major_version(sqlite, "10.11.6-MariaDB"), major_version(two, "10.11.6-MariaDB")) == ("10", "10.11")


def test_priors_are_validated_like_other_specs(study: Callable[..., Path]) -> None:
    path = study(make_prior())
    content = yaml.safe_load((path.parents[2] / "models/earlier.yaml").read_text())
    content["rankings"][0]["knobs"][0]["rank"] = 0
    (path.parents[2] / "models/earlier.yaml").write_text(yaml.safe_dump(content))
    (problem,) = problems(path)
    assert "rank: 0; greater than or equal to 1" in problem.replace("should be ", "")


SCREENED = STUDY.replace("  prior: earlier\n", "")


def test_a_prior_that_ranks_all_knobs_of_a_study_is_offered(study: Callable[..., Path]) -> None:
    path = study(make_prior(), text=SCREENED)
    specs = load_study(path, path.parents[2], runnable=False)
    start, line = describe_fitting(specs, path.parents[2] / "models")
    assert start == "models/earlier.yaml: journal_mode and synchronous stood out there and have to show less here"
    assert line.startswith("models/earlier.yaml ranks all knobs of this study: `screening: {prior: earlier}` would")


@pytest.mark.parametrize(
    "changes",
    [
        {"dbms": "postgresql"},
        {"workload_class": "read"},
        {"trustworthy": False},
        {"knobs": [knob("journal_mode", 1), knob("synchronous", 2)]},
    ],
    ids=["another DBMS", "another class of workload", "not to be trusted", "one knob less"],
)
def test_a_prior_that_does_not_fit_is_not_offered(study: Callable[..., Path], changes: dict[str, Any]) -> None:
    path = study(make_prior(ranking(**changes)), text=SCREENED)
    specs = load_study(path, path.parents[2], runnable=False)
    lines = describe_fitting(specs, path.parents[2] / "models")
    assert not [line for line in lines if "ranks all knobs" in line]
    assert len(lines) == int("knobs" in changes)  # a start from it does without the knob that it never ranked


def test_a_study_with_a_prior_is_offered_no_other(study: Callable[..., Path]) -> None:
    path = study(make_prior())
    specs = load_study(path, path.parents[2], runnable=False)
    assert describe_fitting(specs, path.parents[2] / "models") == []


def test_a_file_that_is_no_prior_is_named_and_hinders_nothing(study: Callable[..., Path]) -> None:
    path = study(make_prior(), text=SCREENED)
    (path.parents[2] / "models/broken.yaml").write_text("name: other\n")
    specs = load_study(path, path.parents[2], runnable=False)
    broken, fitting, _ = describe_fitting(specs, path.parents[2] / "models")
    assert broken.startswith("models/broken.yaml cannot be read as a prior: ")
    assert fitting.startswith("models/earlier.yaml")

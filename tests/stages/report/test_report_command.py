import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from knobscope.cli import main
from knobscope.specs import StudySpecs
from knobscope.stages.report.command import add_parser


def write_specs(folder: Path, specs: StudySpecs) -> Path:
    shelves: dict[str, dict[str, Any]] = {
        "dbms": specs.dbms,
        "devices": specs.devices,
        "workloads": specs.workloads,
        "studies": {specs.study.name: specs.study},
    }
    for shelf, group in shelves.items():
        (folder / shelf).mkdir()
        for name, spec in group.items():
            content = spec.model_dump(mode="json", by_alias=True, exclude_none=True)
            if shelf == "studies":
                content["knobs"] = {dbms: {knob: content["knobs"][dbms].get(knob) for knob in knobs}
                                    for dbms, knobs in specs.study.knobs.items()}  # fmt: skip
                content["workloads"] = dict.fromkeys(specs.study.workloads)
            (folder / shelf / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return folder / "studies" / f"{specs.study.name}.yaml"


def test_command_writes_page_and_figures(
    study: Path, specs: StudySpecs, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    out, figures = tmp_path / "new" / "report.html", tmp_path / "figures"
    args = parser.parse_args(
        ["report", "--study", str(write_specs(tmp_path, specs)), "--database", str(study), "--out", str(out),
         "--figures", str(figures)]
    )  # fmt: skip
    assert args.run(args) == 0
    assert "sqlite-two-tiers" in out.read_text()
    assert list(figures.glob("*.svg"))
    assert "figures)" in capsys.readouterr().err


def test_no_mismatch_is_no_clean_bill_where_nothing_could_be_judged(
    changed_study: Callable[..., Path], specs: StudySpecs, tmp_path: Path, prints: Callable[..., str]
) -> None:
    asked = ["finding", str(write_specs(tmp_path, specs)), "--database"]
    unjudged = "No mismatch was found, but none was ruled out: no question could be judged.\n"
    for verdict, said in (("none", "No mismatch was found.\n"), ("insufficient", unjudged)):
        changed = changed_study(f"UPDATE findings SET verdict = '{verdict}', penalty = NULL")  # noqa: S608 - ours
        assert prints(*asked, changed) == said


def test_a_finished_study_needs_no_paths(
    study: Path,
    specs: StudySpecs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    refuses: Callable[..., str],
) -> None:
    monkeypatch.chdir(tmp_path)
    path = str(write_specs(tmp_path, specs))
    assert "found no study.duckdb in it; expected the results of study sqlite-two-tiers" in refuses("report", path)
    results = tmp_path / "results/sqlite-two-tiers"
    results.mkdir(parents=True)
    (results / "study.duckdb").symlink_to(study)
    assert main(["report", path]) == 0
    assert "sqlite-two-tiers" in Path("sqlite-two-tiers-report.html").read_text()
    assert "expected the study once" in refuses("report", path, "--study", path)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("synchronous", "the knob 'synchronous' of sqlite"),
        ("ycsb-a", "the workload 'ycsb-a'"),
        ("sqlite", "the DBMS 'sqlite'"),
    ],
)
def test_runs_of_what_was_renamed_in_the_specs_are_named(
    study: Path, specs: StudySpecs, tmp_path: Path, refuses: Callable[..., str], name: str, found: str
) -> None:
    path = write_specs(tmp_path, specs)
    for file in list(tmp_path.glob("*/*.yaml")):
        file.with_stem(file.stem.replace(name, "new")).write_text(file.read_text().replace(name, "new"))
    path = path.with_stem(path.stem.replace(name, "new"))
    said = refuses("report", "--study", path, "--database", study, "--out", tmp_path / "page.html")
    assert f"{study}: found runs of {found}; expected names that the specs of study" in said

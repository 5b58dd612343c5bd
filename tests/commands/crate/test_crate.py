"""A study as a crate, from which a stranger draws its figures again; and crates of strangers, who may be hostile."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knobscope.cli import main
from knobscope.commands.crate import metadata
from knobscope.specs import load_study
from knobscope.stages.detect import build_database

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tests/stages/detect"))

from generated_studies import StudyMaker, Truth  # noqa: E402 - its folder has just been named

TRUTH = {("sync", "none"): Truth(throughput=1.5)}
METADATA = "ro-crate-metadata.json"
VALIDATOR = Path(os.environ.get("KNOBSCOPE_FLEET", ROOT / ".fleet")) / "roc-validator/bin/python"

Refused = Callable[[Path], str]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished, simulated study that has a mismatch."""
    root = tmp_path_factory.mktemp("project")
    maker = StudyMaker(root, repeats=3, columns={"started_at": "2026-11-27T10:00:00"}, truth=TRUTH)
    specs = maker.specs()
    build_database(maker.files(specs), specs, root / "results/sim/study.duckdb")
    (root / "specs/devices/elsewhere.yaml").write_text("name: elsewhere\n")  # no part of the study
    return root


@pytest.fixture(scope="module")
def crate(project: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        assert main(["crate", "sim", "--author", "A. Person"]) == 0
    return project / "sim.crate.zip"


def files_below(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_stranger_draws_every_figure_again_byte_by_byte(
    crate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["crate", "--open", str(crate)]) == 0
    opened = tmp_path / "sim-opened"
    measured, redrawn = files_below(opened / "measured/figures"), files_below(opened / "redrawn/figures")
    assert measured == redrawn
    assert len([name for name in measured if name.endswith(".svg")]) > 10
    assert (opened / "measured/report.html").read_bytes() == (opened / "redrawn/report.html").read_bytes()
    assert f"{len(measured) + 1} files: all equal those of the crate" in capsys.readouterr().out.replace("\u00a0", " ")
    assert not (opened / "specs/devices/elsewhere.yaml").exists()
    assert load_study(opened / "specs/studies/sim.yaml", opened, runnable=False).study.name == "sim"


@pytest.mark.slow
def test_a_figure_that_differs_is_named(crate: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "changed"
    with zipfile.ZipFile(crate) as archive:
        archive.extractall(folder)
    picture = next((folder / "measured/figures").glob("*.svg"))
    picture.write_text(picture.read_text().replace("svg", "SVG", 1))
    list_files(folder)
    assert main(["crate", "--open", str(folder), "--out", str(tmp_path / "opened")]) == 1
    said = capsys.readouterr().out.replace("\u00a0", " ")
    assert said.startswith("1 file of ")
    assert said.endswith(f"differ: figures/{picture.name}\n")


@pytest.mark.slow
def test_the_metadata_name_study_workflow_and_times(crate: Path) -> None:
    with zipfile.ZipFile(crate) as archive:
        names = set(archive.namelist())
        entities = {entity["@id"]: entity for entity in json.loads(archive.read(METADATA))["@graph"]}
    assert names - {METADATA} == {name for name, entity in entities.items() if "sha256" in entity}
    assert {"CITATION.cff", "LICENSE", "README.md", "Snakefile", "rules/report.smk"} <= names
    run = entities["#run"]
    assert run["object"] == {"@id": "specs/studies/sim.yaml"}
    assert run["instrument"] == entities["./"]["mainEntity"] == {"@id": "Snakefile"}
    assert run["startTime"] < run["endTime"]
    assert entities["#author-0"]["name"] == "A. Person"


@pytest.mark.long
def test_the_crate_is_valid_by_roc_validator(crate: Path) -> None:
    if not VALIDATOR.exists():
        pytest.skip("no roc-validator; setup/fleet.sh roc-validator")
    terms = Path(metadata.load_rocrate().__file__).parent / "data/ro-crate.jsonld"
    script = Path(__file__).with_name("validate_crate.py")
    said = subprocess.run([VALIDATOR, script, crate, terms], capture_output=True, text=True, check=True).stdout
    assert said == "validated\n"


@pytest.mark.real
@pytest.mark.long
def test_a_measured_study_is_drawn_again_with_snakemakes_report_in_its_crate(
    small_study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small_study)
    crate = tmp_path / "small.crate.zip"
    assert main(["crate", "small", "--out", str(crate)]) == 0
    monkeypatch.chdir(tmp_path)
    assert main(["crate", "--open", str(crate)]) == 0
    assert "report.html" in (tmp_path / "small-opened/snakemake-report.html").read_text()


def list_files(folder: Path, names: dict[str, str] | None = None) -> None:
    """Write metadata with checksums of all files of a folder, as whoever changes a crate would; or of other names."""
    sums = names or {
        name: hashlib.sha256(content).hexdigest() for name, content in files_below(folder).items() if name != METADATA
    }
    graph = [{"@id": name, "sha256": checksum} for name, checksum in sums.items()]
    (folder / METADATA).write_text(json.dumps({"@graph": graph}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A crate with the least that is looked at."""
    folder = tmp_path / "crates/strangers"
    (folder / "specs/studies").mkdir(parents=True)
    (folder / "specs/studies/sim.yaml").write_text("name: sim\n")
    (folder / "measured").mkdir()
    (folder / "measured/study.duckdb").write_text("")
    list_files(folder)
    return folder


@pytest.fixture
def refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Open a crate, which is refused without a trace outside of the crate; returns the sentence."""

    def check(crate: Path) -> str:
        before = files_below(tmp_path)
        assert main(["crate", "--open", str(crate), "--out", str(tmp_path / "opened/here")]) == 2
        assert {name for name in files_below(tmp_path) if not name.startswith("opened/here/")} == set(before)
        return capsys.readouterr().err

    return check


@pytest.mark.parametrize(
    "name", ["../outside", "a/../../outside", "/tmp/knobscope-outside", "..\\outside", "C:/outside"]
)
def test_a_name_that_leads_out_of_the_folder_is_refused(name: str, folder: Path, refused: Refused) -> None:
    archive_path = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive_path, "w") as archive:
        archive.write(folder / METADATA, METADATA)
        archive.writestr(name, "x")
    said = refused(archive_path)
    assert repr(name) in said
    assert "expected names below the crate's folder" in said
    assert not Path("/tmp/knobscope-outside").exists()


def test_links_and_special_files_are_refused(folder: Path, refused: Refused) -> None:
    link = zipfile.ZipInfo("measured/traces")
    link.external_attr = 0o120777 << 16
    archive_path = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive_path, "w") as archive:
        archive.writestr(link, "/etc")
    assert "'measured/traces' is a link or another special file" in refused(archive_path)
    (folder / "secret").symlink_to("/etc/passwd")
    assert "'secret' is a link or another special file" in refused(folder)
    (folder / "secret").unlink()
    os.mkfifo(folder / "pipe")
    assert "'pipe' is a link or another special file" in refused(folder)
    (folder / "pipe").unlink()
    (folder / "traces").symlink_to("/etc", target_is_directory=True)
    assert "'traces' is a link or another special file" in refused(folder)


def test_what_was_changed_added_or_removed_is_named(folder: Path, refused: Refused) -> None:
    (folder / "specs/studies/sim.yaml").write_text("name: other\n")
    assert "specs/studies/sim.yaml was changed after the crate was written" in refused(folder)
    (folder / "specs/studies/sim.yaml").unlink()
    assert "specs/studies/sim.yaml is missing" in refused(folder)
    (folder / "specs/studies/new.yaml").write_text("name: new\n")
    assert "found 'specs/studies/new.yaml', which ro-crate-metadata.json does not list" in refused(folder)


def test_names_that_clash_are_refused(folder: Path, refused: Refused) -> None:
    for names in (("a", "a"), ("a", "a/b"), ("a/b", "a")):
        archive_path = folder.with_name(f"{'-'.join(names).replace('/', '_')}.zip")
        with zipfile.ZipFile(archive_path, "w") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a name that is there twice
            for name in names:
                archive.writestr(name, "x")
        assert "twice, as a file or a folder; expected each name once" in refused(archive_path)


@pytest.mark.slow
def test_a_crate_is_not_compared_with_what_it_brings_as_redrawn(crate: Path, tmp_path: Path) -> None:
    folder = tmp_path / "changed"
    with zipfile.ZipFile(crate) as archive:
        archive.extractall(folder)
    for side in ("measured", "redrawn"):
        (folder / side / "figures").mkdir(parents=True, exist_ok=True)
        (folder / side / "figures/invented.svg").write_text("<svg/>")
    list_files(folder)
    assert main(["crate", "--open", str(folder), "--out", str(tmp_path / "opened")]) == 1


@pytest.mark.parametrize("content", ["", "{", "[]", '{"@graph": 1}', '{"@graph": [{"sha256": ""}]}', "[" * 100_000])
def test_metadata_that_cannot_be_read_are_refused(content: str, folder: Path, refused: Refused) -> None:
    (folder / METADATA).write_text(content)
    assert "expected a crate that `knobscope crate` wrote" in refused(folder)


def test_more_than_a_crate_may_hold_is_refused(folder: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("knobscope.commands.crate.opening._MOST_BYTES", 1000)
    archive_path = folder.with_suffix(".zip")
    with zipfile.ZipFile(archive_path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(100_000))
    assert "expected less" in refused(archive_path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"rules": ["../outside"]}, "outside"),
        ({"screening": {"prior": "../outside/prior.yaml"}}, "prior.yaml"),
    ],
)
def test_a_spec_that_names_a_file_outside_reads_nothing_of_it(
    change: dict[str, Any], named: str, project: Path, folder: Path, tmp_path: Path, refuses: Callable[..., str]
) -> None:
    import yaml

    shutil.copytree(project / "specs", folder / "specs", dirs_exist_ok=True)
    study = folder / "specs/studies/sim.yaml"
    study.write_text(yaml.safe_dump({**yaml.safe_load(study.read_text()), **change}))
    for outside in (tmp_path / "outside", tmp_path / "opened/outside"):
        outside.mkdir(parents=True)
        (outside / "rule.yaml").write_text("a secret\n")
        (outside / "prior.yaml").write_text("a secret\n")
    list_files(folder)
    said = refuses("crate", "--open", folder, "--out", tmp_path / "opened/here")
    assert "outside of the crate; nothing was read from there" in said
    assert named in said
    assert "secret" not in said


def test_what_is_no_crate_is_refused(folder: Path, tmp_path: Path, refuses: Callable[..., str]) -> None:
    (tmp_path / "text.zip").write_text("no archive")
    for path, sentence in (
        ("nowhere.zip", "no nowhere.zip; expected a crate"),
        (str(tmp_path / "text.zip"), "File is not a zip file; expected a crate"),
    ):
        assert sentence in refuses("crate", "--open", path, "--out", tmp_path / "opened")
    assert "exists; remove it, or write elsewhere with --out" in refuses("crate", "--open", folder, "--out", folder)
    said = refuses("crate", "--open", folder, "--author", "Ada", "--results", "there")
    assert "found --results and --author with --open; expected them with STUDY" in said
    assert "expected either STUDY, whose crate is written, or --open CRATE" in refuses("crate")


def test_without_rocrate_a_sentence_says_what_to_install(
    project: Path, monkeypatch: pytest.MonkeyPatch, refuses: Callable[..., str]
) -> None:
    monkeypatch.setitem(sys.modules, "rocrate", None)
    monkeypatch.setitem(sys.modules, "rocrate.rocrate", None)
    monkeypatch.chdir(project)
    assert "rocrate is not installed; writing a crate needs it" in refuses("crate", "sim", "--out", "new.zip")
    assert not (project / "new.zip").exists()


def test_a_crate_takes_nothing_that_a_link_leads_to(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: Callable[..., str]
) -> None:
    shutil.copytree(project, tmp_path / "project")
    monkeypatch.chdir(tmp_path / "project")
    (tmp_path / "secret").write_text("key")
    (tmp_path / "project/results/sim/traces").mkdir()
    (tmp_path / "project/results/sim/traces/notes.json").symlink_to(tmp_path / "secret")
    said = refuses("crate", "sim", "--out", tmp_path / "own.zip")
    assert "notes.json is a link or another special file; expected regular files only" in said
    assert not (tmp_path / "own.zip").exists()

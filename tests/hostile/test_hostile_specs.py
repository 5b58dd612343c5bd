"""Specs, priors, study folders and CSV tables of strangers: each is harmless or refused, in a sentence."""

import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import studies
import yaml
from canaries import ROOT, STUDY, Canaries, Open

from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.workflow.recovery import require_own_files

GOOD = ROOT / "tests/specs/good"
PRIOR = ROOT / "models/redis-all.yaml"
BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"


class Opens:
    """A pickle that would run a program when it is loaded."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("echo > canary-was-loaded",)


def specs() -> dict[str, tuple[bytes, str]]:
    study = (GOOD / "studies").glob("*.yaml")
    text = next(study).read_text()
    return {
        "bomb": (BOMB.encode(), "the alias *"),
        "tag": (b"name: !!python/object/apply:os.system [id]\n", "the tag !!python/object/apply:os.system"),
        "pickle": (pickle.dumps(Opens()), "found"),
        "number": (b"name: " + b"9" * 5000 + b"\n", "expected an integer of 64 bits"),
        "deep": (b"[" * 100_000, "found"),
        "control": (b"name: \x1b[2J\n", "the character U+001B"),
        "script": (text.replace("name: ", "name: <script>alert(1)</script>", 1).encode(), "found"),
        "path": (text.replace("name: ", "name: ../../", 1).encode(), "found"),
        "large": (b"# " + b"x" * (5 << 20), "more than 4 MiB"),
    }


@pytest.mark.slow
def test_specs_end_in_a_sentence_with_file_and_line(open_watched: Open, tmp_path: Path) -> None:
    folder = tmp_path / "specs/studies"
    folder.mkdir(parents=True)
    for name, (content, _) in specs().items():
        (folder / f"{name}.yaml").write_bytes(content)
    os.mkfifo(folder / "pipe.yaml")
    expected = {name: sentence for name, (_, sentence) in specs().items()} | {"pipe": "no regular file"}
    commands = [["validate", folder / f"{name}.yaml", "--root", tmp_path] for name in expected]
    for (name, sentence), answer in zip(expected.items(), open_watched(*commands), strict=True):
        assert answer.code == 2, name
        assert sentence in answer.text, name
        assert f"{name}.yaml:" in answer.text


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("measured", "yesterday", "a moment of UTC"),
        ("measured", "2026-11-20T21:03:00+01:00", "a moment of UTC"),
        ("runs", 10**30, "runs: found"),
        ("knobs", [], "knobs: found"),
        ("dbms", "../../etc", "dbms: found"),
        ("weights", "x", "weights: found"),
    ],
)
def test_a_prior_that_is_none_is_named(key: str, value: object, sentence: str, tmp_path: Path) -> None:
    from knobscope.stages.select.warm_start import read_priors

    content = yaml.safe_load(PRIOR.read_text())
    content["rankings"][0][key] = value
    (tmp_path / PRIOR.name).write_text(yaml.safe_dump(content))
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(Opens()))  # nothing but YAML is a prior
    (tmp_path / "model.txt").write_text("tree\nversion=v4\n")
    (found,) = read_priors(tmp_path)
    assert isinstance(found, str)
    assert sentence in found


@pytest.mark.parametrize("what", ["link", "pipe", "socket"])
def test_a_study_folder_holds_files_and_directories_only(
    what: str, canaries: Canaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    place = tmp_path / "results/run.log"
    if what == "link":
        place.symlink_to(canaries.file)
    elif what == "pipe":
        os.mkfifo(place)
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("results/run.log")
    with pytest.raises(UserError, match=r"run\.log: a (symbolic link|pipe, socket or device)"):
        require_own_files(Path("results"))
    canaries.check()


@pytest.mark.slow
def test_names_in_a_study_folder_are_shown_and_not_obeyed_by_the_terminal(tmp_path: Path) -> None:
    """Snakemake reads the Snakefile: what that prints goes through none of our own streams."""
    folder, name = studies.make_folder(tmp_path / "folder"), "\x1b]2;title\x07.json"
    studies.write_study(folder, "small", studies.SMALL)
    devices = folder / "results/small/devices"
    devices.mkdir(parents=True)
    (devices / name).write_text("no JSON")
    damaged = studies.call_unchecked(folder, "small", "-n")
    (devices / name).unlink()
    (devices / name).symlink_to("elsewhere")
    strange = studies.call_unchecked(folder, "small", "-n")
    for said in (damaged.stderr, strange.stderr):
        assert "\x1b" not in said
        assert r"\x1b]2;title\x07.json" in said


@pytest.mark.parametrize("place", [".snakemake", ".snakemake/locks", ".snakemake/log"])
def test_the_folder_of_snakemake_leads_nowhere(
    place: str, canaries: Canaries, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).symlink_to(canaries.directory)
    with pytest.raises(UserError, match=f"{place}: found a symbolic link"):
        require_own_files(Path("results"))
    canaries.check()


@pytest.mark.slow
def test_sealed_files_of_another_shape_get_a_sentence(open_watched: Open, run_folder: Path, tmp_path: Path) -> None:
    """Their checksum is right, since anybody can calculate it."""
    shapes = [{}, {"values": 1}, {"values": [{"config_id": "x", "more": 10**30}], "blocks": 1, "reason": ""}]
    commands = []
    for number, content in enumerate(shapes):
        write_sealed(tmp_path / f"{number}.json", content)
        commands.append(
            ["plan", "--study", STUDY, "--root", ROOT, "--case", "sqlite/local-disk/ycsb-a", "--phase", "sweep",
             "--round", 1, "--reinforce", tmp_path / f"{number}.json", "--out", run_folder / "plan.parquet"]
        )  # fmt: skip
    commands += [[*commands[0][:6], case, *commands[0][7:]] for case in ("x", "///", "a/b/c", "\x1b/x/y")]
    answers = open_watched(*commands)
    assert {answer.code for answer in answers} == {2}
    assert all("expected a file that `knobscope reinforce` wrote" in answer.text for answer in answers[:2])
    assert "no configuration x" in answers[2].text
    assert all("case" in answer.text for answer in answers[3:])


@pytest.mark.long
def test_little_memory_ends_in_a_sentence(tmp_path: Path) -> None:
    """An address space in which Python starts, and a table does not fit."""
    mebibytes = 1024
    table = tmp_path / "runs.csv"
    table.write_text("a,tps\n" + "".join(f"{n:0900},{n}\n" for n in range(600_000)))
    command = f"ulimit -v {mebibytes << 10}; exec {sys.executable} -m knobscope rank {table} --response tps"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "knobscope: rank needs more memory than this process may have"


HEAD = "dbms,device,tier,workload,knob,value,baseline,throughput_ops\n"
CELLS = [
    '"a""b"',
    '"a\nb"',
    '"a;b"',
    "a\x1b[2J",
    '"a\rb"',
    "=1+1",
    "<script>alert(1)</script>",
    "../../x",
    "x" * 200_000,
]


@pytest.mark.slow
def test_imported_cells_are_refused_by_line_or_accepted_by_detect(
    open_watched: Open, run_folder: Path, tmp_path: Path
) -> None:
    """What `import` accepts it also tells how to go on with, so `detect` has to accept it."""
    for column in range(2):
        files = []
        for number, cell in enumerate(CELLS):
            names = ["mydb", cell] if column else [cell, "4"]
            row = f"mydb,disk,sata_ssd,load,{'cache' if column else names[0]},{names[1]},1,100\n"
            default = "mydb,disk,sata_ssd,load,,,,90\n"
            files.append(tmp_path / f"{column}-{number}.csv")
            files[-1].write_text(HEAD + default + row + default + row, newline="")
        named = [(f"t{column}-{number}", file) for number, file in enumerate(files)]
        imports = [["import", file, "--study", name, "--out", run_folder / name] for name, file in named]
        answers = open_watched(*imports)
        taken = [run_folder / name for (name, _), answer in zip(named, answers, strict=True) if answer.code == 0]
        for (_, file), answer in zip(named, answers, strict=True):
            assert answer.code == 0 or f"{file.name}:" in answer.text
        detects = [
            ["detect", "--study", next((folder / "specs/studies").glob("*.yaml")), "--root", folder,
             "--runs", *folder.glob("*/*/*/runs/*"), "--plans", *folder.glob("*/*/*/plan/*"),
             "--devices", *folder.glob("devices/*"), "--out", folder / "study.duckdb"]
            for folder in taken
        ]  # fmt: skip
        assert {answer.code for answer in open_watched(*detects)} <= {0}

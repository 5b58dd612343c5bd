"""Unusual environments: odd paths, a closed umask, a C locale, folders that cannot be written."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from shipped_specs import ROOT, shipped_dbms

from knobscope.cli import main
from knobscope.processes import PIPELINE_VARIABLE, find_service_user, make_shared_directory
from knobscope.servers import Server, open_instance
from knobscope.specs import Dbms, Workload, find_program
from knobscope.stages.prepare import copy_snapshot, prepare_snapshot

ODD = 'it\'s "odd" [ä] %20 $(x)'


def runs_in(folder: Path, dbms: Dbms, workload: Workload) -> None:
    """Load data below a folder, copy it and start a server on the copy."""
    assert dbms.lifecycle is not None
    snapshot = prepare_snapshot(dbms, workload, {}, folder)
    make_shared_directory(folder / "run", find_service_user())
    copy_snapshot(snapshot, folder / "run" / "data")
    with (
        open_instance(dbms, folder / "run" / "data", snapshot.password) as instance,
        Server(instance, dbms.lifecycle, {}, instance.runtime / "server.log") as server,
    ):
        server.wait_ready()
        assert instance.environment["LC_ALL"] == "C.UTF-8"


@pytest.mark.real
@pytest.mark.parametrize(
    "name", ["redis", *(pytest.param(name, marks=pytest.mark.long) for name in ("postgresql", "mariadb"))]
)
@pytest.mark.parametrize("mood", ["odd path", "closed umask"])
def test_servers_live_in_odd_folders(name: str, mood: str, short_workload: Workload, open_directory: Path) -> None:
    dbms = shipped_dbms(name)
    if any(find_program(wanted) is None for wanted in dbms.programs.values()):
        pytest.skip(f"no {name} here")
    folder = open_directory / (ODD if mood == "odd path" else "plain")
    before = os.umask(0o077 if mood == "closed umask" else 0o022)
    try:
        folder.mkdir()
        runs_in(folder, dbms, short_workload)
    finally:
        os.umask(before)


@pytest.mark.real
def test_a_file_in_an_odd_folder_under_the_posix_locale(open_directory: Path) -> None:
    """SQLite, whose data are reached by the client alone; the interpreter too is started in that locale."""
    folder = open_directory / ODD
    folder.mkdir()
    code = (
        "import sys; from pathlib import Path; from knobscope.stages.prepare import prepare_snapshot\n"
        "from knobscope.specs import Dbms, Workload, read_spec\n"
        f"root = Path({str(ROOT)!r})\n"
        "dbms = read_spec(root / 'specs/dbms/sqlite.yaml', Dbms, None)[1]\n"
        "load = read_spec(root / 'specs/workloads/ycsb-a.yaml', Workload, None)[1].model_copy(update={'records': 10})\n"
        "print(ascii(str(prepare_snapshot(dbms, load, {}, Path.cwd()).data)))\n"
    )
    env = {**os.environ, "LC_ALL": "POSIX"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "odd" in done.stdout


def test_a_refusal_of_the_system_is_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "runs.csv"
    table.write_text("a,tps\n1,2\n2,3\n3,4\n")
    missing = tmp_path / "file" / "below" / "out.json"
    (tmp_path / "file").write_text("no directory")
    assert main(["rank", str(table), "--response", "tps", "--json", str(missing)]) in (1, 2)
    said = capsys.readouterr().err
    assert "knobscope: the system refused it: Not a directory" in said
    assert "Traceback" not in said
    assert main(["rank", str(table), "--response", "tps", "--json", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path} is a directory; expected the name of a file to write\n" in said, "not its name meanwhile"


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes folders immutable")
def test_a_folder_of_results_that_cannot_be_written_is_reported_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "specs").symlink_to(ROOT / "specs")
    results = tmp_path / "results/quickstart"
    results.mkdir(parents=True)
    if subprocess.run(["chattr", "+i", results], check=False).returncode != 0:
        pytest.skip("this file system has no immutable folders")
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--cores", "1"]
    try:
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    finally:
        subprocess.run(["chattr", "-i", results], check=True)
    assert done.returncode == 2
    assert "knobscope: cannot write to results/quickstart (Operation not permitted)" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_device_behind_standard_error_is_no_traceback(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "knobscope", "validate", str(tmp_path / "nothing.yaml")], stderr=full, check=False
        )
    assert done.returncode == 2


def test_a_reader_that_has_gone_is_no_traceback() -> None:
    """As behind `| head`."""
    command = [sys.executable, "-m", "knobscope", "rules"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()  # long before anything is written
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_a_bad_pipeline_is_reported(monkeypatch: pytest.MonkeyPatch, refuses: Callable[..., str]) -> None:
    monkeypatch.setenv(PIPELINE_VARIABLE, "x1")
    arguments = "--study x.yaml --case a/b/c --plan p --block b --profile p --store s --out o".split()  # noqa: SIM905
    assert f"{PIPELINE_VARIABLE} is 'x1'" in refuses("measure", *arguments)

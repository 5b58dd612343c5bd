"""The page "Bring your own benchmark": its programs print what the parser reads, and its specs make a study."""

import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest
import yaml
from waiting import wait_until

from knobscope.cli import main
from knobscope.generators import GeneratorCall, GeneratorError, load_data
from knobscope.generators.output import Output
from knobscope.generators.parsers import read_output
from knobscope.identity import data_identity
from knobscope.servers import make_data_directory, open_instance
from knobscope.specs import Dbms, Generator, Workload, find_specs, validate_files

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/how-to/own-benchmark.md").read_text()
SECONDS = 1.2


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def build(language: str, folder: Path) -> list[str]:
    """Return the command of the page's program in a language; skips where nothing here can build it."""
    (text,) = blocks(language)
    program = folder / "append"
    if language == "python":
        program.write_text(text)
        program.chmod(0o755)
        return [str(program)]
    endings = {"go": "go", "rust": "rs"}
    source = folder / f"append.{endings[language]}"
    source.write_text(text)
    compiler = {"go": ["go", "build", "-o"], "rust": ["rustc", "-O", "-o"]}[language]
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"no {compiler[0]} here")
    subprocess.run([*compiler, str(program), str(source)], check=True, cwd=folder)
    return [str(program)]


@pytest.mark.real
@pytest.mark.parametrize("language", ["python", "go", "rust"])
def test_the_programs_print_what_is_read(language: str, tmp_path: Path) -> None:
    command = build(language, tmp_path)
    began = time.monotonic()
    text = subprocess.run(
        [*command, str(tmp_path), str(SECONDS), "--sync=each"], check=True, capture_output=True, text=True
    ).stdout
    duration = time.monotonic() - began
    result = read_output(
        "generic", Output([(duration, line) for line in text.splitlines()], duration, tmp_path, tmp_path, 1), 1.0
    )
    assert result.operations["ALL"]["ok"] * 1000 == (tmp_path / "log").stat().st_size
    assert result.window_s >= SECONDS - 0.1


@pytest.mark.real
@pytest.mark.parametrize(
    "language", ["python", *(pytest.param(name, marks=pytest.mark.long) for name in ("go", "rust"))]
)
def test_a_stall_of_seconds_leaves_rows_that_rise(language: str, tmp_path: Path) -> None:
    """Operations after it take microseconds: a row for each second that has passed would state one twice."""
    call = [*build(language, tmp_path), str(tmp_path), "2.5", "--sync=never"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, text=True) as program:
        assert wait_until(lambda: (tmp_path / "log").exists() and (tmp_path / "log").stat().st_size > 0)
        program.send_signal(signal.SIGSTOP)
        time.sleep(2.1)
        program.send_signal(signal.SIGCONT)
        text, _ = program.communicate()
    output = Output([(2.5, line) for line in text.splitlines()], 60, tmp_path, tmp_path, 1)
    assert len(read_output("generic", output, 1.0).intervals) <= 2


def test_the_outputs_of_the_page_are_read(tmp_path: Path) -> None:
    for language, operations in (("csv", 1602), ("json", 4)):
        (text,) = blocks(language)
        read = read_output(
            "generic", Output([(3.0, line) for line in text.splitlines()], 3.0, tmp_path, tmp_path, 1), 1
        )
        assert read.operations["ALL"]["ok"] == operations


@pytest.fixture
def project(tmp_path: Path, open_directory: Path) -> Path:
    """A project with the page's specs and program; a run covers the program's folder, which is below /var/tmp."""
    build("python", open_directory)
    for text in blocks("yaml"):
        (path,) = re.findall(r"^# (specs/\S+)$", text, re.MULTILINE)
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text.replace("/opt/append", str(open_directory / "append")))
    (tmp_path / "specs/devices").mkdir()
    shutil.copy(ROOT / "specs/devices/local-disk.yaml", tmp_path / "specs/devices")
    return tmp_path


def test_the_specs_of_the_page_are_right(project: Path) -> None:
    assert len(validate_files(find_specs([project / "specs"]), project)) == 5


@pytest.mark.real
def test_a_run_sees_the_files_of_its_generator_and_counts_their_changes(open_directory: Path) -> None:
    """The script is where a run usually sees nothing: below /var/tmp, in a folder that is closed to its user."""
    data, closed = open_directory / "data", open_directory / "closed"
    make_data_directory(data)
    closed.mkdir(mode=0o700)
    script = closed / "append.py"
    script.write_text(blocks("python")[0])
    generator_text, dbms_text, workload_text, _ = blocks("yaml")
    run = ["python3", "{path.append}", "{connection}", "{seconds}", "--sync=never"]
    call_by_path = {
        "programs": {"python3": {"find": ["/usr/bin/python3"]}},
        "paths": {"append": {"find": [str(script)]}},
        "load": [run],
        "run": run,
    }
    generator = Generator.model_validate({**yaml.safe_load(generator_text), **call_by_path})
    dbms = Dbms.model_validate(yaml.safe_load(dbms_text))
    workload = Workload.model_validate(yaml.safe_load(workload_text))
    with open_instance(dbms, data) as instance:
        load_data(GeneratorCall(generator, instance, workload, {}))
    assert (data / "log").stat().st_size > 0
    before = data_identity(dbms, workload, generator, [])
    script.write_text(f"{script.read_text()}# changed\n")
    assert data_identity(dbms, workload, generator, []) != before


@pytest.mark.real
@pytest.mark.parametrize(
    ("words", "quoted"),
    [
        ("threshold 9 greater than 5", "; its last line: threshold 9 greater than 5"),
        ("cannot open it", ""),
        ("", "; its last line: loading"),
    ],
)
def test_a_program_that_ends_in_words_of_its_own_is_quoted(open_directory: Path, words: str, quoted: str) -> None:
    """A complaint in known words is quoted where the run ends."""
    make_data_directory(data := open_directory / "data")
    generator_text, dbms_text, workload_text, _ = blocks("yaml")
    call = ["python3", "-c", f"import sys; print('loading', flush=True); sys.exit({words!r} or 1)", "{seconds}"]
    changes = {"programs": {"python3": {"find": ["/usr/bin/python3"]}}, "load": [call], "run": call}
    generator = Generator.model_validate({**yaml.safe_load(generator_text), **changes})
    workload = Workload.model_validate(yaml.safe_load(workload_text))
    with (
        open_instance(Dbms.model_validate(yaml.safe_load(dbms_text)), data) as instance,
        pytest.raises(GeneratorError) as caught,
    ):
        load_data(GeneratorCall(generator, instance, workload, {}))
    assert str(caught.value).endswith(f"ended with exit code 1{quoted}")


@pytest.mark.real
def test_the_load_of_the_page_is_tried_alone(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    workload, generator = project / "specs/workloads/append.yaml", project / "specs/generators/append.yaml"
    workload.write_text(workload.read_text().replace("measure_s: 5", "measure_s: 1"))
    monkeypatch.chdir(project)
    assert main(["doctor", "--load", "append"]) == 0
    assert re.fullmatch(
        r"ok +load +append/local-disk/append [\d,.]+.ops/s, .* at the 95th percentile\n", capsys.readouterr().out
    )
    generator.write_text(generator.read_text().replace("parser: generic", "parser: pgbench"))
    assert main(["doctor", "--load", "append"]) == 1
    assert "invalid: the output of append cannot be used" in capsys.readouterr().out
    assert list((project / ".knobscope/append/runs").iterdir()) == []


@pytest.mark.real
@pytest.mark.long
def test_the_study_of_the_page_compares_the_values_of_sync(project: Path) -> None:
    workload = project / "specs/workloads/append.yaml"
    workload.write_text(workload.read_text().replace("measure_s: 5", "measure_s: 1"))
    study = project / "specs/studies/append.yaml"
    study.write_text(study.read_text() + "remeasure: {findings: 0}\n")
    subprocess.run(
        [str(Path(sys.executable).parent / "snakemake"), "--snakefile", str(ROOT / "Snakefile"), "--cores", "1",
         "--quiet", "all", "--config", "study=specs/studies/append.yaml"],
        check=True, cwd=project, timeout=3600,
    )  # fmt: skip
    with duckdb.connect(project / "results/append/study.duckdb", read_only=True) as database:
        runs = dict(database.execute("SELECT status, count(*) FROM runs GROUP BY status").fetchall())
        operations = dict(database.execute("SELECT value, min(operations) FROM sweep_runs GROUP BY 1").fetchall())
    assert list(runs) == ["ok"]
    assert set(operations) == {None, "never"}  # the default configuration, and the one change
    assert min(operations.values()) > 0

"""A wheel, installed where no checkout is, has all that tables, traces and studies of one's own need."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
#: What a wheel is built from.
_SOURCES = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "CITATION.cff", "Snakefile", "src", "rules", "specs",
            "probes", "profiles", "models", "setup")  # fmt: skip
pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a new environment with the wheel in it; the dependencies are those of this environment."""
    source, place = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("installed")
    for name in _SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, source / name)
    gone = source / "build/lib/knobscope/gone.py"
    gone.parent.mkdir(parents=True)
    gone.touch()  # as a build of an earlier version leaves it
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", place, source], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    (packages,) = (place / "venv/lib").glob("python*/site-packages")
    (dependencies,) = (Path(sys.prefix) / "lib").glob("python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{dependencies}\n")
    (wheel,) = place.glob("*.whl")
    python = place / "venv/bin/python"
    subprocess.run([*pip, "--python", python, "install", "-q", "--no-deps", "--no-index", wheel], check=True)
    return place / "venv/bin"


@pytest.fixture(scope="module")
def folder(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that `knobscope init` laid out."""
    folder = tmp_path_factory.mktemp("empty") / "my studies"
    call(programs, folder.parent, "init", folder.name)
    return folder


def call(programs: Path, folder: Path, *arguments: str, program: str = "knobscope") -> str:
    """Return what a command of the wheel prints; its module is not that of the checkout."""
    variables = {**os.environ, "KNOBSCOPE_CLIENTS": str(ROOT / "clients/target")}
    command = [str(programs / "python"), "-m", program, *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_wheel_has_no_module_of_an_earlier_build(programs: Path) -> None:
    assert [*programs.parent.rglob("knobscope/cli.py")]
    assert not [*programs.parent.rglob("knobscope/gone.py")]


def test_commands_on_tables_and_traces_need_no_folder(programs: Path, tmp_path: Path) -> None:
    rows = "".join(f"{cache},{flush},{100 + cache + 50 * flush}\n" for cache in range(1, 9) for flush in (0, 1))
    (tmp_path / "runs.csv").write_text("cache,flush,tps\n" + rows)
    ranking = call(programs, tmp_path, "rank", "runs.csv", "--response", "tps")
    assert ranking.index("flush") < ranking.index("cache")
    requests = "".join(f"{n * 1_000_000},{64 * n},8,W\n" for n in range(50))
    (tmp_path / "trace.csv").write_text("ts_ns,lba,len_sectors,op\n" + requests)
    assert "4 KiB" in call(programs, tmp_path, "trace", "trace.csv")
    assert "--device" in call(programs, tmp_path, "watch", "--help")
    assert "read_amplification" in call(programs, tmp_path, "rules")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs.csv", "trace.csv"]


def test_a_folder_of_ones_own_takes_specs_next_to_the_shipped_ones(programs: Path, folder: Path) -> None:
    study = (folder / "specs/studies/quickstart.yaml").read_text()
    own = folder / "specs/studies/mine.yaml"
    own.write_text(study.replace("name: quickstart\n", "name: mine\n"))
    assert "no problem found" in call(programs, folder, "validate")
    plan = call(programs, folder, "-n", "--config", "study=specs/studies/mine.yaml", program="snakemake")
    assert "mine: 1 case" in plan
    assert "plan_screening" in plan, "a folder's Snakefile has no rule of its own, so the study's has to be the target"


def test_a_second_call_keeps_what_is_there(programs: Path, folder: Path) -> None:
    changed, missing = folder / "specs/dbms/sqlite.yaml", folder / "specs/dbms/redis.yaml"
    text = missing.read_text()
    changed.write_text("name: sqlite\n")
    missing.unlink()
    said = call(programs, folder.parent, "init", folder.name)
    assert "wrote 1 file, kept" in said
    assert (changed.read_text(), missing.read_text()) == ("name: sqlite\n", text)

"""The two descriptions of the Python environment say the same."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
CONDA_NAMES = {"python-duckdb": "duckdb"}
#: Not Python packages, or Python itself.
OTHERS = {"python", "pip", "fio", "maven", "openjdk"}


def locked_versions() -> dict[str, str]:
    """Versions for Python 3.11, the one of environment.yml."""
    pins = {}
    for line in (ROOT / "requirements.lock").read_text().splitlines():
        pin, _, marker = line.removesuffix(" \\").partition(" ; ")  # the hashes follow on lines of their own
        if "python_full_version >= '3.12'" not in marker:
            name, _, version = pin.partition("==")
            pins[name] = version
    return pins


def test_conda_environment_has_the_locked_versions() -> None:
    entries = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    pinned = dict(entry.split("=") for entry in entries if isinstance(entry, str) and "=" in entry)
    pinned |= {name.lower(): version for name, version in (p.split("==") for p in entries[-1]["pip"] if "==" in p)}
    versions = {CONDA_NAMES.get(name, name): version for name, version in pinned.items() if name not in OTHERS}
    locked = locked_versions()
    assert versions == {name: locked[name] for name in versions}
    assert len(versions) >= 12


def test_all_direct_dependencies_are_in_both() -> None:
    project = (ROOT / "pyproject.toml").read_text().split("dependencies = [")[1].split("]\n")[0]
    wanted = {re.split(r"[\[<>=;]", line)[0].strip().lower() for line in re.findall(r'^ +"([^"]+)"', project, re.M)}
    environment = (ROOT / "environment.yml").read_text().lower()
    locked = locked_versions()
    for name in wanted - {"pydoe"}:  # the successor of pyDOE2, from Python 3.12 on
        assert name in locked
        assert name in environment


def test_fleet_explains_itself_and_refuses_unknown_names_before_it_gets_anything(tmp_path: Path) -> None:
    def call(*names: str) -> subprocess.CompletedProcess[str]:
        variables = {**os.environ, "KNOBSCOPE_FLEET": str(tmp_path / "fleet")}
        command = ["sh", str(ROOT / "setup/fleet.sh"), *names]
        return subprocess.run(command, capture_output=True, text=True, check=False, env=variables)

    told = call("--help")
    assert told.returncode == 0
    assert {"trixie", "sid", "cassandra", "wiredtiger", "tpcds"} <= set(re.findall(r"fleet\.sh (\w+)", told.stdout))
    wrong = call("cassandra", "valkey", "mysql")
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert wrong.stderr.startswith("unknown: valkey mysql; expected trixie, sid, cassandra")
    assert not (tmp_path / "fleet").exists()


@pytest.mark.long
def test_a_run_of_tests_ends_without_a_list_of_leaked_objects() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-n1", "-p", "no:cacheprovider", "tests/tables/test_writing.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "nanobind" not in done.stdout + done.stderr

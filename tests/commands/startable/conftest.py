"""A folder of specs that trials may write to."""

import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    for kind in ("dbms", "devices", "workloads", "generators"):
        shutil.copytree(ROOT / "specs" / kind, tmp_path / "specs" / kind)
    for kind in ("studies", "startable"):
        (tmp_path / "specs" / kind).mkdir()
    return tmp_path / "specs"

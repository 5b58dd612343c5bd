"""A shelf of valid specs, in a directory of its own that is also the working directory."""

import shutil
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of good/."""
    shutil.copytree(HERE / "good", tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path

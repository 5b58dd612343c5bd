"""A device of their own for servers under watch."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from emulated import require_loops
from loop_devices import Loop, open_loop


@pytest.fixture(scope="module")
def device() -> Iterator[Loop]:
    """An ext4 file system on a loop device, where every user gets."""
    require_loops()
    with tempfile.TemporaryDirectory(prefix="knobscope-test-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o711)
        with open_loop(Path(folder) / "image", 700, "ext4") as opened:
            yield opened

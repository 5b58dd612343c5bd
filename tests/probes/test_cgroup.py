"""The cgroups that the monitor makes: nobody else can keep them from being removed."""

import fcntl
import os
import pwd
from pathlib import Path

import pytest
from cgroup import _make_held


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user: needs root")
def test_only_root_can_lock_a_cgroup_of_the_monitor(open_directory: Path) -> None:
    """A lock that a stranger held would make the directory of a killed monitor stay for ever."""
    open_directory.chmod(0o755)
    directory, lock = _make_held(open_directory)
    os.close(lock)
    os.seteuid(pwd.getpwnam("nobody").pw_uid)
    try:
        with pytest.raises(PermissionError):
            fcntl.flock(os.open(directory, os.O_RDONLY), fcntl.LOCK_SH)
    finally:
        os.seteuid(0)

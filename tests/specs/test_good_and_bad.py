"""Every file below bad/ says in its first comments what must be said about it; everything below good/ is valid.

A bad file is put beside the good ones, so that it may name them.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from knobscope.specs import SpecErrors, find_specs, load_study, validate_files

HERE = Path(__file__).parent
BAD = sorted((HERE / "bad").rglob("*.yaml"))
EXPECT = "# expect: "


def add(shelf: Path, file: Path) -> Path:
    """Return a copy of a bad file among the good ones."""
    return Path(shutil.copy(file, shelf / file.parent.name))


def problems_of(files: list[Path], shelf: Path) -> list[str]:
    with pytest.raises(SpecErrors) as caught:
        validate_files(files, shelf, runnable=True)
    return [str(problem) for problem in caught.value.problems]


def expected_of(file: Path) -> list[str]:
    lines = file.read_text().splitlines()
    return [line.removeprefix(EXPECT) for line in lines if line.startswith(EXPECT)]


def test_good_specs_have_no_problem(shelf: Path) -> None:
    assert len(validate_files(find_specs([shelf]), shelf, runnable=True)) == len(list((HERE / "good").rglob("*.yaml")))


@pytest.mark.parametrize("file", BAD, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_bad_spec_is_explained(shelf: Path, file: Path) -> None:
    assert expected_of(file), "a bad file begins with what is expected to be said about it"
    assert problems_of([add(shelf, file)], shelf) == expected_of(file)


def test_problems_of_all_files_come_at_once(shelf: Path) -> None:
    files = [HERE / "bad/dbms/unknown_key.yaml", HERE / "bad/devices/tier.yaml", HERE / "bad/studies/always.yaml"]
    for file in files:
        add(shelf, file)
    assert problems_of(find_specs([shelf]), shelf) == [line for file in files for line in expected_of(file)]


def test_study_reports_what_is_wrong_in_the_files_it_names(shelf: Path) -> None:
    text = (shelf / "dbms/server.yaml").read_text()
    (shelf / "dbms/server.yaml").write_text(text.replace("default: 16\n", "default: 1600\n"))
    with pytest.raises(SpecErrors, match=r"dbms/server.yaml:\d+: knobs.log_size.default: found 1600"):
        load_study(shelf / "studies/small.yaml", shelf)


@pytest.mark.real
def test_a_device_that_is_mounted_read_only_is_a_problem(shelf: Path) -> None:
    """Root may write everywhere but there."""
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    (shelf / "mounted").mkdir()
    (shelf / "devices/disk.yaml").write_text("name: disk\ndescription: x\ntier: auto\npath: mounted\n")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", shelf / "mounted"], check=True)
    try:
        with pytest.raises(SpecErrors, match=r"devices/disk.yaml:4: path: found 'mounted', which is mounted read-only"):
            validate_files([shelf / "devices/disk.yaml"], shelf, runnable=True)
    finally:
        subprocess.run(["umount", shelf / "mounted"], check=True)


def test_directory_that_cannot_be_written_is_a_problem(shelf: Path) -> None:
    """Root may write everywhere, so it becomes nobody for a moment."""
    (shelf / "closed").mkdir(mode=0o500)
    (shelf / "devices/disk.yaml").write_text("name: disk\ndescription: x\ntier: auto\npath: closed\n")
    shelf.chmod(0o755)
    for parent in shelf.parents[:-2]:
        parent.chmod(parent.stat().st_mode | 0o011)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        with pytest.raises(SpecErrors) as caught:
            validate_files([shelf / "devices/disk.yaml"], shelf, runnable=True)
    finally:
        os.seteuid(user)
    assert [str(problem) for problem in caught.value.problems] == [
        "devices/disk.yaml:4: path: found 'closed', which cannot be written; expected a directory this user may write"
    ]
    assert validate_files([shelf / "devices/disk.yaml"], shelf, runnable=False)


def test_what_is_no_spec_is_a_problem(shelf: Path) -> None:
    (shelf / "other").mkdir()
    (shelf / "other/x.yaml").write_text("name: x\n")
    (shelf / "dbms/x.yml").write_text("name: x\n")
    assert problems_of(find_specs([shelf]), shelf) == [
        "dbms/x.yml:1: file: found the extension '.yml'; expected '.yaml', the only one that studies look for",
        "other/x.yaml:1: file: found folder 'other'; "
        "expected a file in a folder named dbms, devices, workloads, generators, studies, models, exclusions",
    ]


def test_links_are_followed_and_shown_as_written(shelf: Path) -> None:
    """A folder of a user's own may link to the specs of a checkout."""
    (shelf / "dbms").rename(shelf / "elsewhere")
    (shelf / "dbms").symlink_to(shelf / "elsewhere")
    (shelf / "elsewhere/server.yaml").write_text("name: server\n")
    with pytest.raises(SpecErrors) as caught:
        validate_files([*find_specs([shelf / "dbms"]), shelf / "studies/small.yaml"], shelf)
    assert {problem.file for problem in caught.value.problems} == {"dbms/fork.yaml", "dbms/server.yaml"}


def test_study_changes_its_workloads_and_lists_its_cases(shelf: Path) -> None:
    specs = load_study(shelf / "studies/small.yaml", shelf)
    assert (specs.workloads["mix"].records, specs.workloads["mix"].threads) == (50, 1)
    assert specs.workloads["mix"].measure_s == 0.5
    assert [str(case) for case in specs.cases] == [
        "server/disk/mix",
        "server/image/mix",
        "embedded/disk/mix",
        "embedded/image/mix",
    ]

"""What is no longer what was written is set aside; what is sound, absent or in the making stays."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from knobscope.durable_files import remove, write_json, write_sealed, write_text
from knobscope.errors import UserError
from knobscope.sealing import seal
from knobscope.tables import write_table
from knobscope.workflow import recovery
from knobscope.workflow.recovery import claim_study, find_damaged, require_own_files, set_aside_damaged

CASE = "sqlite/local-disk/ycsb-a"
OUTPUTS = [
    "devices/local-disk.json",
    f"{CASE}/fit/0.json",
    f"{CASE}/repeat/0.json",
    f"{CASE}/plan/screen-0.parquet",
    f"{CASE}/runs/screen-0-0",
    f"{CASE}/runs/screen-0-1",
    "study.duckdb",
    "report.html",
]


def write_results(results: Path) -> None:
    """Write a result of each kind, whose content is random."""
    write_sealed(results / "devices/local-disk.json", {"device": random.random()})
    write_sealed(results / CASE / "fit/0.json", {"stopped": random.random()})
    write_sealed(results / CASE / "repeat/0.json", {"more": random.random()})
    write_table(results / CASE / "plan/screen-0.parquet", "plan", [{"position": random.randrange(1000)}])
    for block in range(2):
        rows = [{"run_id": f"{random.random()}"} for _ in range(random.randrange(1, 50))]
        write_table(results / CASE / f"runs/screen-0-{block}/runs.parquet", "runs", rows)
        write_table(results / CASE / f"runs/screen-0-{block}/intervals.parquet", "intervals", rows)
    with duckdb.connect(str(results / "study.duckdb")) as connection:
        count = random.randrange(3000)
        connection.execute("CREATE TABLE t AS SELECT range AS n, repeat('x', 1000) AS t FROM range(?)", [count])
    write_text(results / "report.html", f"<!doctype html><body>{'x' * random.randrange(10_000)}</body></html>\n")
    for output in OUTPUTS:
        seal(results / output)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of which nothing is damaged, to be read only."""
    results = tmp_path_factory.mktemp("whole")
    write_results(results)
    return results


@pytest.fixture
def results(whole: Path, tmp_path: Path) -> Path:
    """A copy of them, for a test to damage."""
    return shutil.copytree(whole, tmp_path, dirs_exist_ok=True)


def test_sound_results_stay(results: Path) -> None:
    (results / CASE / "runs/.screen-0-1.part").mkdir()
    assert find_damaged(results) == []
    assert find_damaged(results / "of a study that never ran") == []


@pytest.mark.parametrize("studies", [5, pytest.param(200, marks=pytest.mark.long)])
def test_no_sound_study_is_called_damaged(tmp_path: Path, studies: int) -> None:
    for number in range(studies):
        write_results(tmp_path / str(number))
        assert find_damaged(tmp_path / str(number)) == []


def test_results_without_seals_are_not_judged_but_json_is(results: Path) -> None:
    for path in results.rglob(".*.seal"):
        path.unlink()
    (results / "study.duckdb").write_bytes(b"")
    assert find_damaged(results) == []
    (results / "devices/local-disk.json").write_bytes(b"")
    (sentence,) = set_aside_damaged(results)
    assert "local-disk.json is damaged: it is empty" in sentence


def files_of(results: Path) -> list[Path]:
    return sorted(path for path in results.rglob("*") if path.is_file() and path.suffix != ".seal")


def output_of(results: Path, file: Path) -> Path:
    """Return the output that a file is part of."""
    return next(results / output for output in OUTPUTS if str(file.relative_to(results)).startswith(output))


def flip(file: Path, other: Path) -> None:
    content = bytearray(file.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    file.write_bytes(content)


def cut(file: Path, other: Path) -> None:
    os.truncate(file, random.randrange(file.stat().st_size))


def zero(file: Path, other: Path) -> None:
    with file.open("r+b") as stream:
        stream.seek(start := random.randrange(file.stat().st_size))
        stream.write(bytes(file.stat().st_size - start - 1) + b"\1")


def empty(file: Path, other: Path) -> None:
    file.write_bytes(b"")


def swap(file: Path, other: Path) -> None:
    aside = file.with_name("aside")
    file.rename(aside)
    other.rename(file)
    aside.rename(other)


def make_directory(file: Path, other: Path) -> None:
    file.unlink()
    file.mkdir()


def take_away(file: Path, other: Path) -> None:
    if os.geteuid() == 0:  # whom no rights stop: what stands for it is a file of another type
        file.unlink()
        os.mkfifo(file)
    else:
        file.chmod(0)


DAMAGES: list[Callable[[Path, Path], None]] = [flip, cut, zero, empty, swap, make_directory, take_away]


@pytest.mark.parametrize("damage", DAMAGES)
def test_each_damage_to_any_file_is_found_and_named_in_one_sentence(
    whole: Path, tmp_path: Path, damage: Callable[[Path, Path], None]
) -> None:
    for number, name in enumerate(path.relative_to(whole) for path in files_of(whole)):
        results = shutil.copytree(whole, tmp_path / str(number))
        others = [path for path in files_of(results) if output_of(results, path) != output_of(results, results / name)]
        file, other = results / name, random.choice(others)
        damage(file, other)
        touched = {output_of(results, path) for path in ((file, other) if damage is swap else (file,))}
        sentences = set_aside_damaged(results)
        assert len(sentences) == len(touched)
        for output in touched:
            assert any(f"{output} is damaged" in sentence for sentence in sentences), sentences
            assert not output.exists()
            assert os.path.lexists(output.with_name(f"{output.name}.damaged"))
        assert find_damaged(results) == []


def replace_seal(file: Path, other: Path) -> None:
    write_sealed(file, {"files": [str(other)]})  # with a checksum that is right


@pytest.mark.parametrize("damage", [flip, empty, make_directory, replace_seal])
def test_a_damaged_seal_makes_the_output_anew(results: Path, damage: Callable[[Path, Path], None]) -> None:
    damage(results / ".report.html.seal", results)
    (sentence,) = set_aside_damaged(results)
    assert "report.html is damaged: its seal cannot be read" in sentence
    assert find_damaged(results) == []
    assert not (results / ".report.html.seal").exists()


def test_a_database_that_somebody_has_open_to_read_is_not_damaged(results: Path) -> None:
    with duckdb.connect(str(results / "study.duckdb"), read_only=True):
        assert find_damaged(results) == []


def test_a_block_without_its_runs_and_a_fit_of_another_shape_are_damaged(results: Path) -> None:
    (results / CASE / "runs/screen-0-0/runs.parquet").unlink()
    write_json(results / CASE / "fit/0.json", ["stopped"])
    assert len(set_aside_damaged(results)) == 2


@pytest.mark.parametrize(
    "place", ["logs", "report.html", f"{CASE}/runs", f"{CASE}/runs/screen-0-0/runs.parquet", "store"]
)
def test_a_study_folder_with_a_link_in_it_is_refused(
    results: Path, tmp_path_factory: pytest.TempPathFactory, place: str
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.rmtree(results / place, ignore_errors=True)
    (results / place).unlink(missing_ok=True)
    (results / place).symlink_to(elsewhere)
    with pytest.raises(UserError, match=f"{place}: a symbolic link"):
        require_own_files(results)


def test_the_study_folder_itself_may_be_a_link(results: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("results") / "study"
    link.symlink_to(results)
    require_own_files(link)
    assert find_damaged(link) == []


def test_a_study_belongs_to_one_call_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    temporary = tmp_path / "temporary" / "snakemake"
    temporary.mkdir(parents=True)
    claim_study("one", temporary)
    claim_study("other", temporary)
    with pytest.raises(UserError, match="study one: another call works on it in this folder"):
        claim_study("one", temporary)


def test_what_a_running_call_has_finished_with_is_not_damaged(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seals = list(results.rglob(".*.seal"))
    assert seals

    def vanish(output: Path) -> None:
        remove(output)
        raise FileNotFoundError(output)

    monkeypatch.setattr(recovery, "check_seal", vanish)
    monkeypatch.setattr(recovery, "read_sealed", vanish)
    assert find_damaged(results) == []

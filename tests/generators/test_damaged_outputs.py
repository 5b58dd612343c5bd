"""Outputs of generators that were cut, lost, doubled or changed on their way: refused, or with the right figures.

`outputs` holds what the programs wrote in short runs (that of wtperf was made by hand, in its form), in a directory for
each parser, or for each `PARSER-BENCHMARK`. What they state only once cannot be checked: the tolerances below are how
well their figures are known from other ones.
"""

import random
import resource
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from knobscope.generators.output import Output
from knobscope.generators.parsers import OUTPUT_READERS, read_output
from knobscope.generators.results import LoadResult

OUTPUTS = Path(__file__).parent / "outputs"
#: Of this one the window's operations are not known.
UNUSABLE = "db_bench-readwhilewriting"
NAMES = sorted({path.name for path in OUTPUTS.iterdir()} - {UNUSABLE})
DURATION_S = {
    "pgbench": 2.1,
    "sysbench": 3.5,
    "redis_benchmark": 3.1,
    "db_bench": 3.2,
    "fio": 0.9,
    "wtperf": 3.2,
    "generic": 2.7,
}
FIGURES = ("ok", "failed", "mean_us", "p50_us", "p95_us", "p99_us")
#: By how much a figure may be wrong unnoticed.
TOLERANCE = 0.02
#: redis-benchmark prints mean and percentiles once, with a distribution in steps; wtperf does not time every operation.
#: db_bench prints the edges of its bins once.
COARSE = {"redis_benchmark": 0.25, "wtperf": 0.15, "db_bench": 0.15}

Damage = Callable[[bytes, random.Random], bytes | None]


def parser_of(name: str) -> str:
    return name.partition("-")[0]


def read_whole(name: str) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (OUTPUTS / name).iterdir()}


def read(name: str, files: dict[str, bytes], directory: Path) -> LoadResult:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    for file, content in files.items():
        if file != "stdout":
            (directory / file).write_bytes(content)
    texts = files.get("stdout", b"").decode(errors="replace").split("\n")
    parser = parser_of(name)
    duration = DURATION_S[parser]
    lines = [(duration * number / len(texts), text) for number, text in enumerate(texts, 1)]
    return read_output(parser, Output(lines, duration, directory, directory, threads=1 if name == "fio" else 2), 1.0)


def cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content))]


def lose_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    del lines[chance.randrange(len(lines))]
    return b"".join(lines)


def double_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    return b"".join([*lines[: at + 1], *lines[at:]])


def interleave(content: bytes, chance: random.Random) -> bytes:
    left = [content.splitlines(keepends=True), content.splitlines(keepends=True)]
    merged = []
    while left[0] or left[1]:
        merged.append((left[chance.randrange(2)] or left[0] or left[1]).pop(0))
    return b"".join(merged)


def append_again(content: bytes, chance: random.Random) -> bytes:
    return content * 2


def change_byte(content: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(content))
    return content[:at] + bytes([chance.randrange(256)]) + content[at + 1 :]


def change_digit(content: bytes, chance: random.Random) -> bytes:
    at = chance.choice([at for at, byte in enumerate(content) if chr(byte).isdigit()])
    return content[:at] + str(chance.randrange(10)).encode() + content[at + 1 :]


def empty(content: bytes, chance: random.Random) -> bytes:
    return b""


def remove(content: bytes, chance: random.Random) -> None:
    return None


DAMAGES: tuple[Damage, ...] = (
    cut, lose_line, double_line, interleave, append_again, change_byte, change_digit, empty, remove,
)  # fmt: skip


def damaged_outputs(name: str, trials: int, seed: int) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield what was done to which file, and all files; each damage as often as the others."""
    chance, whole = random.Random(seed), read_whole(name)
    able = sorted(file for file, content in whole.items() if content)
    for trial in range(trials):
        file, damage = chance.choice(able), DAMAGES[trial % len(DAMAGES)]
        content = damage(whole[file], chance)
        files = {other: one for other, one in whole.items() if other != file}
        yield f"{damage.__name__} {file}, trial {trial}", files if content is None else {**files, file: content}


def find_wrong(name: str, result: LoadResult, truth: LoadResult) -> dict[str, tuple[float | None, float | None]]:
    """Figures that are not those of the whole output, with both."""
    pairs = {figure: (result.operations["ALL"][figure], truth.operations["ALL"][figure]) for figure in FIGURES}
    pairs |= {"window_s": (result.window_s, truth.window_s)}
    pairs |= {"sum": (sum(row["ops"] for row in result.intervals), truth.operations["ALL"]["ok"])}

    def is_wrong(figure: str, value: float | None, true: float | None) -> bool:
        tolerance = COARSE.get(parser_of(name), TOLERANCE) if figure.endswith("_us") else TOLERANCE
        return value != true if value is None or true is None else abs(value - true) > tolerance * true

    return {figure: pair for figure, pair in pairs.items() if is_wrong(figure, *pair)}


def check(name: str, trials: int, seed: int, directory: Path) -> int:
    """Return how many of so many damaged outputs were refused; none of the others may have a wrong figure."""
    truth, refused = read(name, read_whole(name), directory / "out"), 0
    for what, files in damaged_outputs(name, trials, seed):
        try:
            result = read(name, files, directory / "out")
        except ValueError as error:
            assert str(error), what
            refused += 1
            continue
        assert not find_wrong(name, result, truth), what
    return refused


def test_every_parser_has_an_output() -> None:
    assert {parser_of(name) for name in NAMES} == set(OUTPUT_READERS)


def test_a_benchmark_with_a_background_thread_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="readwhilewriting also counts the operations of its background thread"):
        read(UNUSABLE, read_whole(UNUSABLE), tmp_path / "out")


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_output_is_accepted(name: str, tmp_path: Path) -> None:
    assert read(name, read_whole(name), tmp_path / "out").operations["ALL"]["ok"] > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_damaged_output_has_no_wrong_figure(name: str, tmp_path: Path) -> None:
    assert check(name, 45, 1, tmp_path) >= 15


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_two_thousand_damaged_outputs_have_no_wrong_figure(name: str, tmp_path: Path) -> None:
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check(name, 2000 // len(NAMES) + 1, 2, tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 1 << 20

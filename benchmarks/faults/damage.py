"""Ways to damage a file of a study's results, or of the data that it loaded."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

#: What knobscope makes and reads again.
_PATTERNS = (
    "store/*.json",
    "devices/*.json",
    "*/*/*/plan/*.parquet",
    "*/*/*/fit/*.json",
    "*/*/*/prepared/*.json",
    "*/*/*/runs/*/*.parquet",
    "*.duckdb",
    "*.html",
    "**/.*.seal",
)
_SNAPSHOTS = ("**/snapshots/*/snapshot.json", "**/snapshots/*/data/*", "**/snapshots/*/password")


def damage_something(project: Path, results: Path, chance: random.Random) -> str:
    """Damage one file, of a random kind and in a random way; return in words what was done."""
    kinds = [sorted(results.glob(pattern)) for pattern in _PATTERNS]
    kinds += [sorted(path for path in project.glob(pattern) if path.is_file()) for pattern in _SNAPSHOTS]
    files = chance.choice([kind for kind in kinds if kind] or [[]])
    if not files:
        return "nothing to damage yet"
    path = chance.choice(files)
    ways = [_empty, _cut, _flip, _overwrite, _zero, _retype, _remove, _make_directory, _forbid]
    ways += [] if results in path.parents else [_make_pipe]  # a study whose results have one is refused
    ways += [_swap] if len(files) > 1 else []
    ways += [_lose_key, _change_value] if path.suffix == ".json" else []
    ways += [_lose_folder] if path.suffix == ".parquet" else []
    way = chance.choice(ways)
    way(path, chance)
    return f"damaged file {path.relative_to(project)}: {way.__name__[1:].replace('_', ' ')}"


Way = Callable[[Path, random.Random], object]


def _empty(path: Path, _: random.Random) -> None:
    path.write_bytes(b"")


def _cut(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(path.stat().st_size or 1))


def _overwrite(path: Path, chance: random.Random) -> None:
    path.write_bytes(chance.randbytes(path.stat().st_size))


def _zero(path: Path, _: random.Random) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _retype(path: Path, _: random.Random) -> None:
    path.write_text('["something else"]\n', encoding="utf-8")


def _remove(path: Path, _: random.Random) -> None:
    path.unlink()


def _flip(path: Path, chance: random.Random) -> None:
    content = bytearray(path.read_bytes())
    if content:
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
        path.write_bytes(content)


def _make_directory(path: Path, _: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _make_pipe(path: Path, _: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)  # whoever opens it to read waits for ever


def _forbid(path: Path, _: random.Random) -> None:
    path.chmod(0)  # which root does not notice


def _swap(path: Path, chance: random.Random) -> None:
    """Let the file and another one of its folder change places."""
    siblings = sorted(sibling for sibling in path.parent.iterdir() if sibling.suffix == path.suffix and sibling != path)
    if siblings:
        sibling, aside = chance.choice(siblings), path.with_name("aside")
        path.rename(aside)
        sibling.rename(path)
        aside.rename(sibling)


def _lose_folder(path: Path, _: random.Random) -> None:
    shutil.rmtree(path.parent)


def _lose_key(path: Path, chance: random.Random) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    content.pop(chance.choice(sorted(content)))
    path.write_text(json.dumps(content), encoding="utf-8")


def _change_value(path: Path, chance: random.Random) -> None:
    content = json.loads(path.read_text(encoding="utf-8"))
    content[chance.choice(sorted(content))] = chance.choice([None, [], "x", -1])
    path.write_text(json.dumps(content), encoding="utf-8")

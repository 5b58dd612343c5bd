"""Puts configurations into blocks: one randomised order, the default configuration at start, middle and end."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from knobscope.specs import Case, Dbms, Value
from knobscope.tables import PlanRow

#: At least every so many runs the default configuration is measured again.
_SENTINEL_EVERY = 12


def seed_of(*parts: object) -> int:
    """Return a seed that depends on all parts, the same on every machine."""
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:4], "big")


def config_id_of(dbms: str, configuration: Mapping[str, Value]) -> str:
    """Return a short name for a configuration; equal settings have equal names."""
    return _hash({"dbms": dbms, **configuration})


def load_id_of(dbms: Dbms, configuration: Mapping[str, Value]) -> str:
    """Return a short name for what the configuration needs when data is loaded."""
    return _hash({name: value for name, value in configuration.items() if dbms.knobs[name].apply == "load"})


def _hash(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]


def split_into_blocks(configurations: Sequence[Any], blocks: int) -> list[list[Any]]:
    """Deal configurations out so that block sizes differ by one at most."""
    return [list(configurations[index::blocks]) for index in range(blocks)]


def sentinel_positions(configurations: int) -> set[int]:
    """Return before which of a block's configurations a sentinel runs; its last one runs after all of them."""
    sentinels = max(3, 2 + configurations // _SENTINEL_EVERY)
    return {round(share * configurations) for share in np.linspace(0, 1, sentinels)}


def build_block(
    case: Case,
    dbms: Dbms,
    phase: str,
    round_: int,
    index: int,
    configurations: Sequence[Mapping[str, Value]],
    sentinel: Mapping[str, Value],
    seed: int,
    repeat: int,
) -> list[PlanRow]:
    """Return rows of table `plan`: the configurations in random order between evenly spread sentinels."""
    block_id = f"{case}/{phase}-{round_}-{index}"
    order = np.random.RandomState(seed_of(seed, block_id)).permutation(len(configurations))
    with_sentinel = sentinel_positions(len(configurations))
    sequence: list[tuple[Mapping[str, Value], bool]] = []
    for position in range(len(configurations) + 1):
        if position in with_sentinel:
            sequence.append((sentinel, True))
        if position < len(configurations):
            sequence.append((configurations[order[position]], False))
    return [
        {
            **plan_row(dbms, block_id, phase, configuration, repeat, position, is_sentinel=is_sentinel),
            "round": round_,
        }
        for position, (configuration, is_sentinel) in enumerate(sequence)
    ]


def plan_row(
    dbms: Dbms,
    block_id: str,
    phase: str,
    configuration: Mapping[str, Value],
    repeat: int,
    position: int,
    *,
    is_sentinel: bool,
) -> PlanRow:
    """Return a row of table `plan`, of round 0."""
    return {
        "block_id": block_id,
        "phase": phase,
        "round": 0,
        "position": position,
        "config_id": config_id_of(dbms.name, configuration),
        "is_sentinel": is_sentinel,
        "repeat": repeat,
        "load_id": load_id_of(dbms, configuration),
        "configuration": json.dumps(dict(configuration), sort_keys=True),
        "is_chosen": False,
    }

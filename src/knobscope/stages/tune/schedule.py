"""In which order tuners get their turns: all of them in every step, so that drift of the machine meets all alike."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from knobscope.specs import Case
from knobscope.stages.plan.blocks import seed_of

#: Trials of one block, about; the default configuration is measured at its start, middle and end.
_BLOCK_TRIALS = 24


@dataclass(frozen=True)
class Step:
    """One turn: the number of the tuner and of its trial (from 1), or the default configuration (tuner None)."""

    tuner: int | None
    trial: int


def tuning_blocks(case: Case, seed: int, tuners: int, trials: int) -> Iterator[list[Step]]:
    """Yield the blocks of a tuning session; more trials only add to what fewer would have done."""
    per_block = max(1, _BLOCK_TRIALS // tuners)
    for block in range(math.ceil(trials / per_block)):
        numbers = range(block * per_block + 1, min((block + 1) * per_block, trials) + 1)
        turns = []
        for trial in numbers:
            order = np.random.RandomState(seed_of(seed, str(case), "tune", trial)).permutation(tuners)
            turns += [Step(int(tuner), trial) for tuner in order]
        middle = per_block * tuners // 2
        default = Step(None, 0)
        yield [default, *turns[:middle], default, *turns[middle:], *([default] if len(turns) > middle else [])]

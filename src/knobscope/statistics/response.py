"""The response that models are fitted to: a column of a table as numbers, without the offsets between blocks.

Runs of one block share a time and a machine state, so that whole blocks lie higher or lower than others.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from knobscope.errors import UserError
from knobscope.statistics.arrays import Floats, Ints, average_groups

if TYPE_CHECKING:
    import pandas as pd

SIGNIFICANCE = 0.05


def read_response(frame: "pd.DataFrame", response: str, log: bool) -> Floats:
    """Return the response column as numbers, their natural logarithm with `log`. UserError: missing, words, <= 0."""
    import pandas as pd

    if response not in frame.columns:
        raise UserError(f"no column {response!r}; the table has {', '.join(map(str, frame.columns))}")
    values = pd.to_numeric(frame[response], errors="coerce").to_numpy(float)
    if bad := int((~np.isfinite(values)).sum()):
        raise UserError(
            f"column {response!r} is not a finite number in {bad} of {len(values)} rows; leave such runs out"
        )
    if log and len(values) and values.min() <= 0:
        raise UserError(
            f"column {response!r} holds {values.min():g}: its logarithm needs values above 0; "
            "leave failed runs out, or do not take the logarithm"
        )
    return np.asarray(np.log(values) if log else values)


def remove_block_offsets(configuration: Ints, block: NDArray[Any], response: Floats) -> tuple[Floats, int]:
    """Subtract each block's offset, as the configurations measured in several blocks (sentinels) show it.

    `configuration` numbers the distinct configurations; all three have one element per run. Offsets come from an
    additive fit of configuration and block, and are left alone unless significant (F test): noise is not subtracted.
    A block that shares no configuration with another keeps its values. The second result is how many offsets were
    estimated, 0 where none are subtracted: so many degrees of freedom fewer tell how noisy replicates are.
    """
    _, blocks = np.unique(block.astype(str), return_inverse=True)
    pairs = np.unique(np.column_stack([configuration, blocks]), axis=0)
    repeated, times = np.unique(pairs[:, 0], return_counts=True)
    shared = np.isin(configuration, repeated[times > 1])
    offsets = _offsets(configuration[shared], blocks[shared], response[shared], int(blocks.max(initial=-1)) + 1)
    if offsets is None:
        return response, 0
    estimated, rank = offsets
    return np.asarray(response - (estimated - estimated[blocks].mean())[blocks]), rank


def _offsets(configuration: Ints, block: Ints, response: Floats, blocks: int) -> tuple[Floats, int] | None:
    """Estimate the offset of each block (0 where nothing tells), and how many; None when they are not significant."""
    from scipy.special import fdtrc

    if len(response) == 0:
        return None
    distinct, codes = np.unique(block, return_inverse=True)
    cells = np.unique(configuration, return_inverse=True)[1]
    # Sums within configurations removed first: what is left is a fit on block columns alone.
    columns = np.eye(len(distinct))[codes]
    centred = columns - average_groups(columns, cells)
    inside = response - average_groups(response, cells)
    estimate, _, rank, _ = np.linalg.lstsq(centred, inside, rcond=None)
    residual = float(((inside - centred @ estimate) ** 2).sum())
    effect = float((inside**2).sum()) - residual
    degrees = len(response) - (int(cells.max()) + 1) - int(rank)
    if rank == 0 or degrees <= 0:
        return None
    if residual > 0 and fdtrc(rank, degrees, (effect / rank) / (residual / degrees)) > SIGNIFICANCE:
        return None
    offsets = np.zeros(blocks)
    offsets[distinct] = estimate
    return offsets, int(rank)

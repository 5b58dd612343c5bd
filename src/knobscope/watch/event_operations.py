"""To which operation of the load client each traced request belongs: that of its thread at the time."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

#: Thread of the server, name, begin and end in ns of CLOCK_MONOTONIC, the clock of the records.
Operation = tuple[int, str, int, int]


class OperationNamer:
    """Names the operation that a thread served when it submitted a request; a thread serves one at a time."""

    def __init__(self, operations: Sequence[Operation]) -> None:
        import numpy as np

        self._names = sorted({name for _, name, _, _ in operations})
        threads: dict[int, list[tuple[int, int, int]]] = {}
        for thread, name, begin_ns, end_ns in operations:
            threads.setdefault(thread, []).append((begin_ns, end_ns, self._names.index(name)))
        self._threads = {thread: np.array(sorted(served), np.int64).T for thread, served in threads.items()}

    def name(self, records: "NDArray[Any]") -> "pd.Categorical":
        """Return the column `operation` of records."""
        import numpy as np
        import pandas as pd

        codes = np.full(len(records), -1)
        submitted = (records["issued_at"] - records["wait"]).astype(np.int64)
        for thread, (begins, ends, names) in self._threads.items():
            own = np.flatnonzero(records["thread"] == thread)
            last = np.searchsorted(begins, submitted[own], "right") - 1
            is_inside = (last >= 0) & (submitted[own] <= ends[last])
            codes[own[is_inside]] = names[last[is_inside]]
        return pd.Categorical.from_codes(codes, self._names)

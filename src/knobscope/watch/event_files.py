"""Which file a recorded event belongs to: by the inode that the kernel told, else by its address."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from knobscope.watch.files import FileTree, name_file
from knobscope.watch.interface import OPERATIONS

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

__all__ = ["EventNamer", "to_categories"]

_MINOR_BITS = 20  # of the kernel's own device numbers
_FLUSH = OPERATIONS.index("flush")


class EventNamer:
    """Names files by trees, in the order in which they were read, and by names (device, inode, name) of the kernel."""

    def __init__(self, trees: Sequence[FileTree], named: Sequence[Mapping[str, Any]]) -> None:
        self._trees = trees
        self._names = {(row["device"], row["inode"]): name_file(row, trees)[0] for row in named if row["inode"]}

    def name(self, records: "NDArray[Any]", is_placed: "NDArray[np.bool_]") -> "dict[str, Any]":
        """Return the columns `file`, `device` and `inode` of records; empty and 0 where nothing is known."""
        import numpy as np

        numbers = np.where(is_placed, records["device"], 0).astype(np.uint64)
        inodes = np.where(is_placed, records["inode"], 0).astype(np.uint64)
        for tree in self._trees:  # the later tree counts: what moved there in between is what was written
            found = tree.addresses.find_all(records["sector"].astype(np.int64) * 512)
            is_found = ~is_placed & (found > 0) & (records["op"] != _FLUSH)
            inodes[is_found] = found[is_found]
            numbers[is_found] = _encode(tree.device)
        pairs, codes = np.unique(np.stack([numbers, inodes], axis=1), axis=0, return_inverse=True)
        devices = [f"{int(number) >> _MINOR_BITS}:{int(number) & (1 << _MINOR_BITS) - 1}" for number, _ in pairs]
        files = [self._find(device, int(inode)) for device, (_, inode) in zip(devices, pairs, strict=True)]
        is_file = pairs[:, 1] > 0
        shown = [device if known else "" for device, known in zip(devices, is_file, strict=True)]
        return {"file": to_categories(files, codes), "device": to_categories(shown, codes), "inode": inodes}

    def _find(self, device: str, inode: int) -> str:
        if not inode:
            return ""
        known = self._names.get((device, inode))
        paths = (tree.paths.get(inode) for tree in reversed(self._trees) if tree.device == device)
        return known or next((path for path in paths if path), "")


def _encode(device: str) -> int:
    major, minor = device.split(":")
    return int(major) << _MINOR_BITS | int(minor)


def to_categories(texts: Sequence[str], codes: "NDArray[np.intp]") -> "pd.Categorical":
    """Return a column of texts, given by their places; a text may be there twice."""
    import numpy as np
    import pandas as pd

    known = list(dict.fromkeys(texts))
    places = np.array([known.index(text) for text in texts])
    return pd.Categorical.from_codes(places[codes], known)

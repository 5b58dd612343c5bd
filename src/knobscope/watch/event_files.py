"""Which file a recorded event belongs to: by the number or inode that the kernel told, else by its address."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from knobscope.watch.files import FileTree, name_file
from knobscope.watch.interface import OPERATIONS
from knobscope.watch.profile import CountedFile

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

_MINOR_BITS = 20  # of the kernel's own device numbers
_FLUSH = OPERATIONS.index("flush")


class EventNamer:
    """Names files by trees, in the order in which they were read, and by the rows that the kernel side has of them."""

    def __init__(self, trees: Sequence[FileTree], named: Sequence[CountedFile]) -> None:
        self._trees = trees
        self._files = {row["number"]: (row, name_file(row, trees)[0]) for row in named if row["inode"]}
        self._names = {(row["device"], row["inode"]): name for row, name in self._files.values()}

    def name(self, records: "NDArray[Any]", is_located: "NDArray[np.bool_]") -> "dict[str, Any]":
        """Return the columns `file`, `device` and `inode` of records; empty and 0 where nothing is known."""
        import numpy as np

        numbers = np.where(np.isin(records["file"], list(self._files)), records["file"], 0).astype(np.uint64)
        devices = np.where(is_located & (numbers == 0), records["device"], 0).astype(np.uint64)
        inodes = np.where(is_located & (numbers == 0), records["inode"], 0).astype(np.uint64)
        for tree in self._trees:  # the later tree counts: what moved there in between is what was written
            tree_inodes = tree.addresses.find_all(records["sector"].astype(np.int64) * 512)
            is_found = ~is_located & (numbers == 0) & (tree_inodes > 0) & (records["op"] != _FLUSH)
            inodes[is_found] = tree_inodes[is_found]
            devices[is_found] = _encode(tree.device)
        distinct, codes = np.unique(np.stack([numbers, devices, inodes], axis=1), axis=0, return_inverse=True)
        rows = [self._locate(int(number), int(device), int(inode)) for number, device, inode in distinct]
        columns = {name: [row[name] for row in rows] for name in ("file", "device")}
        named = {name: to_categories(texts, codes) for name, texts in columns.items()}
        return {**named, "inode": np.array([row["inode"] for row in rows], np.uint64)[codes]}

    def _locate(self, number: int, device: int, inode: int) -> dict[str, Any]:
        """Return a file by its number in the kernel, else by device and inode."""
        if number:
            row, file = self._files[number]
            return {"file": file, "device": row["device"], "inode": row["inode"]}
        if not inode:
            return {"file": "", "device": "", "inode": 0}
        text = f"{device >> _MINOR_BITS}:{device & (1 << _MINOR_BITS) - 1}"
        paths = (tree.paths.get(inode) for tree in reversed(self._trees) if tree.device == text)
        file = self._names.get((text, inode)) or next((path for path in paths if path), "")
        return {"file": file, "device": text, "inode": inode}


def _encode(device: str) -> int:
    major, minor = device.split(":")
    return int(major) << _MINOR_BITS | int(minor)


def to_categories(texts: Sequence[str], codes: "NDArray[np.intp]") -> "pd.Categorical":
    """Return a column of texts, given by their indexes; a text may be there twice."""
    import numpy as np
    import pandas as pd

    categories = list(dict.fromkeys(texts))
    positions = np.array([categories.index(text) for text in texts])
    return pd.Categorical.from_codes(positions[codes], categories)

"""Which files the requests of a profile went to: names for inodes, files for addresses, and nothing left out.

The kernel side tells the inode of a cached page; of direct I/O it knows the address only. A tree of files, read when a
run begins and again when it has ended, gives paths to inodes and files to addresses. What came and went in between
keeps the last part of its name, which the kernel told.
"""

import os
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from knobscope.devices import BlockDevice
from knobscope.devices.extents import MAPPED_FILESYSTEMS, AddressIndex, FoundFile, inspect_file, read_partition_start
from knobscope.devices.mounts import Mount, find_mount, list_mounts
from knobscope.devices.stacks import is_stacked, lies_on
from knobscope.watch.patterns import SHARES, name_pattern
from knobscope.watch.profile import CountedFile, Finding, KernelFile, Profile

#: File, how it was found, device and inode.
NamedFile = tuple[str, Finding, str | None, int | None]

_PSEUDO_FILES = ("journal", "metadata", "device", "unknown")
_SEARCH_S = 2.0
_SEARCH_FILES = 200_000


@dataclass(frozen=True)
class FileTree:
    """The files of a directory at one moment: inode -> path below it, and whose an address of the disk is.

    `generations`: inode -> what tells its file from others that had the number before; without files not to be read.
    `is_own`: whether the files are the DBMS's; those of programs are `unknown`, as all outside its directories is.
    """

    device: str  # MAJ:MIN of the file system
    paths: Mapping[int, str]
    generations: Mapping[int, int]
    addresses: AddressIndex
    is_own: bool = True


def read_tree(directory: Path, prefix: str = "", mount: Mount | None = None) -> FileTree:
    """Return the files below a directory, within its file system; what vanishes meanwhile is left out.

    Their paths begin with `prefix`, that of the link which leads to the directory. `mount`: what the directory lies on,
    where we see it by another path than those who mounted it.
    """
    return _make_tree(directory, _walk([directory]), mount or find_mount(directory), prefix)


def _make_tree(directory: Path, files: Iterable[tuple[Path, int]], mount: Mount, prefix: str = "") -> FileTree:
    mapped = mount.filesystem in MAPPED_FILESYSTEMS and not is_stacked(mount.major, mount.minor)
    start = read_partition_start(BlockDevice("", mount.major, mount.minor))
    paths: dict[int, str] = {}
    generations: dict[int, int] = {}
    spans: list[tuple[int, int, int]] = []
    for file, inode in files:
        if inode in paths:
            continue  # another name of the same file
        paths[inode] = str(prefix / file.relative_to(directory))
        facts = _inspect(file, inode, with_extents=mapped)
        if facts and facts.generation is not None:
            generations[inode] = facts.generation
        spans += ((start + extent.address, extent.length, inode) for extent in (facts.extents if facts else ()))
    return FileTree(f"{mount.major}:{mount.minor}", paths, generations, AddressIndex(spans))


def _walk(roots: Sequence[Path]) -> Iterator[tuple[Path, int]]:
    """Yield regular files and their inodes, nearest first, each directory of the last root's file system once."""
    queue, visited, device = deque(roots), set(), roots[-1].lstat().st_dev
    while queue:
        directory = queue.popleft()
        try:
            about = directory.lstat()
            if about.st_dev != device or about.st_ino in visited:
                continue
            visited.add(about.st_ino)
            with os.scandir(directory) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        queue.append(Path(entry.path))
                    elif entry.is_file(follow_symlinks=False):
                        yield Path(entry.path), entry.inode()
        except OSError:
            continue  # gone, or not ours to read: then its files keep the name that the kernel told


def _inspect(file: Path, inode: int, *, with_extents: bool) -> FoundFile | None:
    try:
        facts = inspect_file(file, with_extents=with_extents)
    except OSError:
        return None  # gone, or not ours to read
    return facts if facts.inode == inode else None  # else another file took the name


def search_device(block: BlockDevice, profile: Profile, first: Path) -> list[FileTree]:
    """Return the files of a profile on all file systems of a device: what a search of a few seconds finds.

    It begins in the directory `first`. Paths start at the mount point.
    """
    trees = []
    for mount in mounts_on(block):
        device = f"{mount.major}:{mount.minor}"
        wanted = {row["inode"] for row in profile["files"] if row["device"] == device and row["inode"]}
        if wanted or profile.get("addresses"):
            roots = [first, mount.point] if find_mount(first).point == mount.point else [mount.point]
            files = _search(roots, wanted, to_the_end=bool(profile.get("addresses")))
            trees.append(_make_tree(mount.point, files, mount))
    return trees


def _search(roots: Sequence[Path], wanted: Collection[int], *, to_the_end: bool) -> Iterator[tuple[Path, int]]:
    """Yield files until all that are wanted were there, or it takes too long; any file may own an address."""
    missing, deadline = set(wanted), time.monotonic() + _SEARCH_S
    for file, inode in islice(_walk(roots), _SEARCH_FILES):
        if time.monotonic() > deadline or not (missing or to_the_end):
            return
        missing.discard(inode)
        yield file, inode


def mounts_on(block: BlockDevice) -> list[Mount]:
    """Return one mount of each file system on a device, a partition of it or what is stacked on them.

    Of several mounts of a file system the one with the shortest path.
    """
    mounts = sorted(list_mounts(), key=lambda mount: -len(mount.point.parts))
    shortest = {(mount.major, mount.minor): mount for mount in mounts}
    return [mount for mount in shortest.values() if lies_on(*_find_device(mount), block)]


def _find_device(mount: Mount) -> tuple[int, int]:
    """Return the device of a file system; one with a number of its own (btrfs) names what it was mounted from."""
    if mount.major or not Path(mount.source).is_block_device():
        return mount.major, mount.minor
    number = Path(mount.source).stat().st_rdev
    return os.major(number), os.minor(number)


def name_file(row: KernelFile, trees: Sequence[FileTree]) -> tuple[str, Finding]:
    """Return the file of a row (device, inode, generation, name) and how it was found; `trees` as they were read.

    An inode may be another file's by now, or have been: a path counts only where it has the row's generation or name.
    Of several paths of one file that counts whose name it had when it was first seen, else the latest.
    """
    if not row["inode"] and row["name"] in _PSEUDO_FILES:
        return str(row["name"]), "pseudo"
    inode, generation, name = row["inode"] or 0, row.get("generation"), row["name"]
    trees = [tree for tree in trees if tree.device == row["device"] and inode in tree.paths]
    named = [tree for tree in trees if Path(tree.paths[inode]).name == name]
    renamed = [tree for tree in trees if tree.generations.get(inode) == generation is not None]
    if not named and not renamed:
        return str(name), "name"
    tree = (named or renamed)[-1]
    return (tree.paths[inode], "path") if tree.is_own else ("unknown", "pseudo")


def name_files(profile: Profile, trees: Sequence[FileTree]) -> list[CountedFile]:
    """Return rows of table `files` without run, role and table, with `found_by`; they add up to all requests.

    `trees` come in the order in which they were read. Shares and pattern are those of the requests whose file the
    kernel knew; the order of the others, `address_requests`, is not known. What is left over is the file `unknown`.
    """
    if profile["monitor"] != "bpf":
        return []
    rows: dict[tuple[str | None, ...], CountedFile] = {}
    for counted in profile["files"]:
        file, found_by = name_file(counted, trees)
        where = (None, None) if found_by == "pseudo" else (counted["device"], counted["inode"])
        _add_counted(_row_of(rows, (file, found_by, *where), counted["op"]), counted)
    for address in profile.get("addresses", ()):
        row = _row_of(rows, _find_owner(address["sector"] * 512, trees), address["op"])
        row["requests"] += address["requests"]
        row["bytes"] += address["bytes"]
        row["address_requests"] += address["requests"]
    _add_remainder(profile, rows)
    return list(rows.values())


def _row_of(rows: dict[tuple[str | None, ...], CountedFile], named: NamedFile, op: str) -> CountedFile:
    """Return the row of a file and operation, made now if need be."""
    file, found_by, device, inode = named
    empty: CountedFile = {
        "file": file,
        "found_by": found_by,
        "op": op,
        "device": device,
        "inode": inode or None,
        "requests": 0,
        "bytes": 0,
        "address_requests": 0,
        "sequential_requests": None,
        "sequential_share": None,
        "append_share": None,
        "strided_share": None,
        "random_share": None,
        "pattern": None,
    }
    return rows.setdefault((found_by, device, file, op), empty)


def _add_counted(row: CountedFile, counted: CountedFile) -> None:
    """Add what the kernel counted for an inode; a file that was made anew under its name has several."""
    before, now = row["requests"], counted["requests"]
    if not before:
        row["sequential_requests"], row["pattern"] = counted["sequential_requests"], counted["pattern"]
        for share in SHARES:
            row[share] = counted[share]
    elif now:
        row["sequential_requests"] = (row["sequential_requests"] or 0) + (counted["sequential_requests"] or 0)
        for share in SHARES:
            row[share] = _weigh(row[share], before, counted[share], now)
        row["pattern"] = name_pattern(before + now, row)
    row["requests"] += now
    row["bytes"] += counted["bytes"]


def _weigh(share: float | None, requests: int, other_share: float | None, other_requests: int) -> float | None:
    """Return the share of both together; reads have no share of appends."""
    if share is None or other_share is None:
        return None
    return (share * requests + other_share * other_requests) / (requests + other_requests)


def _find_owner(address: int, trees: Sequence[FileTree]) -> NamedFile:
    """Return whose an address is; the later tree counts, since what moved there in between is what was written."""
    for tree in reversed(trees):
        inode = tree.addresses.find(address)
        if inode is not None:
            return tree.paths[inode], "path", tree.device, inode
    return "unknown", "pseudo", None, None


def _add_remainder(profile: Profile, rows: dict[tuple[str | None, ...], CountedFile]) -> None:
    """Put what no file was counted for under `unknown`. A flush is for all files, and for none."""
    for total in profile["io_profile"]:
        if total["op"] == "flush":
            continue
        counted = [row for row in rows.values() if row["op"] == total["op"]]
        requests = (total["requests"] or 0) - sum(row["requests"] for row in counted)
        size = (total["bytes"] or 0) - sum(row["bytes"] for row in counted)
        if requests > 0:
            row = _row_of(rows, ("unknown", "pseudo", None, None), total["op"])
            row["requests"] += requests
            row["bytes"] += max(size, 0)

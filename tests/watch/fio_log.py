"""What fio itself says it did, request by request, and what of it is sequential."""

from dataclasses import dataclass
from pathlib import Path

_AGE = 256  # requests in the same direction, after which a stream no longer goes on


@dataclass(frozen=True)
class Request:
    """One read or write of a file or device, in bytes."""

    op: str
    offset: int
    length: int


def read_log(path: Path) -> list[Request]:
    """Read what --write_iolog wrote, in the order of submission; files opened and closed are left out."""
    lines = (line.split() for line in path.read_text().splitlines()[1:])
    return [Request(words[2], int(words[3]), int(words[4])) for words in lines if words[2] in ("read", "write")]


def count_sequential(requests: list[Request]) -> int:
    """Return how many of the requests of one direction are of three or more that follow on each other.

    The definition of the monitor, said a second time: every request is the end of a stream, a request continues the
    one that ends where it begins, if that was not longer than 256 requests ago and nothing else has continued it.
    """
    open_ends: dict[int, tuple[int, int]] = {}  # end -> number of its request, length of its stream
    count = 0
    for now, request in enumerate(requests):
        at, length = open_ends.pop(request.offset, (now, 0))
        length = length + 1 if length and now - at <= _AGE else 1
        open_ends[request.offset + request.length] = (now, length)
        count += 3 if length == 3 else length > 3
    return count

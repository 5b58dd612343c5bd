"""What words about settings have to do with: concepts that DBMSs call by different names.

A model that learns from the words of some DBMSs does not know those of another one: nobody but PostgreSQL vacuums. That
vacuuming is the same as compacting is no secret, so it is told.
"""

import re
from collections.abc import Sequence

import numpy as np

from knobscope.statistics.arrays import Floats

__all__ = ["find_concepts"]

#: Concept -> words, or parts of them, in names whose parts are apart and in sentences; all in lower case.
_CONCEPTS = {
    "durable": r"f(data)?sync|\bsync|flush|durab|force|write ?back|o_direct|direct|dirty|osync|nosync",
    "journal": r"\bwal\b|redo|bin ?log|binary log|journal|commit ?log|append ?only|\baof\b|\brdb\b|transaction log"
    r"|write ahead|log (file|buffer|size)|undo|double ?write|group commit",
    "cache": r"buffer|cache|memory|\bmem\b|heap|pool|\blru\b|memtable|evict",
    "clean": r"vacuum|compact|purge|freeze|merge|defrag|rewrite|garbage|\bgc\b|tombstone|clean|reclaim|shrink|truncat"
    r"|level",
    "ahead": r"prefetch|ahead|speculat|scan",
    "compress": r"compress|\blz4|zstd|zlib|snappy|dictionar",
    "block": r"\bpages?\b|block|extent|chunk|segment|sector|align|granul|row group|sstable|\bsst\b",
    "checkpoint": r"checkpoint|snapshot|\bsave\b|bgsave",
    "file": r"\bfiles?\b|tablespace|temp|\btmp\b|spill|disk|\bdir\b|allocate|prealloc|mmap|storage|\bi ?o\b|aio|uring",
    "change": r"\bwrit|\breads?\b|insert|bulk|load|append|put",
    "worker": r"worker|thread|parallel|concurren|background|jobs|cleaner",
    "throttle": r"throttl|\brate\b|per sec|cost|capacity|slowdown|stall|stop|delay|limit",
    "amount": r"size|bytes|\bmb\b|kb|interval|ratio|percent|pct|timeout|period|threshold|max|min|age",
    "observe": r"debug|verbos|stat(s|ist)|monitor|histogram|audit|slow|trace|report|logging|messages|syslog|metrics"
    r"|log (line|min|duration|statement|error|destination|level|rotat|warn)|performance schema",
    "network": r"ssl|tls|auth|password|user|client|connection|port|socket|host|network|protocol|packet|replica|slave"
    r"|master|standby|cluster|gossip|hint|repair|stream|rpc|transport|keepalive",
    "language": r"planner|optimi[sz]er|enable|estimate|join|selectiv|plan|jit|query|statement|parser|collation|charset"
    r"|character|time ?zone|locale|format|week|sql mode|null|display|output",
    "index": r"index|btree|bloom|filter|hash|sort|\bgin\b|gist|adaptive|change buffer|pending list|secondary",
}
_SEARCHED = [re.compile(words) for words in _CONCEPTS.values()]


def find_concepts(texts: Sequence[str]) -> Floats:
    """Return which concepts a text is about (1 or 0), shape (texts, concepts)."""
    found = [[words.search(text.lower()) is not None for words in _SEARCHED] for text in texts]
    return np.array(found, float).reshape(len(texts), len(_SEARCHED))

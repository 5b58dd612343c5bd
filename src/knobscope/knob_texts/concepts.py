"""What words about settings have to do with: concepts that DBMSs call by different names.

A model that learns from the words of some DBMSs does not know those of another one: nobody but PostgreSQL vacuums. That
vacuuming is the same as compacting is no secret, so it is told.
"""

import re
from collections.abc import Sequence

import numpy as np

from knobscope.statistics.arrays import Floats

#: Concept -> words, or parts of them, in names whose parts are apart and in sentences; all in lower case.
_CONCEPTS = {
    "durable": r"f(data)?sync|\bsync|flush|durab|force|write ?back|o_direct|direct|dirty|osync|nosync",
    "journal": r"\bwal\b|redo|bin ?log|binary log|journal|commit ?log|append ?only|\baof\b|\brdb\b|transaction log"
    r"|write ahead|log (file|buffer|size)|undo|double ?write|group commit",
    "cache": r"buffer|cache|memory|\bmem\b|heap|pool|\blru\b|memtable|evict",
    "clean": r"vacuum|compact|purge|freeze|merge|defrag|rewrite|garbage|\bgc\b|tombstone|clean|reclaim|shrink"
    r"|truncat|level",
    "ahead": r"prefetch|ahead|speculat|scan",
    "compress": r"compress|\blz4|zstd|zlib|snappy|dictionar",
    "block": r"\bpages?\b|block|extent|chunk|segment|sector|align|granul|row group|sstable|\bsst\b",
    "checkpoint": r"checkpoint|snapshot|\bsave\b|bgsave",
    "file": r"\bfiles?\b|tablespace|temp|\btmp\b|spill|disk|\bdir\b|allocate|prealloc|mmap|storage|\bi ?o\b|aio"
    r"|uring",
    "change": r"\bwrit|\breads?\b|insert|bulk|load|append|put",
    "worker": r"worker|thread|parallel|concurren|background|jobs|cleaner",
    "throttle": r"throttl|\brate\b|per sec|cost|capacity|slowdown|stall|stop|delay|limit",
    "amount": r"size|bytes|\bmb\b|kb|interval|ratio|percent|pct|timeout|period|threshold|max|min|age",
    "observe": r"debug|verbos|stat(s|ist)|monitor|histogram|audit|slow|trace|report|logging|messages|syslog"
    r"|metrics|log (line|min|duration|statement|error|destination|level|rotat|warn)|performance schema",
    "network": r"ssl|tls|auth|password|user|client|connection|port|socket|host|network|protocol|packet|replica"
    r"|slave|master|standby|cluster|gossip|hint|repair|stream|rpc|transport|keepalive",
    "language": r"planner|optimi[sz]er|enable|estimate|join|selectiv|plan|jit|query|statement|parser|collation"
    r"|charset|character|time ?zone|locale|format|week|sql mode|null|display|output",
    "index": r"index|btree|bloom|filter|hash|sort|\bgin\b|gist|adaptive|change buffer|pending list|secondary",
    # The same more finely: what is done with data.
    "written out": r"written (out|to disk)|to disk|on disk|from disk|write(s|n)? .*(file|disk|page|log)|flush(ed"
    r"|es|ing)?|fsync|synchroniz|synchronously",
    "changed pages": r"dirty|lru|evict|page cleaner|buffer pool|free (list|pages)|io capacity|i/?o oper|\biops",
    "logs": r"\bredo\b|\bwal\b|write ahead|transaction(al)? log|binary log|bin ?log|commit ?log|append only"
    r"|\baof\b|journal|double ?write|full page|log (buffer|group|file size|block)",
    "kept": r"buffer pool|cache size|buffer ?cache|key cache|page ?cache|block cache|row cache|table (open"
    r"|definition) cache|memtable|write buffer|work mem|sort buffer|read buffer",
    "sorted": r"\bsort|merge|spill|temporary (file|table)|\btmp table|on disk table|bulk",
    "read ahead": r"prefetch|read ?ahead|look ahead|preload|speculat|sequential scan|random read|linear",
    "open files": r"open files|file descriptors|file handles|\bfd\b|hash buckets|files? (per|limit)",
    "compacted": r"compaction|vacuum|purge|freeze|tombstone|rewrite|defragment|level ?0|sstable|universal",
    "copies": r"archiv|backup|snapshot(s|ting)?|dump|\brdb\b|checkpoint",
    # What has nothing to do with storage, whatever words it shares with that.
    "plans of queries": r"planner|optimi[sz]er|estimate|selectiv|\bplans?\b|cost of|\bcost\b|\bjoins?\b|subquer"
    r"|partition(ing|wise)? (prun|join|agg)|geqo|rewrite a|materializ|derived|semi ?join|access method|query block"
    r"|pushdown|predicate|unique checks",
    "told to people": r"\blog(s|ged|ging|ger)? (line|min|dur|stat|err|dest|level|rotat|warn|slow|queries|conn"
    r"|check|temp|auto|lock|repl|each|all|output|file mode|collector|trunc)|logging|logs each|to be logged|verbos"
    r"|report|warn|messages?|debug|trac(e|ing)|statistic|\bstats?\b|histogram|monitor|metric|profil|instrument|track"
    r"|audit|process title|performance schema|progress|error log|slow (query )?log|server log|information schema"
    r"|history",
    "other servers": r"replica|slave|master|standby|primary|subscri|publication|replay from|wal (sender|receiver)"
    r"|receiver|relay|semi ?sync|cluster|gossip|hint|repair|stream|gtid|group replication|rpl|downstream|remote",
    "clients": r"\bssl\b|\btls\b|auth|password|\buser(s|name)?\b|clients?\b|connections?|\bports?\b|socket"
    r"|\bhosts?\b|network|protocol|packet|\btcp|keep ?alive|\bnet\b|sessions?|native transport|\brpc\b|\bacl\b"
    r"|timeout|idle|listen|wait timeout",
    "locks": r"\block(s|ed|ing)?\b|deadlock|latch|mutex|spin|\brwlock|isolation|serializ|contention"
    r"|concurrency tickets|semaphore|wait for a lock",
    "threads of clients": r"thread ?pool|thread (groups?|stack|handling|cache|priority)|priority|oversubscribe"
    r"|one thread per|schedul|threads? (should|to) (use|run|keep)|how many threads|user threads|coroutine|allocator"
    r"|background threads",
    "meaning of statements": r"sql mode|syntax|semantic|clause|null|collat|charset|character|time ?zone|locale"
    r"|format|week|display|division|string literal|parser|expression|statements?|function|procedure|trigger|views?\b"
    r"|foreign key|constraint|cte\b|xml|json|identifier|datatype|precision|digits|alias for|standard|compatib|old"
    r"|mode\b",
    "memory of the process": r"huge ?pages?|numa|shared memory|\bstack\b|malloc|jemalloc|heap ?size|encod|listpack"
    r"|ziplist|hash ?table|\bhll\b|quicklist|intset|allocat(e|ed|ion) (block|of memory)|memory (alloc|block|usage)"
    r"|fragmentation|defrag|in main memory|main dictionary|rehash|expired? keys?|\blru\b.*algorithm|sampl|parsing"
    r"|prealloc|query (alloc|prealloc)|core dump|garbage",
    "limits that refuse": r"maximum (allowed|number of (tables|prepared|locks|cond|file handles|row|errors"
    r"|connections|instrument))|reject|refus|not allow|disallow|allow(s|ed)?\b|permit|forbid|deny|guardrail"
    r"|threshold .*(warn|fail)|fail threshold|warn threshold|quota|too (many|large)|exceed",
    "without effect": r"unused|no effect|deprecated|ignored|obsolete|will be removed|removed in|legacy",
    "when things fail": r"error|fail|crash|corrupt|recover|retry|retries|checksum|verif|validat|truncated at|abort"
    r"|ignore",
    "names and paths": r"\bname\b|path|directory|\bdir\b|version|\bid\b|identifier|prefix|suffix",
    "full text": r"full ?text|\bft\b|\bfts\b|token|stop ?word|spatial|gis\b",
    "numbers of rows": r"auto ?increment|sequence|offset|divid|increment column|seed|random",
    # Numbers of any kind.
    "waiting": r"sleep|delay|interval|period|how often|every|seconds between|milliseconds|microseconds|naptime",
    "counts": r"number of|percent|ratio|fraction|factor|how many",
}
_SEARCHED = [re.compile(pattern) for pattern in _CONCEPTS.values()]

#: What a knob does to performance, by words of a whole description; the first two are what it is said to gain and cost.
_CUES = {
    "gain": r"fast|speed|perform|efficien|improv|optimi[sz]|accelerat|(reduc|avoid|sav|minimi)\w* .*(overhead|latency"
    r"|i/?o|cpu|time|cost|writes|reads|calls|lookups|seeks|copies)|shorten|less (time|cpu|memory|i/?o)|throughput",
    "cost": r"at the (cost|expense)|trade|however|\bbut\b|may (lose|be lost)|risk|unsafe|slower|slow down"
    r"|penalty|overhead|more (memory|space|cpu|disk)|expensive|degrad|less (accura|precis|safe)",
    "reuse": r"cache|cached|reus|pool(ing)?\b|prefetch|pre-?load|pre-?alloc|read ?ahead|batch|combin|merg|coalesc"
    r"|pushdown|push down|lazy|eager|skip|bypass|async|parallel|pipelin|vectori|native|compil|jit|short.?circuit",
    "safety": r"durab|sync\b|fsync|crash|power|consisten|isolation|secur|encrypt|certificate (check|verif)|checksum"
    r"|verif|validat|authenticat|integrity|recover|loss|stale",
    "compact": r"compress|encod|codec|level of",
    "rhythm": r"interval|period|timeout|time ?out|how (often|long)|frequency|every|delay|wait|retry|retries|backoff"
    r"|age\b|ttl|expire|retention|idle|duration|seconds|milliseconds|\bms\b",
    "bound": r"threshold|ratio|percent|fraction|factor|trigger|limit|at most|at least|rate",
    "amount": r"(number|amount|size|count) of|maximum|max\b|minimum|bytes|capacity|memory|heap",
    "workers": r"threads?\b|workers?\b|process(es)?\b|concurren|connections?\b|cores?\b|handlers?",
    "room": r"buffer|cache size|pool size|quota|queue|slots|open files|memory (used|limit|for)|stack",
    "switch": r"whether|enabl|disabl|\bif (set|true|on|enabled|this)|when (set|true|on|enabled)|turn(s|ed)? o(n|ff)"
    r"|allow|use \w+ (for|to|when)|boolean|flag|should",
    "watching": r"\blog(s|ged|ging)?\b|monitor|track|debug|trac(e|ing)|audit|statistic|metric|profil|report|record|dump"
    r"|collect|histogram|diagnos|verbose|warn",
    "checking": r"check|verif|validat|enforce|assert|detect|ensure|scan for|inspect|strict|double",
    "place": r"\bpath\b|director|\bfile (name|path|that|to)|folder|location|\burl\b|\buri\b|address|\bhost|\bport\b"
    r"|socket file|endpoint|domain",
    "name": r"\bname(s|d)?\b|prefix|suffix|password|user(name)?\b|\bkey ?store|trust ?store|identifier|\bid\b|token"
    r"|class\b|list of|comma|label|plugin|script|realm|cipher",
    "meaning": r"format|charset|character set|collat|locale|language|time ?zone|syntax|semantic|case|null|mode\b"
    r"|version|protocol|compatib|default (value|type)|behaviou?r|standard|type of",
}
_CUED = [re.compile(pattern) for pattern in _CUES.values()]


def find_concepts(texts: Sequence[str]) -> Floats:
    """Return which concepts a text is about (1 or 0), shape (texts, concepts)."""
    return _search(texts, _SEARCHED)


def find_cues(texts: Sequence[str]) -> Floats:
    """Return which cues about performance a text has (1 or 0), shape (texts, cues)."""
    return _search(texts, _CUED)


def _search(texts: Sequence[str], patterns: Sequence[re.Pattern[str]]) -> Floats:
    matches = [[pattern.search(text.lower()) is not None for pattern in patterns] for text in texts]
    return np.array(matches, float).reshape(len(texts), len(patterns))

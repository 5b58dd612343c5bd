"""The specs of a study that was never measured: one DBMS on a fast and on a slow device."""

from typing import Any

from knobscope.specs import Dbms, Device, Study, StudySpecs, Workload, read_shipped_rule, shipped_rules

DOCS = "https://www.sqlite.org/pragma.html"


def make_specs(**study: Any) -> StudySpecs:
    """Return specs of one DBMS on two devices; arguments replace parts of the study."""
    knob = {"source": DOCS, "apply": "restart"}
    dbms = Dbms.model_validate(
        {
            "name": "sqlite",
            "description": "SQLite, in the process of its client.",
            "version_sql": "SELECT sqlite_version()",
            "writing": {"restart": {"sql": "PRAGMA {knob} = {value}"}, "load": {"sql": "PRAGMA {knob} = {value}"}},
            "readback": {"each": "PRAGMA {knob}"},
            "connection": {"binding": "knobscope.JdbcBinding", "properties": {"jdbc.url": "jdbc:sqlite:{data}/db"}},
            "loading": {"tables": ["CREATE TABLE usertable (k TEXT PRIMARY KEY)"]},
            "knobs": {
                "synchronous": {**knob, "type": "enum", "values": ["off", "normal", "full"], "default": "full",
                                "mechanism": "flush", "durability": True, "expect": "slower",
                                "description": "What a commit waits for."},
                "page_size": {**knob, "type": "integer", "range": [512, 65536], "default": 4096, "unit": "bytes",
                              "scale": "log", "mechanism": "page_size", "expect": "faster", "apply": "load"},
                "wal_autocheckpoint": {**knob, "type": "integer", "range": [1, 100000], "default": 1000,
                                       "unit": "pages", "scale": "log", "special": {0: "off"},
                                       "mechanism": "checkpoint"},
                "cache_size": {**knob, "type": "integer", "range": [100, 100000], "default": 2000, "unit": "pages",
                               "scale": "log", "mechanism": "cache", "expect": "faster"},
                "mmap_size": {**knob, "type": "integer", "range": [0, 1 << 40], "default": 0, "unit": "bytes",
                              "mechanism": "cache"},
                "temp_store": {**knob, "type": "enum", "values": ["file", "memory"], "default": "file",
                               "mechanism": "other"},
            },
        }
    )  # fmt: skip
    devices = {
        "fast-flash": Device(
            name="fast-flash", description="An NVMe drive for itself.", tier="nvme_ssd", path="/", dedicated=True
        ),
        "slow-disk": Device(name="slow-disk", description="A disk that turns.", tier="hdd", path="/", dedicated=True),
    }
    workload = Workload.model_validate(
        {"name": "ycsb-a", "generator": "ycsb", "class": "write", "records": 20000, "threads": 4, "parameters": {}}
    )
    settings: dict[str, Any] = {
        "name": "sqlite-two-tiers",
        "description": "Which knobs of SQLite matter on flash and on a disk, and do they mean the same there?",
        "dbms": ["sqlite"],
        "devices": list(devices),
        "workloads": {"ycsb-a": None},
        "knobs": {
            "sqlite": {
                "synchronous": None,
                "page_size": {"values": [1024, 4096, 16384, 65536]},
                "wal_autocheckpoint": {"values": [10, 1000, 10000]},
                "cache_size": None,
                "mmap_size": None,
                "temp_store": None,
            }
        },
        "sampling": {"runs_per_round": 12, "method": "random"},
        **study,
    }
    asked = shipped_rules() if settings.get("rules") is None else settings["rules"]
    rules = {name: read_shipped_rule(name) for name in asked}
    return StudySpecs(Study.model_validate(settings), {"sqlite": dbms}, devices, {"ycsb-a": workload}, rules=rules)

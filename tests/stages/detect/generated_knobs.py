"""The knobs of the DBMSs in generated studies, and the values that these sweep."""

from typing import Any

SOURCE = "https://example.org/knobs"

KNOBS: dict[str, dict[str, Any]] = {
    "page": {"type": "integer", "range": [1, 64], "unit": "kB", "default": 4, "mechanism": "page_size"},
    "buffer": {"type": "integer", "range": [1, 64], "default": 8, "expect": "faster", "mechanism": "cache"},
    "sync": {
        "type": "enum",
        "values": ["none", "normal", "full"],
        "default": "full",
        "expect": "slower",
        "durability": True,
        "mechanism": "flush",
    },
    "ahead": {"type": "boolean", "default": False, "mechanism": "prefetch"},
    "pause": {
        "type": "integer",
        "range": [1, 100],
        "special": {0: "off"},
        "default": 10,
        "expect": "none",
        "mechanism": "other",
    },
    "limit": {"type": "integer", "range": [1, 100], "default": 50, "expect": "faster", "mechanism": "throttle"},
    "workers": {"type": "integer", "range": [1, 64], "default": 2, "expect": "faster", "mechanism": "io_workers"},
    "window": {
        "type": "integer",
        "range": [1, 64],
        "unit": "kB",
        "default": 8,
        "expect": "faster",
        "mechanism": "prefetch",
        "when": "ahead",
    },
    "flusher": {"type": "boolean", "default": False, "mechanism": "flush", "when": "sync == 'none'"},
    "device.table.customers": {"type": "enum", "values": ["data", "other"], "default": "data", "mechanism": "layout"},
}
SPECIAL = ("limit", "workers", "window", "flusher", "device.table.customers")  # only in studies that name them
CHOICES: dict[str, dict[str, Any] | None] = {
    "page": {"values": [1, 4, 16]},
    "buffer": {"values": [2, 8, 32]},
    "sync": None,
    "ahead": None,
    "pause": {"values": [0, 10, 100]},
    "limit": {"values": [5, 100]},
    "workers": {"values": [8]},
    "window": {"values": [2, 32]},
    "flusher": None,
    "device.table.customers": None,
}

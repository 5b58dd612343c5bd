"""Prepare: a loaded data directory per load-time setting."""

from knobscope.stages.prepare.command import load_values_of
from knobscope.stages.prepare.room import DiskRoom, estimate_space
from knobscope.stages.prepare.snapshot import (
    Snapshot,
    SnapshotFailedError,
    copy_snapshot,
    load_session,
    prepare_snapshot,
    remove_leftovers,
)
from knobscope.stages.prepare.version import find_version

"""Processes that end with us, also after kill -9, and run as somebody who may do little."""

from knobscope.processes.complaints import find_complaint
from knobscope.processes.cores import usable_cores
from knobscope.processes.disturbance import find_full, find_sent_signal, find_system_error
from knobscope.processes.holding import hold_directory, open_temporary, remove_if_abandoned
from knobscope.processes.logs import read_log, read_tail
from knobscope.processes.network import connects, open_network
from knobscope.processes.private import (
    MOST_BYTES,
    UnsafeFileError,
    hand_over,
    make_own_directory,
    make_shared_directory,
    open_foreign,
    read_foreign,
    remove_shared,
    share_directory,
    share_files,
    write_shared,
)
from knobscope.processes.sandbox import make_sandbox, open_sandbox
from knobscope.processes.supervision import (
    PIPELINE_VARIABLE,
    OutputLimitError,
    Sandbox,
    capture,
    follow_pipeline,
    read_output,
    supervise,
)
from knobscope.processes.trees import list_ancestors, list_tree, number_threads, read_process_stat, read_start
from knobscope.processes.user import SERVICE_USER, find_service_user
from knobscope.processes.view import keep_mounts_private

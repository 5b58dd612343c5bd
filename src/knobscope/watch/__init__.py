"""Watches what a run does to a device: block by block with BPF, or in sums from procfs where BPF is not permitted."""

from knobscope.watch.files import FileTree, name_file, name_files, read_tree
from knobscope.watch.interface import Place, Profile, Watch, WatchFailedError
from knobscope.watch.opening import open_watch
from knobscope.watch.other_programs import OtherPrograms, describe_others, sum_shares
from knobscope.watch.programs import read_program_files
from knobscope.watch.several import SeveralWatch
from knobscope.watch.waits import find_classes, make_wait_columns, sum_waits

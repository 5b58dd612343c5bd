"""`knobscope trace`: a trace of single requests becomes the profile that `knobscope watch` shows live."""

import argparse
from pathlib import Path

from knobscope.commands.trace.profile import TraceDocument, profile_trace
from knobscope.commands.trace.reading import FORMATS, open_trace
from knobscope.commands.trace.scatter import draw_scatter
from knobscope.commands.trace.text import format_trace
from knobscope.documents import add_json_argument, write_document
from knobscope.errors import UserError
from knobscope.specs.models.quantity import Size
from knobscope.watch.locality import trace_locality

_MIN_UNIT, _MAX_UNIT = 512, 1 << 30


def _run(args: argparse.Namespace) -> int:
    if not _MIN_UNIT <= args.unit <= _MAX_UNIT:
        raise UserError(f"--unit: expected {_MIN_UNIT} to {_MAX_UNIT} bytes, found {args.unit}")
    if args.plot and args.plot.suffix != ".svg":
        raise UserError(f"--plot: expected a name that ends in .svg, found {args.plot}")
    if args.colour and not args.plot:
        raise UserError("--colour: found no --plot; expected --plot OUT.svg, whose colours it chooses")
    chosen = None if args.format == "auto" else args.format
    with open_trace(args.trace, chosen, args.device, args.file) as trace:
        locality = trace_locality(trace.connection, "SELECT *, op = 0 AS is_read FROM requests WHERE op < 2")
        profile = profile_trace(trace, args.unit)
        profile["locality"] = locality.record() if locality else None
        if args.plot:
            draw_scatter(trace, args.plot, args.colour)
    if not write_document(args, profile):
        print(format_trace(profile, locality), end="")
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "trace",
        help="show the I/O profile of a block trace",
        description="Read a trace of block requests and show what `knobscope watch` shows of a running command: sizes, "
        "alignment, order, depth over time, latency, and which files it went to. A trace is the text of blkparse, "
        "block events of ftrace or `perf script`, the output of biosnoop, CSV with columns ts_ns, lba, len_sectors, op "
        "(and flush, fua, file, offset, lat_ns where known), or what `knobscope watch --trace` recorded. It may be "
        "compressed by gzip, xz or zstd.",
    )
    parser.add_argument(
        "trace", type=Path, metavar="FILE", help="the trace, or - for standard input; of a recorded one its directory"
    )
    add_json_argument(parser, TraceDocument, may_be_file=True)
    parser.add_argument("--plot", type=Path, metavar="OUT", help="also draw every request, address over time (SVG)")
    parser.add_argument(
        "--colour", choices=("file", "op"), help="what colours in the plot mean (default: files, if any are known)"
    )
    parser.add_argument(
        "--unit",
        type=Size.read_bytes,
        default=4096,
        metavar="SIZE",
        help="what aligned is a multiple of, in bytes or e.g. 32KiB (default: %(default)s)",
    )
    parser.add_argument(
        "--format", choices=("auto", *FORMATS), default="auto", help="default: what it looks like (%(default)s)"
    )
    parser.add_argument("--device", metavar="DEV", help="of several devices, this one: MAJ:MIN, or biosnoop's name")
    parser.add_argument("--file", metavar="GLOB", help="only requests of files with such names, e.g. '*.sst'")
    parser.set_defaults(run=_run)

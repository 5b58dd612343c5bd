"""`knobscope characterise`: measures what a device prefers."""

import argparse
from pathlib import Path

from knobscope.devices import load_device
from knobscope.documents import out_file
from knobscope.errors import UserError
from knobscope.processes import follow_pipeline
from knobscope.specs import Device, load_study
from knobscope.stages.characterise.profile import Mode, write_profile
from knobscope.tables.devices import DevicePropertyRow


def _run(args: argparse.Namespace) -> int:
    follow_pipeline()
    device, name, mode = _choose(args)
    profile = write_profile(device, args.root, name, args.mode or mode, args.out)
    print(f"{device.name} ({profile['tier']}), measured in {profile['method']['seconds']:.0f} s")
    for row in profile["properties"]:
        print(_describe(row))
    return 0


def _describe(row: DevicePropertyRow) -> str:
    value = row["value"]
    if value is None:
        shown = "none" if row["confidence"] != "not measured" else "?"
    else:
        shown = f"{value // 1024:.0f} KiB" if row["unit"] == "bytes" else f"{value:.4g} {row['unit']}"
    kernel = f" | the kernel: {row['kernel']}" if row["kernel"] else ""
    because = "; ".join(filter(None, [row["because"], row["others"]]))
    return f"  {row['property']}: {shown} ({row['confidence']}): {because}{kernel}"


def _choose(args: argparse.Namespace) -> tuple[Device, str, Mode]:
    """Return the device, the name of its scratch directory, and the mode unless an option says otherwise."""
    if args.study is None and args.spec is not None and args.device is None:
        return load_device(args.spec, args.root), "characterise", "quick"
    if args.study is None or args.device is None or args.spec is not None:
        raise UserError("characterise what? Give a device spec, or --study and --device")
    specs = load_study(args.study, args.root, runnable={args.device})
    if args.device not in specs.devices:
        raise UserError(f"study {specs.study.name} has no device {args.device!r}, only {', '.join(specs.devices)}")
    return specs.devices[args.device], specs.study.name, specs.study.characterise


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "characterise",
        help="measure what a device prefers",
        description="Measure a device with fio on a scratch file: write unit, flush, queue depth, gap between random "
        "and sequential requests, reads together with writes. Prints what was found, how sure that is, and what the "
        "kernel "
        "says. The file is removed at the end.",
    )
    parser.add_argument("spec", nargs="?", metavar="DEVICE", help="name of a file in specs/devices, or a YAML file")
    parser.add_argument("--study", type=Path, help="study YAML, instead of DEVICE; together with --device")
    parser.add_argument("--device", metavar="NAME", help="device of the study")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")
    parser.add_argument("--out", type=out_file, required=True, help="JSON file to write: the device profile")
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--quick",
        dest="mode",
        action="store_const",
        const="quick",
        help="less than a minute; the default without a study",
    )
    modes.add_argument("--full", dest="mode", action="store_const", const="full", help="about a minute and a half")
    parser.set_defaults(run=_run)

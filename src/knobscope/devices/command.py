"""`knobscope devices`: brings emulated devices up and down, and fits device models to figures."""

import argparse
import sys
from pathlib import Path

import yaml

from knobscope.devices.calibration import calibrate, ensure_calibrated
from knobscope.devices.emulation import bring_up, take_down
from knobscope.devices.fit import find_misfits, fit_device, fit_model, read_figures
from knobscope.devices.owners import FOREVER
from knobscope.devices.spec import load_device
from knobscope.durable_files import write_text
from knobscope.errors import UserError
from knobscope.specs.checks.emulation_limits import describe_limits
from knobscope.specs.models.device import Device


def _up(args: argparse.Namespace) -> int:
    device = load_device(args.device, args.root)
    if device.model is not None:
        ensure_calibrated()
    for text in describe_limits(device):
        print(text, file=sys.stderr)
    print(bring_up(device, args.root, FOREVER))
    return 0


def _down(args: argparse.Namespace) -> int:
    existed = take_down(load_device(args.device, args.root), args.root)
    print(f"{args.device}: {'removed, with all data on it' if existed else 'was not up'}")
    return 0


def _calibrate(args: argparse.Namespace) -> int:
    transport = calibrate()
    print(
        f"a modelled device answers here in {transport.read_us:.0f} us (read), {transport.write_us:.0f} us (write) and"
    )
    print(f"{transport.flush_us:.0f} us (flush) at best, and at most {transport.read_iops:.0f} reads or")
    print(f"{transport.write_iops:.0f} writes of 4 KiB a second, which is its ceiling")
    return 0


def _fit(args: argparse.Namespace) -> int:
    figures = read_figures(args.figures, args.drive)
    device = fit_device(figures, args.figures.name)
    text = _render(device)
    if args.out is None:
        print(text, end="")
    else:
        _write(args.out, device, text)
    for misfit in find_misfits(figures, fit_model(figures)):
        print(
            f"{misfit.figure}: the device model comes to {misfit.reached:.0f}, the table says {misfit.wanted:.0f}; "
            "the table's figures contradict each other in such a model",
            file=sys.stderr,
        )
    for sentence in describe_limits(device):
        print(sentence, file=sys.stderr)
    return 0


def _write(folder: Path, device: Device, text: str) -> None:
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder; give one to write {device.name}.yaml into, e.g. specs/devices")
    file = folder / f"{device.name}.yaml"
    if file.exists():
        raise UserError(f"{file} exists; remove it first, or give another folder")
    write_text(file, text)
    print(file)


def _render(device: Device) -> str:
    content = device.model_dump(mode="json", exclude_defaults=True)
    head = (
        "# yaml-language-server: $schema=../schemas/device.json\n#\n"
        f"# Fitted by `knobscope devices fit`. {device.source[0]}.\n"
        "# Latencies at depth one, cache and flush are typical of the tier: the figures do not tell them.\n"
    )
    return head + yaml.safe_dump(content, sort_keys=False, width=120)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "devices",
        help="bring emulated devices up or down, fit device models",
        description="Bring an emulated device (an image file behind a loop device, with a file system of its own, and "
        "a device model between them if its spec has one) up or down; fit a device model to published figures. Stages "
        "bring up what they need. Needs root, or the installed device helper.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, action, text in (
        ("up", _up, "make it ready, or find it ready; prints where it is mounted"),
        ("down", _down, "unmount it and remove it, with all data on it"),
    ):
        subparser = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        subparser.add_argument("device", metavar="NAME", help="name of a file in specs/devices, or a YAML file")
        subparser.add_argument("--root", type=Path, default=Path(), help="what relative paths start from")
        subparser.set_defaults(run=action)
    text = "measure anew what the way to a modelled device costs on this machine (one minute)"
    subparser = actions.add_parser("calibrate", help=text, description=f"{text[0].upper()}{text[1:]}.")
    subparser.set_defaults(run=_calibrate)
    text = "fit a device model to a row of published figures; prints a device spec"
    subparser = actions.add_parser(
        "fit",
        help=text,
        description="Fit a device model to a drive's figures at saturation: a table with the columns model, rbps, "
        "rrandiops, rseqiops, wbps, wrandiops, wseqiops, as iocost-benchmarks publishes it. Of a drive with several "
        "rows, medians are taken. Prints a device spec, and on standard error what the device model cannot meet.",
    )
    subparser.add_argument("drive", metavar="NAME", help="the drive, as the column `model` names it")
    subparser.add_argument("--from", dest="figures", type=Path, required=True, metavar="FIGURES.csv", help="the table")
    subparser.add_argument("--out", type=Path, metavar="FOLDER", help="write the spec into this folder instead")
    subparser.set_defaults(run=_fit)

"""`knobscope device`: brings emulated devices up and down."""

import argparse
from pathlib import Path

from knobscope.devices.emulation import bring_up, take_down
from knobscope.devices.spec import load_device

__all__ = ["add_parser"]


def _up(args: argparse.Namespace) -> int:
    mount = bring_up(load_device(args.device, args.root), args.root)
    print(mount)
    return 0


def _down(args: argparse.Namespace) -> int:
    existed = take_down(load_device(args.device, args.root), args.root)
    print(f"{args.device}: {'removed, with all data on it' if existed else 'was not up'}")
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "device",
        help="bring an emulated device up or down",
        description="Bring an emulated device (an image file behind a loop device, with a file system of its own) up "
        "or down. Stages bring up what they need and leave it up. Needs root, or sudo without a password.",
    )
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for name, action, text in (
        ("up", _up, "make it ready, or find it ready; prints where it is mounted"),
        ("down", _down, "unmount it and remove it, with all data on it"),
    ):
        one = actions.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.")
        one.add_argument("device", metavar="NAME", help="name of a file in specs/devices, or a YAML file")
        one.add_argument("--root", type=Path, default=Path(), help="what relative paths start from")
        one.set_defaults(run=action)

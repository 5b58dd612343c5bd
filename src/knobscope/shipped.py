"""Files that come with knobscope and are not Python: specs, rules, probes, the Snakefile, profiles, priors."""

from pathlib import Path

_HERE = Path(__file__).resolve().parent
_IN_WHEEL = _HERE / "files"  # setup.py puts them there

#: Their folder: in the package that a wheel installed, or the checkout.
SHIPPED = _IN_WHEEL if _IN_WHEEL.is_dir() else _HERE.parents[1]

"""The tests that run on this machine's own kernel use the loop devices of those of `knobscope watch`."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "watch"))

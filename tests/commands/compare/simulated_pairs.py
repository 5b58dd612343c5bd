"""The simulated studies that are compared: those that the rules are tested with."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
sys.path.append(str(ROOT / "tests/stages/detect"))

from generated_studies import StudyMaker, Truth  # noqa: E402, F401 - its folder has just been named

#: What the values do in the studies, if nothing else is said.
TRUTH = {("sync", "none"): Truth(throughput=1.5), ("page", "1"): Truth(throughput=-0.3), ("buffer", "32"): Truth(0.4)}

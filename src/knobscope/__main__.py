"""Lets `python -m knobscope` be the command line."""

import sys

from knobscope.cli import main

sys.exit(main())

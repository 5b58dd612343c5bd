"""Fixtures of hostile files: `canaries` holds them, with what tests import by name."""

from canaries import canaries, forge, honest, open_watched, run_folder  # noqa: F401 - fixtures

"""Priors: what a study learned, kept as a file, and how a later study starts from it instead of screening."""

from knobscope.commands.models.saving import write_prior
from knobscope.commands.models.starting import fit_from_prior

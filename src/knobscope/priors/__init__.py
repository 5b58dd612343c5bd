"""Priors: what a study learned, kept as a file, and how a later study starts from it instead of screening."""

from knobscope.priors.fitting import describe_fitting
from knobscope.priors.saving import make_prior, write_prior
from knobscope.priors.starting import fit_from_prior

__all__ = ["describe_fitting", "fit_from_prior", "make_prior", "write_prior"]

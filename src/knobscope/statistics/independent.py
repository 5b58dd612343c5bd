"""Sums and differences of independent estimates that need not be equally sure (B. L. Welch, 1947).

Two devices, or two studies, are measured in different blocks, so their errors are independent; they need not be equal.
"""

import numpy as np

from knobscope.statistics.arrays import Floats


def join_errors(errors: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Return standard errors and degrees of freedom of sums or differences of independent estimates.

    Both arguments have a row per part and a column per sum, shape (parts, sums); so the results are of shape (sums,). A
    part that is exactly known has the error 0. Degrees are Welch and Satterthwaite's. NaN where an error is not known.
    """
    variances = errors**2
    total = variances.sum(axis=0)
    shares = variances / total.clip(1e-300)
    joint = 1 / (shares**2 / np.maximum(degrees, 1e-9)).sum(axis=0).clip(1e-9)
    return np.sqrt(total), joint

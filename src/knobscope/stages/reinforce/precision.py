"""How precisely a sweep has measured each value's effect on throughput, and how many blocks more it takes.

The fit is that of `detect`: natural-log throughput on a level per session of a block and a level per configuration,
stalled runs set aside, each configuration with a variance of its own that is moderated by the others', and a deviation
of each configuration in each session. What `detect`
does in addition, about drift within a block, is left to it: a block that it drops is missing there.

Only standard errors come out of here, and no estimate. That is what makes it safe to look again and again: in a linear
model with normal noise the residuals are independent of the estimates, so that a number of blocks which depends on the
residuals alone leaves the estimates as they would have been with that number from the start (C. Stein, Annals of
Mathematical Statistics 16, 1945; for more than two stages, sequential intervals of fixed width, Y. S. Chow and
H. Robbins, the same 36, 1965). Who stops as soon as an effect is significant finds one in pure noise, sooner or later.
What is left is that a variance which came out small by chance ends the repeats early, so that intervals get a little
too narrow: coverage falls by less than 1 % where it matters most (docs/evidence/statistics.md,
`benchmarks/effects.py`).
"""

from dataclasses import dataclass, replace

import numpy as np

from knobscope.stages.plan import sentinel_positions
from knobscope.statistics.arrays import Bools, Floats, Ints
from knobscope.statistics.block_variation import MixedFit, fit_mixed, name_cells
from knobscope.statistics.power import Aim
from knobscope.statistics.regression import BlockFit, Cells, Nuisance, fit_blocks
from knobscope.statistics.stalls import find_stalls
from knobscope.statistics.variances import moderate_variances

#: As in `detect`: an effect with fewer blocks, or with fewer residual degrees of freedom, has no interval.
_LEAST_BLOCKS = 2
_LEAST_DEGREES = 2


@dataclass(frozen=True)
class SweepRuns:
    """The runs of a case's sweep: arrays of shape (runs,), and the number of configurations, the default included."""

    setting: Ints  # code of the configuration, 0 for the default
    block: Ints
    session: Ints  # code of the session of a block
    response: Floats  # natural-log throughput, NaN where the run failed
    settings: int
    reference: Ints | None = None  # code of what each value is compared with, shape (settings - 1,); None: all with 0

    def comparable(self) -> Bools:
        """Return which runs count: they succeeded and did not stall, as did a default run of their session."""
        stalled = find_stalls(self.response, self.setting, self.session)
        usable = np.isfinite(self.response) & ~stalled
        sentinels = np.bincount(self.session[usable & (self.setting == 0)], minlength=self._sessions)
        comparable: Bools = usable & (sentinels[self.session] > 0)
        return comparable

    def count_blocks(self, rows: Bools) -> Ints:
        """Return in how many blocks these runs measured each value, shape (settings - 1,)."""
        codes = np.unique(np.column_stack([self.setting[rows], self.block[rows]]), axis=0)[:, 0]
        return np.bincount(codes, minlength=self.settings)[1:].astype(np.int64)

    @property
    def _sessions(self) -> int:
        return int(self.session.max(initial=-1)) + 1


@dataclass(frozen=True)
class Precision:
    """What is known of each value's effect, whatever the effect is: shapes are (settings - 1,)."""

    errors: Floats  # standard errors of the natural-log ratios; NaN where there is no interval
    degrees: Floats
    fit: MixedFit
    design: tuple[Ints, Ints]  # configuration and session of the runs that count
    reference: Ints

    @property
    def noise(self) -> float:
        """Standard deviation of one run."""
        return self.fit.likeliest.noise


def measure_precision(runs: SweepRuns) -> Precision:
    """Return how precisely the effects of all values are known."""
    rows = runs.comparable()
    setting, session = runs.setting[rows], runs.session[rows]
    reference = np.zeros(runs.settings - 1, np.int64) if runs.reference is None else runs.reference
    fit = fit_mixed(runs.response[rows], setting, Nuisance.levels(session), runs.settings, session)
    errors, degrees = _find_errors(fit, reference)
    judged = (runs.count_blocks(rows) >= _LEAST_BLOCKS) & (fit.likeliest.degrees >= _LEAST_DEGREES)
    return Precision(np.where(judged, errors, np.nan), degrees, fit, (setting, session), reference)


def _find_errors(fit: MixedFit, reference: Ints) -> tuple[Floats, Floats]:
    """Return standard errors and degrees of freedom of each value against its reference, shape (settings - 1,)."""
    parts = np.column_stack([np.arange(1, len(reference) + 1), reference])
    return fit.contrast(parts, np.array([1.0, -1.0]))[1:]


def count_more(precision: Precision, aim: Aim, lacking: Bools, room: Ints) -> Ints:
    """Return how many blocks more each value needs, by the noise of now: 1 to `room`, or 0 where it is not `lacking`.

    All arrays are of shape (settings - 1,). The blocks to come are taken to hold the lacking values that have room, and
    sentinels as `plan` adds them; whether a value suffices then follows from the design of all blocks together. Where
    noise is not known yet, one block more has to show it.
    """
    eligible: Bools = lacking & (room > 0)
    more = np.where(eligible, room if np.isfinite(precision.noise) else 1, 0)
    for blocks in range(1, int(more.max(initial=0))):
        errors, degrees = _project(
            precision, [np.flatnonzero(eligible & (room > index)) + 1 for index in range(blocks)]
        )
        enough = aim.suffices(aim.smallest(errors, degrees))
        more = np.where(eligible & enough, np.minimum(more, blocks), more)
        if not (eligible & (more > blocks)).any():
            break
    return more.astype(np.int64)


def _project(precision: Precision, blocks: list[Ints]) -> tuple[Floats, Floats]:
    """Return standard errors and degrees of freedom after further blocks of these configurations, with noise as now.

    What a configuration is compared with comes along, as in `knobscope.stages.plan.plan_reinforcement`.
    """
    now, reference = precision.fit, precision.reference
    blocks = [np.unique(np.concatenate([block, reference[block - 1]])) for block in blocks]
    blocks = [block[block > 0] for block in blocks]
    setting, session = precision.design
    first = int(session.max(initial=-1)) + 1
    settings = [
        setting,
        *(np.concatenate([np.zeros(len(sentinel_positions(len(block))), int), block]) for block in blocks),
    ]
    sessions = [session, *(np.full(len(part), first + index) for index, part in enumerate(settings[1:]))]
    design, of_session = np.concatenate(settings).astype(np.int64), np.concatenate(sessions).astype(np.int64)
    levels, code = Nuisance.levels(of_session), name_cells(design, of_session)

    def project(fit: BlockFit, share: float) -> BlockFit:
        variances, _ = moderate_variances(fit.own_squares, fit.own_degrees)
        planned = fit_blocks(np.zeros(len(design)), design, levels, len(variances), Cells(code, share))
        return replace(planned, noise=fit.noise, own_squares=variances * planned.own_degrees)

    fits = tuple(project(fit, share) for fit, share in zip(now.fits, now.shares.tolist(), strict=True))
    return _find_errors(replace(now, fits=fits), reference)

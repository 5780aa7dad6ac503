"""The !Kung women of the 2018 paper, section 4: heights from age with a lengthscale of 25 years.

The paper prints a kernel variance of 7.72² cm² and a noise variance of 14² cm². Its notebook has
variance 1 and noise variance 0.3 for heights divided by their sd of 25.7 cm: 14.1 is √0.3 of that,
and 7.72 is 0.3 of it. Published: 6.8 cm without privacy and 12.2 cm with, over folds that are not
stated; so several numbers of folds are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

from cloakgp.arrays import Array
from cloakgp.experiments import kung
from cloakgp.experiments.cloaked import LOGDET_NOISE, PAPERS_NOISE, TRACE_NOISE, Prior
from cloakgp.experiments.crossvalidation import (
    CrossValidation,
    Errors,
    Protocol,
    Tick,
    cross_validate,
)
from cloakgp.experiments.posterior_rows import Row, posterior_errors
from cloakgp.models import ExactPrior

LENGTHSCALE = 25.0
UNIT = 25.7
SIGNAL_VARIANCE = UNIT**2
NOISE_VARIANCE = 0.3 * UNIT**2
FOLDS = (10, 14, 29, 72)


@dataclass(frozen=True, eq=False)
class Found:
    """What was computed for one number of folds.

    Attributes
    ----------
    cloaked : CrossValidation
        Under `logdet` and `trace`.
    bayes : Errors
    """

    cloaked: CrossValidation
    bayes: Errors


def prior_for(_: Array) -> Prior:
    """Return the paper's prior, whatever the training inputs."""
    return ExactPrior(
        kernel=ConstantKernel(SIGNAL_VARIANCE) * RBF(LENGTHSCALE),
        noise_variance=NOISE_VARIANCE,
        mean=kung.PRIOR_MEAN,
    )


BAYES = Row("bayes", prior_for, at_held_out=True)


def errors_by_folds(
    women: pd.DataFrame,
    *,
    protocol: Protocol,
    folds: Sequence[int] = FOLDS,
    tick: Tick | None = None,
) -> dict[int, Found]:
    """Compute the errors of heights predicted from age, (1, 0.01)-DP, by number of folds.

    Parameters
    ----------
    women : DataFrame
        ``load_kung(male=False)``.
    protocol : Protocol
        Its number of folds is not used.
    folds : sequence of int
    tick : callable, optional
        Called after every fold, once for the papers' designs and once for `bayes`.
    """
    X, y = women[["age"]].to_numpy(dtype=float), kung.heights(women)
    found = {}
    for count in folds:
        dealt = replace(protocol, folds=count)
        found[count] = Found(
            cloaked=cross_validate(
                X,
                y,
                prior_for=prior_for,
                noises=(PAPERS_NOISE, LOGDET_NOISE, TRACE_NOISE),
                posterior_of=(TRACE_NOISE,),
                budget=kung.BUDGET,
                protocol=dealt,
                tick=tick,
            ),
            bayes=posterior_errors(
                X, y, rows=(BAYES,), budget=kung.BUDGET, protocol=dealt, tick=tick
            )[BAYES.name],
        )
    return found

"""What was learned at few points counts only where it holds with every row at its own place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.fitting import row_learning
from cloakgp.models import ExactPrior
from cloakgp.models.likelihoods import Numbers
from cloakgp.release.hyperparameters import covariance, learning
from cloakgp.release.hyperparameters.learning import confirmed, likeliest, linear_log_evidence
from cloakgp.release.hyperparameters.quadrature import EVIDENCE
from cloakgp.release.posterior.mixture import WeightedPrior

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")


def weighted(lengthscale, weight=1.0):
    prior = ExactPrior(kernel=RBF(lengthscale), noise_variance=0.3, mean=0.0)
    return WeightedPrior(prior=prior, likelihood=Numbers(), weight=weight)


@pytest.mark.parametrize(
    ("gained", "kept"),
    [(EVIDENCE + 0.1, True), (EVIDENCE - 0.1, False), (-5.0, False), (np.nan, False)],
)
def test_a_maximum_counts_if_it_makes_answers_more_probable_by_a_nat(gained, kept):
    declared, learned = weighted(1.0), weighted(2.0)
    evidence = {1.0: 7.0, 2.0: 7.0 + gained}
    found = confirmed(
        (learned,),
        declared=declared,
        log_evidence=lambda prior: evidence[prior.kernel.length_scale],
    )
    assert found == ((learned,) if kept else (declared,))


@pytest.mark.parametrize(
    ("gained", "kept"),
    [(EVIDENCE, True), (0.1 - EVIDENCE, True), (-0.1 - EVIDENCE, False), (np.nan, False)],
)
def test_an_average_counts_unless_its_main_part_is_less_probable_by_a_nat(gained, kept):
    declared, light, heavy = weighted(1.0), weighted(3.0, 0.2), weighted(2.0, 0.8)
    evidence = {1.0: 7.0, 2.0: 7.0 + gained, 3.0: 99.0}
    found = confirmed(
        (light, heavy),
        declared=declared,
        log_evidence=lambda prior: evidence[prior.kernel.length_scale],
    )
    assert found == ((light, heavy) if kept else (declared,))


@pytest.mark.parametrize(
    ("evidence", "which"),
    [((1.0, 2.0), 1), ((2.0, 1.0), 0), ((2.0, 2.0), 0), ((np.nan, -9.0), 1), ((None, None), 0)],
)
def test_of_several_maxima_the_one_counts_that_makes_answers_most_probable(evidence, which):
    """Judged by the part of most weight; where answers have no density, none is."""
    light = weighted(9.0, 0.2)
    several = [(light, weighted(1.0, 0.8)), (weighted(2.0),)]

    def log_evidence(prior):
        found = {1.0: evidence[0], 2.0: evidence[1]}[prior.kernel.length_scale]
        if found is None:
            raise np.linalg.LinAlgError
        return found

    assert likeliest(several, log_evidence=log_evidence) is several[which]


def test_it_does_not_count_where_answers_have_no_covariance():
    def impossible(prior):
        if prior.kernel.length_scale > 1:
            raise np.linalg.LinAlgError
        return 0.0

    declared = weighted(1.0)
    assert confirmed((weighted(2.0),), declared=declared, log_evidence=impossible) == (declared,)


@pytest.fixture
def steep(rng):
    """A curve of which the nearest of four points tells little, and its outputs."""
    X = rng.uniform(size=(700, 1))
    return X, np.sin(20 * X).ravel() + 0.1 * rng.normal(size=700)


SETTINGS = {
    "kernel": RBF(0.08),
    "bounds": (-2.0, 2.0),
    "epsilon": 20.0,
    "delta": 1e-5,
    "stages": None,
    "interval": False,
    "insecure_seed": 0,
}


@pytest.mark.filterwarnings("ignore::cloakgp.design.strategy.DesignGapWarning")
@pytest.mark.parametrize("checked", [True, False])
def test_rows_in_passes_keep_the_declared_prior_rather_than_a_worse_one(
    steep, checked, monkeypatch
):
    def misled(prior, *_, **__):
        worse = replace(prior, kernel=RBF(3.0))
        return (WeightedPrior(prior=worse, likelihood=Numbers(), weight=1.0),)

    monkeypatch.setattr(row_learning, "learn_numbers", misled)
    monkeypatch.setattr(row_learning, "LEARNING_CELLS", 100)
    if not checked:
        monkeypatch.setattr(learning, "EVIDENCE", -np.inf)
    model = DPGPRegressor(**SETTINGS, inducing=np.linspace(0, 1, 25)[:, None])
    release = model.fit_rows(ArrayRows(*steep, chunk_rows=300, jobs=1)).release_
    [learned] = release.learned
    assert (learned.prior is release.prior) == checked
    gained = linear_log_evidence(learned.prior, release.measurements) - linear_log_evidence(
        release.prior, release.measurements
    )
    assert gained == 0.0 if checked else gained < 0


@pytest.mark.parametrize("checked", [True, False])
def test_rows_that_are_kept_do_so_too(steep, checked, monkeypatch):
    monkeypatch.setattr(covariance, "LEARNING_POINTS", 4)
    if not checked:
        monkeypatch.setattr(learning, "EVIDENCE", -np.inf)
    release = DPGPRegressor(**SETTINGS).fit(*steep).release_
    [learned] = release.learned
    alone = replace(release, learned=()).measurements
    gained = linear_log_evidence(learned.prior, alone) - linear_log_evidence(release.prior, alone)
    if checked:
        assert learned.prior is release.prior
    else:
        assert gained < 0

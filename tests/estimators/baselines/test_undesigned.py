"""Releases of given strategies."""

import pytest
from sklearn.gaussian_process.kernels import RBF

from cloakgp.estimators.baselines.undesigned import release_of_answers
from cloakgp.fitting.strategies import Query
from cloakgp.models import ExactPrior
from cloakgp.privacy import OutputBounds, ask
from cloakgp.release import Hyperprior

BOUNDS = OutputBounds(0.0, 1.0)


def released(rng, **settings):
    X, strategy = rng.normal(size=(6, 1)), rng.normal(size=(2, 6))
    answers = ask(strategy, rng.uniform(size=6), question=BOUNDS, epsilon=1, delta=0.01)
    prior = ExactPrior(kernel=RBF(), noise_variance=0.1, mean=0.5)
    return answers, release_of_answers(
        X,
        strategy=strategy,
        answers=answers,
        prior=prior,
        query=Query(X=X),
        bounds=BOUNDS,
        **settings,
    )


def test_the_release_holds_the_answers(rng):
    answers, release = released(rng, input_names=["age"])
    assert release.measurements[0].answers is answers
    assert release.guarantee == answers.guarantee
    assert release.input_names == ("age",)
    assert release.learned == ()
    with pytest.raises(ValueError, match="do not"):
        release.published()


def test_the_certificate_claims_nothing(rng):
    """At most all of the variance that remains could be saved, which is true of any questions."""
    _, release = released(rng)
    assert release.measurements[0].strategy.certificate.gap == 1.0


def test_learning(rng):
    _, release = released(rng, hyperprior=Hyperprior(), average=True)
    assert sum(weighted.weight for weighted in release.learned) == pytest.approx(1)

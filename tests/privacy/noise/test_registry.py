"""The registry of noises: by name, and by budget."""

import math

import pytest

from cloakgp.privacy.accounting import Guarantee
from cloakgp.privacy.noise import GAUSSIAN, LAPLACE, NOISES, noise_named
from cloakgp.privacy.noise_choice import check_noise, noises_for


@pytest.mark.parametrize("noise", NOISES.values(), ids=list(NOISES))
def test_every_noise_is_found_by_its_name(noise):
    assert noise_named(noise.name) is noise
    assert NOISES[noise.name] is noise
    assert noises_for(noise.name, epsilon=1.0, delta=1e-3) == (noise.name,)


@pytest.mark.parametrize("name", ["auto", "cauchy", None, 1, ["laplace"]])
def test_what_is_no_noise_is_named(name):
    with pytest.raises(ValueError, match="noise must be one of auto, gaussian, laplace, got"):
        noise_named(name)


def test_a_budget_without_a_delta_is_for_laplace_noise():
    assert noises_for("auto", epsilon=1.0, delta=0.0) == ("laplace",)
    assert noises_for("auto", epsilon=1.0, delta=1e-9) == ("laplace", "gaussian")
    assert noises_for("auto", epsilon=1.0, delta=1e-9, balls=["l2"]) == ("gaussian",)
    assert noises_for("auto", epsilon=1.0, delta=0.4) == ("gaussian",)
    assert noises_for("laplace", epsilon=1.0, delta=1e-9) == ("laplace",)
    with pytest.raises(ValueError, match="without it, take Laplace"):
        check_noise("gaussian", epsilon=1.0, delta=0.0)


@pytest.mark.parametrize("noise", NOISES.values(), ids=list(NOISES))
@pytest.mark.parametrize("moved", [0.1, 1.0])
def test_only_noise_that_is_enough_keeps_a_guarantee(noise, moved):
    stated = (
        Guarantee(epsilon=1.0, delta=1e-3, mu=moved)
        if noise is GAUSSIAN
        else Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(math.sqrt(2) * moved,))
    )
    assert noise.keeps(stated, sensitivity_over_noise=moved)
    for other in (moved * 1.001, math.nan, math.inf):
        assert not noise.keeps(stated, sensitivity_over_noise=other)


def test_laplace_noise_keeps_no_gaussian_statement():
    moved = 0.5
    for mu in (0.1, 10.0):
        both = Guarantee(epsilon=3.0, delta=1e-3, mu=mu, laplace=(math.sqrt(2) * moved,))
        assert not LAPLACE.keeps(both, sensitivity_over_noise=moved)
        assert not LAPLACE.keeps(
            Guarantee(epsilon=3.0, delta=1e-3, mu=mu), sensitivity_over_noise=moved
        )

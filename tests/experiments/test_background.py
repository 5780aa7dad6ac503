"""Sections 1 to 3 of the 2021 paper: a count, fifty copies, and how an outlier moves the mean."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from cloakgp.privacy.accounting import exact_noise_multiplier
from experiments import background


def test_the_papers_count_is_not_private_as_stated_and_what_it_cites_is():
    paper, cited, papers_own, exact = background.count_noises()
    assert paper.delta > background.DELTA
    assert paper.sd**2 == pytest.approx(cited.sd, rel=0.01)
    for private in (cited, papers_own, exact):
        assert private.delta <= background.DELTA * (1 + 1e-9)
    assert exact.delta == pytest.approx(background.DELTA, rel=1e-6)
    assert paper.sd < exact.sd < cited.sd < papers_own.sd


@pytest.mark.parametrize("criterion", ["logdet", "trace"])
@pytest.mark.parametrize("copies", [1, 2, 50])
def test_copies_have_the_noise_of_one_whatever_their_number(criterion, copies):
    """Exactly that of the Gaussian mechanism on a mean, whose sensitivity is d/N."""
    people = 40
    C = background.copies_of_a_mean(copies=copies, people=people)
    closed = exact_noise_multiplier(background.EPSILON, background.DELTA) / people
    sds = background.noise_sds(C, criterion=criterion)
    np.testing.assert_allclose(sds, np.full(copies, closed), rtol=1e-6)


def test_statistics_about_others_have_the_noise_of_one_each():
    C = background.means_of_groups(groups=6, people=10)
    alone = background.noise_sds(C[:1, :10])
    np.testing.assert_allclose(background.noise_sds(C), np.full(6, alone[0]), rtol=1e-6)


@pytest.mark.parametrize("count", [2, 5, 8])
def test_statistics_of_the_same_people_that_tell_nothing_of_each_other_add_up(count):
    C = background.unrelated_contrasts(count=count, people=8)
    np.testing.assert_allclose(C @ C.T, np.eye(count) / 8, atol=1e-15)
    alone = background.noise_sds(C[:1])
    expected = np.full(count, math.sqrt(count) * alone[0])
    np.testing.assert_allclose(background.noise_sds(C), expected, rtol=1e-6)


def test_the_factor_is_what_scikit_learns_posterior_mean_moves_by(rng):
    found = background.pivot(0.3, points=101)
    outputs = rng.normal(size=10)
    lowered = outputs.copy()
    lowered[-1] -= background.OUTLIER_BEFORE - background.OUTLIER_AFTER
    before, after = (
        GaussianProcessRegressor(RBF(2.0), alpha=0.001, optimizer=None)
        .fit(found.X, one)
        .predict(found.inputs[:, None])
        for one in (outputs, lowered)
    )
    np.testing.assert_allclose(before - after, 0.25 * found.moved, atol=1e-5)
    assert found.factor == pytest.approx(np.abs(before - after).max() / 0.25, rel=1e-3)


def test_an_outlier_close_by_is_a_lever_and_one_far_off_is_not():
    near, far = background.pivot(0.3), background.pivot(6.0)
    assert near.factor > 5.0
    assert near.where > near.X[-1, 0] + 1.0
    assert far.factor == pytest.approx(1.0, abs=0.01)
    assert background.scattered_factors(0.3, draws=40).max() > background.PUBLISHED_FACTOR


def test_the_noise_covers_what_every_output_can_do():
    """At any one input alone, the noise is at least the largest move times the multiplier."""
    found = background.pivot(0.3, points=41)
    C = background.PRIOR.cloaking_matrix(found.inputs[:, None], found.X)
    least = exact_noise_multiplier(background.EPSILON, background.DELTA) * np.abs(C).max(axis=1)
    assert (background.noise_by_input(found) >= least * (1 - 1e-6)).all()


def test_the_command_says_so_and_draws_both_figures(tmp_path, capsys):
    background.Background(**background.Background.small).run(output_dir=tmp_path)
    said = capsys.readouterr().out.replace("\n", " ")
    assert "not private as stated" in said
    assert "7.07 times" in said
    for number in (1, 2):
        assert (tmp_path / f"background-figure-{number}.png").stat().st_size > 20_000

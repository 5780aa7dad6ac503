"""Section 2 of the 2018 paper, and its figures 1 and 2."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp.models.rkhs import rkhs_sensitivity
from cloakgp.privacy.accounting import exact_noise_multiplier, gaussian_delta
from experiments import functional, kung, kung2018


@pytest.fixture(scope="module")
def sds(women):
    return functional.sds_by_age(women)


@pytest.mark.data
def test_the_papers_scale_and_what_it_is_worth(women):
    X = women[["age"]].to_numpy(dtype=float)
    papers = functional.papers_noise(kung2018.prior_for(X), X, epsilon=functional.PAPERS_EPSILON)
    assert papers.sd == pytest.approx(functional.PAPERS_SCALE, abs=0.005)
    assert papers.tight_delta == pytest.approx(1.0, abs=1e-5)
    # The noise is so much too large for its sensitivity that it is private after all.
    assert papers.true_epsilon == pytest.approx(4.97, abs=0.01)
    assert gaussian_delta(papers.mu, papers.true_epsilon) <= 0.01
    at_100 = functional.papers_noise(kung2018.prior_for(X), X, epsilon=100.0)
    assert at_100.sd == pytest.approx(papers.sd / 2)


@pytest.mark.data
def test_sds_by_age(women, sds):
    X = women[["age"]].to_numpy(dtype=float)
    prior, ages = kung2018.prior_for(X), functional.AGES
    papers, full, projected = (
        sds[name] for name in ("function, papers'", "function, exact, G in full", "function, exact")
    )
    closed = 100.0 * rkhs_sensitivity(prior, X) * exact_noise_multiplier(1.0, 0.01) * kung2018.UNIT
    assert full == pytest.approx(closed)
    assert (projected <= full * (1 + 1e-9)).all()
    within = (ages >= X.min()) & (ages <= X.max())
    assert projected[within] == pytest.approx(full[within], rel=1e-4)
    assert projected[-1] < 0.7 * full[-1]
    # b(K⁻¹) and the papers' constant, one after the other.
    assert papers / full == pytest.approx(8.787 * 3.2552 / 1.8779, rel=1e-3)
    cloaked = sds["cloaking, trace, exact"][within]
    assert cloaked.max() < 0.5 * projected[within].min()
    for one in ("function, exact", "bayes"):
        posterior = sds[f"posterior, {one}"]
        assert (posterior <= kung2018.UNIT * (1 + 1e-9)).all()
        assert (posterior >= sds["posterior, no privacy"] * (1 - 1e-6)).all()
    assert (sds["posterior, bayes"] < sds["posterior, function, exact"])[within].all()


@pytest.mark.data
def test_releases_in_full_have_the_kernels_noise_everywhere(women, monkeypatch):
    """Public and private part together vary alike at all ages, and are of the papers' size."""
    monkeypatch.setattr(functional, "DRAWN_RELEASES", 60)
    curve = functional.function_curve(women, epsilon=1.0, in_full=True)
    noise = (curve.releases - curve.mean) / curve.noise_sd
    assert np.ptp(curve.noise_sd) < 1e-9 * curve.noise_sd.max()
    spread = noise[:, ::34].std(axis=0)
    assert np.abs(spread - 1.0).max() < 5 / np.sqrt(2 * 60)


def test_the_noise_of_figure_2_encloses_every_move():
    C = functional.TOY_PRIOR.cloaking_matrix(functional.TOY_QUERY, functional.TOY_X)
    assert (np.sign(C) == [[1, -1], [-1, 1]]).all()
    function, cloaking = functional.two_points_noise().values()
    for covariance in (function, cloaking):
        lengths = [column @ np.linalg.solve(covariance, column) for column in C.T]
        assert max(lengths) <= 1.0 + 1e-9
    assert max(lengths) == pytest.approx(1.0, rel=1e-3)
    assert np.linalg.det(cloaking) < 0.7 * np.linalg.det(function)
    assert function[0, 1] > 0 > cloaking[0, 1]


@pytest.mark.slow
@pytest.mark.data
def test_the_command_writes_its_figures(women, tmp_path, capsys):
    functional.Functional().run(output_dir=tmp_path)
    said = capsys.readouterr().out.replace("\n", " ")
    assert "28.53 cm (published: 28.53)" in said
    assert "8.79 times" in said
    assert "no privacy at all" in said
    for number in (1, 2):
        assert (tmp_path / f"functional-figure-{number}.png").stat().st_size > 20_000
    assert len(women) == 287
    assert kung.BUDGET.bounds.width == 100.0

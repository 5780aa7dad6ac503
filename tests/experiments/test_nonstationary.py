"""Table 1's third column and figures 3B, 3D and 5C of the 2021 paper; row noises."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from experiments import __main__ as command_line
from experiments import kung, nonstationary
from experiments.cloaking import PAPERS_NOISE, TRACE_NOISE, Cloaked, noise_sd
from experiments.cross_validation import Protocol, cross_validate

SEED = 20210301


@pytest.fixture
def few(rng):
    """Synthetic women: heights grow with age, and some are old."""
    age = np.concatenate([rng.uniform(0.0, 45.0, size=26), rng.uniform(45.0, 90.0, size=4)])
    age = rng.permutation(age)
    height = 70.0 + 85.0 * np.minimum(age / 18.0, 1.0) + rng.normal(scale=6.0, size=len(age))
    return pd.DataFrame({"age": age, "weight": height / 3.5, "height": height, "male": 0})


def test_the_prior_is_the_papers_but_for_the_lengthscale(few):
    setting = nonstationary.NONSTATIONARY[0]
    X = setting.rows(few)
    prior, standard = setting.prior_for(X), kung.TABLE_1[0].prior_for(X)
    assert prior.noise_variance == standard.noise_variance
    assert prior.mean == standard.mean
    np.testing.assert_allclose(prior.kernel.diag(X), standard.kernel.diag(X))
    far = np.array([[1e4], [1e4 + 30.0]])
    expected = kung.SIGNAL_VARIANCE * np.exp(-(30.0**2) / (2 * setting.longest**2))
    np.testing.assert_allclose(prior.kernel(far)[0, 1], expected)


def test_lengthscales_are_amended_to_be_longer_and_never_the_longest(few):
    found = nonstationary.lengthscales_by_age(few)
    assert (found.amended >= found.plain).all()
    assert (found.amended > 1.02 * found.plain).any()
    assert found.amended.max() <= nonstationary.NONSTATIONARY[0].longest
    figure = nonstationary.lengthscale_figure(found, X=few["age"].to_numpy(), title="toy")
    (axes,) = figure.axes
    np.testing.assert_array_equal(axes.lines[0].get_ydata(), found.amended)
    np.testing.assert_array_equal(axes.lines[1].get_ydata(), found.plain)


def test_tables_hold_what_was_computed(few):
    protocol = Protocol(folds=2, draws=5, insecure_seed=SEED)
    found = nonstationary.third_column(few, protocol=protocol)
    posterior = nonstationary.bayes_rows(few, protocol=protocol)
    table = nonstationary.third_column_report(found, posterior, title="toy")
    names, age = (list(table.columns[number].cells) for number in (0, 1))
    by_name = dict(zip(names[:-2], age[:-2], strict=True))
    assert age[0] == "12.8 ± 2.0"
    assert age[-2] == "8.6 ± 2.2"
    for name, errors in (
        (PAPERS_NOISE.name, found["1d"].raw[PAPERS_NOISE.name]),
        (TRACE_NOISE.name, found["1d"].raw[TRACE_NOISE.name]),
        ("bayes, this prior", posterior["1d"]["bayes, this prior"]),
    ):
        assert by_name[name].startswith(f"{errors.mean:.2f} ± {errors.fold_sd:.1f} (se ")
    assert age[-1] == f"{found['1d'].no_privacy.mean:.2f} ± {found['1d'].no_privacy.fold_sd:.1f}"
    assert len({len(cells) for cells in (names, age, list(table.columns[2].cells))}) == 1


def test_row_noises_lower_the_error_that_the_prior_expects(few):
    protocol = Protocol(folds=2, draws=2, insecure_seed=SEED)
    found = nonstationary.row_noises(few, protocol=protocol, steps=2)
    for one in found.values():
        declared, shared, by_row = one.expected.values()
        assert by_row < shared < declared
        assert one.largest > 1.0
        assert all(errors.by_fold.shape == (2, 2) for errors in one.raw.values())
    table = nonstationary.row_noise_report(found, title="toy")
    assert list(table.columns[2].cells)[-2] == f"{found['2d'].expected[nonstationary.BY_ROW]:.2f}"


@pytest.mark.data
@pytest.mark.parametrize("setting", nonstationary.NONSTATIONARY, ids=lambda one: one.inputs)
def test_without_privacy_the_errors_are_near_the_papers(women, setting):
    """The constants were chosen for this; it guards them."""
    found = cross_validate(
        setting.rows(women),
        kung.heights(women),
        prior_for=setting.prior_for,
        noises=(),
        budget=kung.BUDGET,
        protocol=Protocol(),
    ).no_privacy
    published = nonstationary.PUBLISHED_NO_PRIVACY[setting.inputs]
    assert found.mean == pytest.approx(published.mean, abs=0.6)
    assert found.fold_sd == pytest.approx(published.sd, abs=1.0)


@pytest.mark.data
@pytest.mark.slow
def test_with_the_papers_noise_the_errors_are_near_the_papers(women):
    found = nonstationary.third_column(women, protocol=Protocol(draws=20, insecure_seed=SEED))
    for inputs, one in found.items():
        published = nonstationary.PUBLISHED_PRIVATE[inputs]
        assert one.raw[PAPERS_NOISE.name].mean == pytest.approx(published.mean, abs=1.5)


def test_the_expected_privacy_noise_is_that_of_a_release(few):
    """The noise that the row noises are chosen for is the one that is added."""
    setting = nonstationary.STANDARD[1]
    X, X_query = setting.rows(few), setting.rows(few)[:5] + 1.0
    prior = setting.prior_for(X)
    before = nonstationary.chosen_row_noise(prior, X, X_query, shared=True, steps=1).before
    cloaked = Cloaked.designed(X, X_query, prior=prior, noise=TRACE_NOISE)
    release = cloaked.released(kung.heights(few), budget=kung.BUDGET, insecure_seed=SEED)
    assert before.privacy == pytest.approx(np.sum(noise_sd(release) ** 2), rel=3e-3)


@pytest.mark.data
def test_row_noises_help_from_age_and_weight(women):
    """The first fold of table 1's standard column: what the prior expects, and what is found."""
    setting = nonstationary.STANDARD[1]
    X = setting.rows(women)
    train, held_out = next(Protocol().splits(len(X)))
    prior = setting.prior_for(X[train])
    by_row = nonstationary.chosen_row_noise(prior, X[train], X[held_out], shared=False, steps=4)
    assert by_row.expected.total < by_row.before.total
    assert by_row.expected.privacy < 0.8 * by_row.before.privacy
    # Rows far from the others are believed less than the rest.
    apart = np.linalg.norm(X[train][:, None] - X[train], axis=2)
    loneliness = np.sort(apart, axis=1)[:, 10]
    raised = by_row.variance > np.quantile(by_row.variance, 0.95)
    assert loneliness[raised].mean() > 1.2 * loneliness[~raised].mean()


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.usefixtures("women")
def test_the_command_prints_its_tables_and_writes_its_figures(tmp_path):
    arguments = ["nonstationary", "--fast", "--output-dir", str(tmp_path)]
    done = CliRunner().invoke(command_line.app, arguments)
    assert done.exit_code == 0, done.output
    for number in ("3b", "3d", "5c"):
        assert (tmp_path / f"nonstationary-figure-{number}.png").stat().st_size > 20_000

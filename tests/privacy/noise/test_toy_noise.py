"""A new noise is one class and one entry of the registry; all else takes it from there."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cloakgp import (
    DPGPClassifier,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    Guarantee,
    Release,
    ReleaseFileError,
    extend,
    refine,
)
from cloakgp.data import ArrayRows
from cloakgp.plots import display_of
from cloakgp.privacy.filters import Amount, costs_of_guarantee, costs_of_release
from cloakgp.privacy.noise import NOISES
from cloakgp.privacy.noise.laplace import LaplaceNoise
from cloakgp.privacy.noise.pure import PureNoise
from cloakgp.release.open import load
from cloakgp.report.describe import describe

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")
NAME = "doubled"
WORDS = "twice as much Laplace"
BUDGET = {"epsilon": 2.0, "delta": 0.0, "noise": NAME, "insecure_seed": 3}
STAGES = [(0.4, None), (0.6, 1.0)]
X = np.linspace(0.0, 10.0, 60)[:, None]
Y = np.sin(X[:, 0])
WHO = [f"p{row // 2}" for row in range(60)]
MANY = np.linspace(0.0, 10.0, 3000)[:, None]


class DoubledNoise(LaplaceNoise):
    """Discrete Laplace noise of twice the scale that ε needs; it states that it is ε-DP."""

    name = NAME
    law = WORDS
    sd_at_one = 2.0 * math.sqrt(2.0)
    part = PureNoise.part
    keeps = PureNoise.keeps

    def scale(self, sensitivity, **settings):
        scale, guarantee = super().scale(sensitivity, **settings)
        return 2.0 * scale, guarantee


@pytest.fixture(autouse=True)
def doubled(monkeypatch):
    noise = DoubledNoise()
    monkeypatch.setitem(NOISES, noise.name, noise)
    return noise


def numbers(**settings):
    return DPGPRegressor(**{"bounds": (-2, 2), **BUDGET, **settings})


def classes(labels=2, **settings):
    return DPGPClassifier(classes=list(range(labels)), **{**BUDGET, **settings})


def labels_of(inputs, count):
    return np.minimum((inputs[:, 0] / 10 * count).astype(int), count - 1)


def several_outputs():
    model = DPGPMultiOutputRegressor(bounds=[(-2, 2)] * 2, interval=False, **BUDGET)
    return model.fit(X, np.column_stack([Y, -Y]))


FITS = {
    "one stage": lambda: numbers(stages=None, learn=None).fit(X, Y),
    "stages": lambda: numbers(stages=STAGES, learn=None).fit(X, Y),
    "spread": lambda: numbers(epsilon=40.0).fit(X, Y),
    "interval": lambda: numbers(bounds=(-1000, 1000), epsilon=300.0).fit(X, Y),
    "groups": lambda: numbers().fit(X, Y, groups=WHO),
    "trace": lambda: numbers(criterion="trace").fit(X, Y),
    "rows": lambda: numbers(inducing=8).fit_rows(ArrayRows(MANY, np.sin(MANY[:, 0]))),
    "rows in stages": lambda: numbers(inducing=8, stages=STAGES).fit_rows(
        ArrayRows(MANY, np.sin(MANY[:, 0]))
    ),
    "rows of classes": lambda: classes(inducing=8).fit_rows(ArrayRows(MANY, labels_of(MANY, 2))),
    "two classes": lambda: classes().fit(X, labels_of(X, 2)),
    "three classes": lambda: classes(3).fit(X, labels_of(X, 3)),
    "several outputs": several_outputs,
}


def measurements_of(release):
    return getattr(release, "entries", release).measurements


@pytest.mark.usefixtures("few_learning_cells")
@pytest.mark.parametrize("kind", FITS)
def test_it_is_fitted_saved_loaded_described_drawn_and_verified(kind, tmp_path):
    model = FITS[kind]()
    release = model.release_
    measurements = measurements_of(release)
    for one in measurements:
        assert one.answers.noise == NAME
        assert one.noise.keeps(one.guarantee, sensitivity_over_noise=one.sensitivity_over_noise)
        assert not one.noise.keeps(
            one.guarantee, sensitivity_over_noise=1.001 * one.sensitivity_over_noise
        )
        assert one.guarantee.pure
        assert not one.guarantee.laplace
    # ε adds up over all that was drawn, and no δ is spent.
    spent = math.fsum(part for one in measurements for part in one.guarantee.pure)
    assert release.guarantee.pure_epsilon == pytest.approx(spent)
    assert spent <= model.get_params()["epsilon"] * (1 + 1e-12)
    release.save(tmp_path / "toy.cloak")
    loaded = load(tmp_path / "toy.cloak")
    inputs = X[:5]
    np.testing.assert_array_equal(loaded.predict(inputs), release.predict(inputs))
    texts = [fact.text for section in describe(loaded) for fact in section.facts]
    assert any(WORDS in text for text in texts)
    assert any("no δ" in text for text in texts)
    if kind != "several outputs":
        assert display_of(loaded).draw().axes


def test_stages_the_spread_and_a_search_are_asked_with_it():
    kinds = {name: measurements_of(FITS[name]().release_) for name in ("spread", "interval")}
    assert any(one.about_spread for one in kinds["spread"])
    assert len(kinds["interval"]) > 3


def test_it_is_drawn_with_twice_the_scale():
    ours, laplace = (
        numbers(stages=None, learn=None, noise=noise, interval=False).fit(X, Y).release_
        for noise in (NAME, "laplace")
    )
    sds = [one.measurements[0].noise_sd for one in (ours, laplace)]
    lengths = [
        one.measurements[0].strategy.longest_column(NOISES["laplace"]) for one in (ours, laplace)
    ]
    assert sds[0] / lengths[0] == pytest.approx(2 * sds[1] / lengths[1], rel=1e-9)


def test_later_visits_take_it_and_add_up():
    first = numbers(stages=None, learn=None).fit(X, Y).release_
    later = {"epsilon": 0.5, "delta": 0.0, "noise": NAME, "insecure_seed": 9}
    both = extend(refine(first, Y, **later), X + 1, Y, **later)
    assert both.guarantee.pure_epsilon == pytest.approx(3.0)
    mixed = refine(first, Y, epsilon=0.5, delta=1e-4, noise="gaussian", insecure_seed=9)
    assert mixed.guarantee.delta_at(mixed.guarantee.epsilon) <= mixed.guarantee.delta


def test_the_best_by_forecast_is_chosen_among_all():
    """Twice the noise is never the best."""
    assert numbers(noise="auto").fit(X, Y).release_.measurements[0].answers.noise == "laplace"


def test_accounts_know_of_it_that_it_is_pure_and_no_more(doubled):
    [cost] = costs_of_release(1.0, 0.0, noise=NAME)
    assert cost == Amount.of(doubled.cost(1.0, 0.0))
    assert cost.pure
    assert not cost.laplace
    [part] = costs_of_guarantee(doubled.whole(1.0, 0.0))
    assert Amount.of(part) == cost
    # A coin that shows the truth with odds e^ε, which tells more than Laplace noise.
    coin = doubled.whole(1.0, 0.0)
    laplace = Guarantee(epsilon=1.0, delta=0.0, mu=0.0, laplace=(1.0,))
    assert coin.delta_at(0.5) > laplace.delta_at(0.5)
    assert coin.delta_at(0.5) >= -math.expm1(-0.5) * math.e / (1 + math.e)


def test_it_is_drawn_from_the_operating_system_too():
    assert not numbers(insecure_seed=None).fit(X, Y).release_.insecure


def test_files_with_it_are_refused_where_it_is_not_known(tmp_path, monkeypatch):
    FITS["one stage"]().release_.save(tmp_path / "toy.cloak")
    monkeypatch.delitem(NOISES, NAME)
    with pytest.raises(ReleaseFileError):
        Release.load(tmp_path / "toy.cloak")

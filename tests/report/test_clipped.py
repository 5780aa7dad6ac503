"""What a release says of values outside of bands: as far as answers tell, and no further."""

from __future__ import annotations

import re

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.release.bands import RowBands
from cloakgp.report.clipped import band_facts
from cloakgp.report.describe import describe

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

RNG = np.random.default_rng(4)
X = np.column_stack([RNG.uniform(0, 10, 900), RNG.random(900) < 0.1])
# One row in ten lies eight sds of the scatter higher.
CURVE = np.sin(X[:, 0]) + 8.0 * X[:, 1]
Y = CURVE + RNG.normal(size=900)


def fitted(rows=900, *, passes=False, **changes):
    chosen = {"bounds": (-25, 25), "epsilon": 3.0, "inducing": 15, "gap": 0.1, "insecure_seed": 1}
    model = DPGPRegressor(**chosen | changes)
    if passes:
        return model.fit_rows(ArrayRows(X[:rows], Y[:rows], jobs=1)).release_
    return model.fit(X[:rows], Y[:rows]).release_


@pytest.mark.parametrize("passes", [False, True])
def test_scatter_by_groups_is_told_with_its_place(passes):
    release = fitted(passes=passes, stages=[(0.3, None), (0.7, 1.5)] if passes else "auto")
    assert any(isinstance(one.question, RowBands) for one in release.measurements) == passes
    [fact] = band_facts(release)
    [asked] = [one for one in release.measurements if one.about_scatter]
    found = re.search(
        r"in (\d) groups .* an sd of ([\d.]+), and of ([\d.]+) to ([\d.]+)",
        fact.text,
    ).groups()
    centres = asked.question.centres
    noise = np.sqrt(release.fitted_prior.observation_noise(centres))
    assert (int(found[0]), float(found[1])) == (len(centres), float(f"{noise.max():.3g}"))
    assert float(found[2]) == float(f"{noise.min():.3g}")
    assert any(fact in section.facts for section in describe(release))
    [forgotten] = band_facts(release.without_learning())
    assert forgotten.text.endswith("Where values scatter most is not told of this release.")


def test_nothing_is_told_where_nothing_was_asked():
    [few] = band_facts(fitted(rows=120))
    assert few.text.endswith("was not asked: too few rows, or too small a budget.")
    [declared] = band_facts(fitted(rows=120, noise_variance=1.0))
    assert declared.text.endswith("was not asked.")
    assert band_facts(fitted(rows=120, stages=None)) == ()


def test_a_small_group_that_lies_apart_is_not_lost():
    """Its curve comes out within a sd of the scatter, and intervals of 95 % hold its values."""
    release, group = fitted(), X[:, 1] > 0
    error = np.sqrt(np.mean(np.square(release.predict(X) - CURVE)[group]))
    lower, upper = release.predict_interval(X, 0.95)
    new = CURVE + np.random.default_rng(5).normal(size=900)
    assert error < 1.0
    assert np.mean((lower <= new) & (new <= upper), where=group) > 0.9

"""What a release says of values outside of bands: as far as answers tell, and no further."""

from __future__ import annotations

import re
from types import SimpleNamespace

import numpy as np
import pytest

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.privacy import Answers
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.release.bands import RowBands
from cloakgp.report.clipped import band_facts, most_are_alike, name_common_values
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


@pytest.mark.parametrize(
    ("at_ends", "said", "alike"),
    [
        ((60.0, 0.0), "seem to be the same: 0 (about 60 %", "seem to be the same"),
        ((46.0, 1.0), "may be the same: 0 (about 46 %", "may be the same"),
        ((30.0, 25.0), "seem to be one of these: 0 (about 30 %", "seem to be one of a few"),
        ((24.0, 23.0), "may be one of these: 0 (about 24 %", "may be one of a few"),
        # A value that is not told adds nothing to what is.
        ((46.0, 8.0), "may be the same: 0 (about 46 %", "may be the same"),
        ((30.0, 0.0), "", ""),
    ],
)
def test_what_most_values_are_said_to_be_agrees_with_the_shares_that_are_told(at_ends, said, alike):
    """Most "seem to be the same" was said of two values, and of shares below one half."""
    edges = np.array([0.0, 2.0**-44, 0.5, 1 - 2.0**-44, 1.0])
    low, high = at_ends
    others = (100.0 - low - high) / 2
    answers = Answers(np.array([[low, others, others, high]]), noise_sd=5.0, guarantee=None)
    counted = SimpleNamespace(
        question=CountQuestion(edges), answers=answers, strategy=SimpleNamespace(totals=[100.0])
    )
    told = name_common_values([counted], tell=lambda value: f"{value:g}")
    assert told.startswith(said)
    assert bool(told) == bool(said)
    assert most_are_alike([counted]) == alike
    shares = [float(share) for share in re.findall(r"about (\d+) %", told)]
    if told:
        assert (sum(shares) >= 50) == told.startswith("seem")
        assert (len(shares) > 1) == ("one of these" in told)

"""Plans of whole rows: what they state of questions is what is asked."""

import json
import re

import numpy as np
import pytest

from cloakgp import DPGPClassifierPrivateInputs, DPGPRegressorPrivateInputs
from cloakgp.report.guarantee import guarantee_facts

BUDGET = {"epsilon": 1.5, "delta": 1e-5}


def regressor(**changes):
    given = {"input_bounds": [(0, 1), (0, 5)], "bounds": (0, 10), **BUDGET, **changes}
    return DPGPRegressorPrivateInputs(**given)


def classifier(**changes):
    given = {"input_bounds": [(0, 1)], "classes": ["a", "b", "c"], **BUDGET, **changes}
    return DPGPClassifierPrivateInputs(**given)


@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("make", [regressor, classifier])
def test_questions_and_noise_are_those_of_the_release(make, neighbours):
    rng = np.random.default_rng(0)
    model = make(neighbours=neighbours)
    X = rng.uniform(size=(300, len(model.input_bounds)))
    y = rng.choice(["a", "b", "c"], size=300) if make is classifier else 10 * X[:, 0]
    plan, release = model.plan(300), model.fit(X, y).release_
    assert [each.numbers for each in plan.questions] == [
        part.guarantee.answers for part in release.parts
    ]
    shares = [part.guarantee.mu**2 / release.guarantee.mu**2 for part in release.parts]
    np.testing.assert_allclose([each.share for each in plan.questions], shares, rtol=1e-3)
    assert plan.features == release.basis.count
    assert plan.guarantee.mu == pytest.approx(release.guarantee.mu, rel=1e-4)

    stated = [
        [
            float(number)
            for number in re.findall(r"\d+(?:\.\d+)?", each.noise.replace("at most 1", ""))
        ]
        for each in plan.questions
    ]
    counts, statistics = release.counts, release.statistics
    half_width = (statistics.bounds[1] - statistics.bounds[0]) / 2
    drawn = [
        [counts.sd_of(0), counts.sd_of(-1)],
        [statistics.gram_sd, statistics.moment_sd / half_width],
        *([part.noise_sd] for part in release.residuals),
    ]
    for told, real in zip(stated, drawn, strict=True):
        assert told == pytest.approx(real, rel=6e-3)


def test_nothing_is_spent_and_no_row_is_needed():
    plan = regressor().plan(1000, epsilons=[0.5, 4.0])
    assert [each.epsilon for each in plan.forecasts] == [0.5, 1.5, 4.0]
    assert plan.forecast is plan.forecasts[1]
    assert [line[0] for line in plan.budgets()[1:]] == ["0.5", "1.5", "4"]
    told = json.loads(json.dumps(plan.to_dict()))
    assert told["forecasts"][1]["error"] == plan.forecast.error
    assert told["questions"][0]["share"] == 0.26


def test_what_it_says_of_protection():
    words = str(regressor().plan(1000))
    assert "how many rows there are" in words
    assert "is there at all" not in words
    words = str(regressor(neighbours="add-remove").plan(1000))
    assert "how many rows there are" not in words
    assert "is there at all" in words
    assert "<b>" not in regressor().plan(5)._repr_html_()
    # The share of right guesses is that of the release.
    release = regressor().fit(np.random.default_rng(1).uniform(size=(50, 2)), np.ones(50)).release_
    facts = " ".join(
        fact.text for fact in guarantee_facts(release.guarantee, output="row", parts=[])
    )
    [share] = re.findall(r"at most ([\d.]+) %", words)
    assert f"{share} %" in facts


@pytest.mark.parametrize(
    ("model", "rows", "complaint"),
    [
        (regressor(), 0, "rows"),
        (regressor(), 2.5, "rows"),
        (regressor(epsilon=0), 10, "epsilon"),
        (regressor(delta=1.0), 10, "delta"),
        (regressor(bounds=(1, 0)), 10, "bound"),
        (regressor(neighbours="friends"), 10, "neighbours"),
        (regressor(input_bounds=(0, 1)), 10, "pairs"),
        (regressor(n_features=0), 10, "n_features"),
        (classifier(classes=["a"]), 10, "two are needed"),
    ],
)
def test_bad_settings(model, rows, complaint):
    with pytest.raises(ValueError, match=complaint):
        model.plan(rows)


def test_one_pair_for_all_inputs_and_a_declared_kernel():
    from sklearn.gaussian_process.kernels import RBF

    assert regressor(input_bounds=(0, 1)).plan(10, n_inputs=4).inputs == 4
    with pytest.raises(ValueError, match="declared kernel"):
        regressor(kernel=RBF()).plan(10)

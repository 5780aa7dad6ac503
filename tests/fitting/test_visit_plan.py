"""Plans of later visits: the visit's own sds where nothing is learned, and its cost."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPClassifier, DPGPRegressor, extend, refine
from cloakgp.fitting.visit_plan import plan_visit
from cloakgp.fitting.visits import protects_persons
from cloakgp.privacy.accounting import compose
from cloakgp.privacy.guesses import right_guess
from cloakgp.report.worth import middle_of
from cloakgp.utils.formatting import amount

X = np.linspace(0, 10, 24)[:, None]
Y = np.sin(X[:, 0])
DECLARED = {"bounds": (-2, 2), "learn": None, "stages": None, "interval": False}


def first(**changed):
    model = DPGPRegressor(**DECLARED | {"epsilon": 1.0, "noise": "laplace"} | changed)
    return model.fit(X, Y).release_


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_error_after_is_that_of_the_visit(noise):
    """Where nothing is learned, and bands are as wide as the bounds, answers change no sd."""
    known = first()
    visit = {"epsilon": 0.7, "delta": 1e-4, "noise": noise, "band": None}
    plan = plan_visit(known, X + 3, new_rows=True, rows=24, grouped=False, **visit)
    made = extend(known, X + 3, Y, **visit)
    sds = [each.predict_latent(X + 3).sd for each in (known, made)]
    np.testing.assert_allclose(
        [plan.before, plan.after], [np.sqrt(np.mean(each**2)) for each in sds], rtol=1e-6
    )
    again = plan_visit(known, None, new_rows=False, rows=24, grouped=False, **visit)
    made = refine(known, Y, **visit)
    np.testing.assert_allclose(
        again.after, np.sqrt(np.mean(made.predict_latent(X).sd ** 2)), rtol=1e-6
    )


def test_what_both_cost_is_no_less_than_what_is_stated_then():
    """Of a noise that is chosen later, the one that tells most."""
    known = first(epsilon=0.5, delta=1e-5, noise="gaussian")
    visit = {"epsilon": 0.5, "delta": 1e-5}
    plan = plan_visit(known, X, new_rows=True, rows=24, grouped=False, **visit)
    assert len(plan.together) == 2
    for noise in ("laplace", "gaussian"):
        made = extend(known, X, Y, **visit, noise=noise)
        assert right_guess(made.guarantee) <= plan.guess + 1e-12
        assert any(made.guarantee.epsilon == pytest.approx(each.epsilon) for each in plan.together)
    told = dict(plan.facts())["protected"]
    assert "only a limit that was declared beforehand holds" in told


def test_without_delta_prices_may_be_chosen_late_and_nothing_else_is_said():
    plan = plan_visit(first(), None, new_rows=False, rows=24, grouped=False, epsilon=0.5)
    assert "declared beforehand" not in dict(plan.facts())["protected"]


def test_people_of_no_other_table_pay_for_one():
    known = first()
    plan = plan_visit(
        known, X + 1, new_rows=True, rows=24, grouped=False, people="disjoint", epsilon=0.3
    )
    made = extend(known, X + 1, Y, epsilon=0.3, people="disjoint", noise="laplace")
    assert plan.guess == pytest.approx(right_guess(made.guarantee))
    together = compose(known.guarantee, plan.together[-1])
    assert plan.guess < right_guess(together)


def test_persons_stay_protected_together():
    owners = np.repeat(np.arange(12), 2)
    model = DPGPRegressor(**DECLARED, epsilon=1.0, noise="laplace")
    known = model.fit(X, Y, groups=owners).release_
    alone = plan_visit(first(), None, new_rows=False, rows=24, grouped=False, epsilon=0.5)
    plan = plan_visit(
        known, None, new_rows=False, rows=24, grouped=protects_persons(known), epsilon=0.5
    )
    # Two rows need twice the noise.
    assert plan.after > alone.after
    assert "all values of one person" in dict(plan.facts())["protected"]


def test_classes_have_no_forecast():
    model = DPGPClassifier(classes=["no", "yes"], epsilon=1.0, learn=None)
    known = model.fit(X, np.where(Y > 0, "yes", "no")).release_
    plan = plan_visit(known, None, new_rows=False, rows=24, grouped=False, epsilon=0.5)
    assert plan.after is None
    told = dict(plan.facts())["expected error"]
    assert told.startswith("cannot be forecast: ")
    assert "not of classes" in told


@pytest.mark.parametrize(
    ("transform", "bounds", "said"),
    [
        (None, (-2, 2), "the predicted average of people"),
        (
            "log",
            (0.1, 3),
            "of the logarithm (0.1 is a factor of 1.1 either way): the predicted med",
        ),
        ("logit", (0.01, 0.99), "of the log odds: the predicted median of people"),
    ],
)
def test_what_is_predicted_and_its_scale_are_those_of_the_release(transform, bounds, said):
    """What is called a median by the release that follows is called so by its plan."""
    known = first(bounds=bounds, output_transform=transform)
    visit = {"epsilon": 0.7, "noise": "laplace", "band": None}
    plan = plan_visit(known, X + 3, new_rows=True, rows=24, grouped=False, **visit)
    told = dict(plan.facts())["expected error"]
    assert told.startswith(said)
    middle = middle_of(extend(known, X + 3, Y, **visit))
    assert f"the predicted {middle} of people" in told
    sd = np.sqrt(np.mean(known.predict_latent(X + 3).sd ** 2))
    assert f"off by {amount(float(sd), 3)} at the new rows now" in told

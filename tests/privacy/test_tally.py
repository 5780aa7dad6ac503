"""A call that is interrupted says what it had spent: by what was drawn, and nothing of outputs."""

from __future__ import annotations

import numpy as np
import pytest

from cloakgp import DPGPRegressor, extend, refine
from cloakgp.data import ArrayRows
from cloakgp.privacy import sampler
from cloakgp.privacy.spending import Cost, spend
from cloakgp.privacy.tally import describe_spent, tallied

pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

X = np.linspace(0, 10, 30)[:, None]
Y = np.random.default_rng(8).uniform(-1, 1, size=30)
SETTINGS = {"bounds": (-1.0, 1.0), "epsilon": 1.0, "gap": 0.1, "learn": None}
FIRST = {"interval": False, "stages": None}


def model(**settings):
    return DPGPRegressor(**{**SETTINGS, **settings})


def passes(**settings):
    return model(inducing=5, **settings).fit_rows(ArrayRows(X, Y, jobs=1))


def again(visit, **settings):
    known = model(**settings).fit(X, Y).release_
    budget = {"epsilon": 0.5, "delta": settings.get("delta", 0.0), "gap": 0.1}
    return lambda: visit(known, Y, **budget) if visit is refine else visit(known, X, Y, **budget)


CALLS = {
    "fit, Laplace": lambda: lambda: model().fit(X, Y),
    "fit, Gaussian": lambda: lambda: model(delta=1e-3, noise="gaussian").fit(X, Y),
    "passes, Laplace": lambda: lambda: passes(),
    "passes, Gaussian": lambda: lambda: passes(delta=1e-3, noise="gaussian"),
    "refine": lambda: again(refine, **FIRST),
    "extend": lambda: again(extend, delta=1e-3, noise="gaussian", **FIRST),
}


@pytest.fixture
def interrupted(monkeypatch):
    """Runs a call, interrupts it after so many draws, and returns the notes and what was drawn."""

    def run(call, *, after, error=KeyboardInterrupt):
        drawn = []

        def drawing(cost, draw):
            if after == 0:
                raise error
            published = spend(cost, draw)
            drawn.append(cost)
            if len(drawn) == after:
                raise error
            return published

        with monkeypatch.context() as patch:
            patch.setattr(sampler, "spend", drawing)
            with pytest.raises(error) as found:
                call()
        assert type(found.value) is error
        return getattr(found.value, "__notes__", []), drawn

    return run


@pytest.mark.parametrize("name", CALLS)
def test_an_interruption_says_what_was_spent(interrupted, name):
    call = CALLS[name]()
    notes, drawn = interrupted(call, after=1)
    assert notes == [
        f"Noise had been drawn before this: {describe_spent(drawn)} counts as spent, though "
        "nothing was returned."
    ]
    assert interrupted(call, after=0) == ([], [])
    text = notes[0]
    assert not any(f"{value:.4g}"[:6] in text for value in Y)


def test_all_draws_of_a_call_add_up(interrupted):
    counted = []
    with tallied() as drawn:
        release = model().fit(X, Y).release_
        counted += drawn
    assert len(counted) > 1
    notes, drawn = interrupted(lambda: model().fit(X, Y), after=len(counted))
    assert drawn == counted
    assert notes[0].startswith("Noise had been drawn before this: ε = 1, with no δ, counts")
    assert sum(cost.epsilon for cost in drawn) <= release.guarantee.epsilon * (1 + 1e-12)


def test_other_errors_say_it_too_and_only_once(interrupted):
    notes, _ = interrupted(CALLS["fit, Laplace"](), after=2, error=MemoryError)
    assert len(notes) == 1


def test_a_tally_around_a_call_has_its_draws_and_leaves_notes_to_whoever_keeps_it(interrupted):
    with tallied() as drawn:
        notes, made = interrupted(CALLS["refine"](), after=1)
        assert notes == []
    # Of the first release, and of the visit.
    assert drawn[-1:] == made
    assert len(drawn) == 2


@pytest.mark.parametrize(
    ("costs", "delta", "told"),
    [
        ([Cost("laplace", epsilon=0.1)] * 3, 0.0, "ε = 0.3, with no δ,"),
        ([Cost("gaussian", mu=0.3, answers=2)] * 4, 1e-5, "(ε, δ) = (2.45, 1e-05)"),
        (
            [Cost("gaussian", mu=0.3, answers=2, coarseness=1.0), Cost("laplace", epsilon=0.1)],
            1e-9,
            "Gaussian noise with μ = 0.3 and, with no δ, ε = 0.1",
        ),
    ],
)
def test_it_is_told_in_a_few_words(costs, delta, told):
    assert describe_spent(costs, delta=delta) == told


def test_both_kinds_of_noise_are_no_less_than_their_sum():
    """Nor more than basic composition of the two."""
    gaussian, pure = Cost("gaussian", mu=0.3, answers=1), Cost("laplace", epsilon=0.5)
    alone = float(describe_spent([gaussian], delta=1e-5).split("(")[2].split(",")[0])
    both = float(describe_spent([gaussian, pure], delta=1e-5).split("(")[2].split(",")[0])
    assert alone < both <= alone + 0.5 + 0.01

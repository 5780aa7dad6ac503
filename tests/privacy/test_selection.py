"""The private choice, over all neighbours, on the very integers and noise scale that it uses."""

import importlib
import itertools
import math
import pickle
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as with_settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct

from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.privacy import cross_validation as heldout
from cloakgp.privacy import sampler
from cloakgp.privacy.accounting import exact_noise_multiplier
from cloakgp.privacy.cross_validation import deal, held_out_errors
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.classes import Classes
from cloakgp.privacy.selection import Selection, error_band, error_of, score_sensitivity, select

# By its full name, since a package may re-export a function under the name of its module.
door = importlib.import_module("cloakgp.privacy.selection")

MECHANISMS = ("permute-and-flip", "exponential")
RELEASE = {"release_epsilon": 1.0, "release_delta": 0.01}


def flip_probabilities(scores, *, scale):
    """Permute-and-flip in closed form: p_r ∫ Π_{j≠r} (1 − t p_j) dt over [0, 1]."""
    heads = np.exp((scores - scores.max()) / scale)
    nodes, weights = np.polynomial.legendre.leggauss(len(scores))
    others = [
        np.prod([1 - (nodes + 1) / 2 * p for j, p in enumerate(heads) if j != r], axis=0)
        for r in range(len(scores))
    ]
    return np.array([p * float(weights @ rest) / 2 for p, rest in zip(heads, others, strict=True)])


def exponential_probabilities(scores, *, scale):
    weights = np.exp((scores - scores.max()) / scale)
    return weights / weights.sum()


PROBABILITIES = {
    "permute-and-flip": flip_probabilities,
    "exponential": exponential_probabilities,
}


def recorded(candidates, X, y, **settings):
    """Return (scores, scale, sensitivity) that reach the sampler."""
    seen = []

    def record(scores, *, scale, sensitivity, noise):  # noqa: ARG001
        seen.append((scores, scale, sensitivity))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "report_noisy_max", record)
        select(candidates, X, y, **settings)
    return seen[0]


def neighbours(y, bounds):
    """Every data set in which one output moved to either bound."""
    for row in range(len(y)):
        for end in bounds:
            if y[row] != end:
                moved = np.array(y, dtype=np.float64)
                moved[row] = end
                yield moved


def priors(*, mean=0.0, unit=1.0):
    """Candidates that differ in everything."""
    inducing = np.array([[0.0], [4.0]])
    return [
        ExactPrior(kernel=ConstantKernel(unit**2) * RBF(1.0), noise_variance=unit**2, mean=mean),
        ExactPrior(
            kernel=ConstantKernel(9 * unit**2) * RBF(0.3), noise_variance=0.01 * unit**2, mean=mean
        ),
        ExactPrior(
            kernel=ConstantKernel(unit**2) * DotProduct(), noise_variance=unit**2, mean=mean + unit
        ),
        SparsePrior(
            kernel=ConstantKernel(unit**2) * RBF(3.0),
            noise_variance=0.1 * unit**2,
            mean=mean,
            inducing=inducing,
        ),
    ]


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows = draw(st.integers(5, 9))
    X = rng.uniform(0, 5, size=(rows, 1))
    X[1] = X[0]
    offset = draw(st.sampled_from([0.0, -3.0, 1e6, -1e9]))
    width = 10.0 ** draw(st.integers(-2, 5))
    bounds = (offset, offset + width)
    y = rng.choice([bounds[0], bounds[1], offset + width / 3], size=rows)
    settings = {
        "epsilon": draw(st.sampled_from([0.1, 1.0, 5.0])),
        "folds": draw(st.integers(2, rows)),
        "release_epsilon": draw(st.sampled_from([0.3, 1.0, 50.0])),
        "release_delta": 0.01,
        "loss": draw(st.sampled_from(["squared", "absolute"])),
    } | draw(
        st.sampled_from(
            [
                {"predictions": "posterior", "criterion": "bayes"},
                {"predictions": "posterior", "criterion": "trace"},
                {"predictions": "raw", "criterion": "trace"},
                {"predictions": "raw", "criterion": "logdet"},
            ]
        )
    )
    return priors(mean=offset, unit=width / 4), X, y, bounds, settings


@given(problems())
def test_no_neighbour_moves_a_score_or_a_probability_too_far(problem):
    candidates, X, y, bounds, settings = problem
    settings["epsilon"] = float(settings["epsilon"])
    base, scale, sensitivity = recorded(candidates, X, y, bounds=bounds, **settings)
    assert 2 * sensitivity / scale <= settings["epsilon"]
    for other in neighbours(y, bounds):
        moved, other_scale, other_sensitivity = recorded(
            candidates, X, other, bounds=bounds, **settings
        )
        # What the noise is scaled with is public: it does not depend on y.
        assert (other_scale, other_sensitivity) == (scale, sensitivity)
        assert max(abs(int(a) - int(b)) for a, b in zip(base, moved, strict=True)) <= sensitivity
        for probabilities in PROBABILITIES.values():
            ratios = probabilities(base, scale=scale) / probabilities(moved, scale=scale)
            spent = np.abs(np.log(ratios)).max()
            assert spent <= settings["epsilon"] * (1 + 1e-9)


@st.composite
def label_problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rows, count = draw(st.integers(4, 6)), draw(st.sampled_from([2, 3, 4]))
    classes = Classes(tuple(range(count)))
    candidates = priors(unit=0.5)
    means = rng.uniform(-0.9, 0.9, size=(len(candidates), classes.channels))
    settings = {
        "classes": classes,
        "means": means.tolist(),
        "epsilon": draw(st.sampled_from([0.1, 1.0, 5.0])),
        "folds": draw(st.integers(2, rows)),
        "loss": draw(st.sampled_from(["squared", "absolute"])),
    }
    X = rng.uniform(0, 5, size=(rows, 1))
    return candidates, X, rng.integers(count, size=rows), settings | RELEASE


@with_settings(max_examples=12)
@given(label_problems())
def test_no_other_label_moves_a_score_or_a_probability_too_far(problem):
    candidates, X, y, settings = problem
    base, scale, sensitivity = recorded(candidates, X, y, **settings)
    assert 2 * sensitivity / scale <= settings["epsilon"]
    for row, label in itertools.product(range(len(y)), settings["classes"].labels):
        if label == y[row]:
            continue
        other = y.copy()
        other[row] = label
        moved, other_scale, other_sensitivity = recorded(candidates, X, other, **settings)
        assert (other_scale, other_sensitivity) == (scale, sensitivity)
        assert max(abs(int(a) - int(b)) for a, b in zip(base, moved, strict=True)) <= sensitivity
        for probabilities in PROBABILITIES.values():
            ratios = probabilities(base, scale=scale) / probabilities(moved, scale=scale)
            assert np.abs(np.log(ratios)).max() <= settings["epsilon"] * (1 + 1e-9)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
@pytest.mark.parametrize("count", [2, 3])
def test_the_sensitivity_to_a_label_is_attained(count, loss):
    """From all labels at the prior mean and little noise, another class moves it all the way."""
    X, y = np.linspace(0, 5, 7)[:, None], np.zeros(7, dtype=int)
    signs = [-1.0] if count == 2 else [1.0, -1.0, -1.0]
    settings = {
        "classes": Classes(tuple(range(count))),
        "means": [signs],
        "epsilon": 1.0,
        "folds": 7,
        "loss": loss,
        "release_epsilon": 1e4,
        "release_delta": 0.01,
    }
    candidate = priors(unit=0.5)[:1]
    base, _, sensitivity = recorded(candidate, X, y, **settings)
    moved = [recorded(candidate, X, np.eye(7, dtype=int)[row], **settings)[0] for row in range(7)]
    furthest = max(abs(int(base[0]) - int(each[0])) for each in moved)
    assert 0.9 < furthest / sensitivity <= 1.0


def test_either_bounds_or_classes_are_given():
    X, y = np.zeros((4, 1)), np.zeros(4)
    classes = Classes((0, 1))
    for wrong in ({}, {"bounds": (0, 1), "classes": classes}):
        with pytest.raises(ValueError, match="bounds for numbers, or classes"):
            select(priors(), X, y, epsilon=1.0, **wrong, **RELEASE)
    with pytest.raises(ValueError, match="a mean of each channel"):
        select(priors(), X, y, epsilon=1.0, classes=classes, means=[[0.0]], **RELEASE)


@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_the_sensitivity_is_attained(loss):
    """From all outputs at the prior mean, one that moves by d moves the error by d·‖column‖."""
    X = np.linspace(0, 5, 8)[:, None]
    bounds = (2.0, 6.0)
    y = np.full(8, bounds[0])
    settings = {
        "bounds": bounds,
        "epsilon": 1.0,
        "folds": 4,
        "release_epsilon": 1e4,
        "release_delta": 0.01,
        "loss": loss,
    }
    candidates = priors(mean=bounds[0])[:2]
    base, _, sensitivity = recorded(candidates, X, y, **settings)
    moves = [
        np.abs(recorded(candidates, X, other, **settings)[0] - base).max()
        for other in neighbours(y, bounds)
    ]
    assert 0.95 * sensitivity < max(moves) <= sensitivity


def test_a_halved_sensitivity_is_caught(monkeypatch):
    """Mutation: neighbours show that half the sensitivity is too little, for scores and for ε."""

    def halved(bands):
        step, sensitivity = score_sensitivity(bands)
        return step, sensitivity // 2

    monkeypatch.setattr(door, "score_sensitivity", halved)
    X = np.linspace(0, 5, 8)[:, None]
    bounds, epsilon = (0.0, 4.0), 40.0
    settings = {"bounds": bounds, "epsilon": epsilon, "folds": 4}
    # One candidate follows the outputs, one hardly does: they move against each other.
    candidates = [
        ExactPrior(kernel=RBF(2.0), noise_variance=1.0, mean=0.0),
        ExactPrior(kernel=ConstantKernel(1e-6) * RBF(2.0), noise_variance=1.0, mean=4.0),
    ]
    settings |= {"release_epsilon": 1e4, "release_delta": 0.01}
    y = np.zeros(8)
    base, scale, sensitivity = recorded(candidates, X, y, **settings)
    moves, losses = [], []
    for other in neighbours(y, bounds):
        moved = recorded(candidates, X, other, **settings)[0]
        moves.append(np.abs(moved - base).max())
        ratios = exponential_probabilities(base, scale=scale) / exponential_probabilities(
            moved, scale=scale
        )
        losses.append(np.abs(np.log(ratios)).max())
    assert max(moves) > sensitivity
    assert max(losses) > epsilon


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_draw_has_the_probabilities_that_the_theorems_speak_of(mechanism):
    scores = np.array([0, 5, -9, 12, 12, -40]) * 2**33
    scale, draws = 14.0 * 2**33, 4000
    noise = door.NOISE_OF[mechanism]
    drawn = [
        sampler.report_noisy_max(scores, scale=scale, sensitivity=7 * 2**33, noise=noise)
        for _ in range(draws)
    ]
    expected = PROBABILITIES[mechanism](scores, scale=scale)
    assert expected.sum() == pytest.approx(1.0)
    # One run in a hundred million fails by chance.
    observed = np.bincount(drawn, minlength=len(scores))
    assert stats.chisquare(observed, expected * draws).pvalue > 1e-8


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_seeded_draw_has_them_too(mechanism):
    scores = np.array([0, 5, -9, 12])
    noise = door.NOISE_OF[mechanism]
    drawn = [
        sampler.report_insecure_noisy_max(scores, scale=14.0, noise=noise, seed=seed)
        for seed in range(5000)
    ]
    expected = PROBABILITIES[mechanism](scores, scale=14.0)
    observed = np.bincount(drawn, minlength=len(scores))
    assert stats.chisquare(observed, expected * len(drawn)).pvalue > 1e-8


def test_permute_and_flip_errs_no_more_than_the_exponential_mechanism(rng):
    for _ in range(50):
        scores = rng.normal(scale=5.0, size=6)
        means = [float(p(scores, scale=2.0) @ scores) for p in PROBABILITIES.values()]
        assert means[0] >= means[1] - 1e-12


def test_openDPs_own_map_must_agree(monkeypatch):
    class Measurement:
        def map(self, distance):
            return float(distance)

        def __call__(self, _):
            raise AssertionError("nothing may be drawn")

    monkeypatch.setattr("opendp.prelude.m.make_noisy_max", lambda *_, **__: Measurement())
    for noise in ("exponential", "gumbel"):
        with pytest.raises(RuntimeError, match="nothing released"):
            sampler.report_noisy_max(np.array([1, 2]), scale=100.0, sensitivity=3, noise=noise)


@pytest.mark.parametrize("criterion", ["bayes", "trace"])
def test_expected_errors_are_those_of_releases(rng, make_release, criterion):
    """The posterior means of releases of the other folds err on average by what the score says.

    They depend on the noise of the answers linearly. How, is found from as many releases as there
    are answers and one; then noise enough for an average is drawn here.
    """
    X, y = np.sort(rng.uniform(0, 5, size=(12, 1)), axis=0), rng.uniform(-1, 1, size=12)
    prior, answer_sd = priors()[0], 0.7
    train, held_out = splits = deal(12, folds=2)[0]
    errors = held_out_errors(prior, X, splits=[splits], answer_sd=answer_sd, criterion=criterion)
    strategy, _ = heldout._questions(
        prior, X[train], X[held_out], answer_sd=answer_sd, criterion=criterion, gap=1e-2
    )
    answers = len(strategy)

    def design(noises):
        return np.column_stack([np.ones(len(noises)), noises])

    seeds = range(answers + 2)
    drawn = [answer_sd * np.random.default_rng(seed).normal(size=answers) for seed in seeds]
    wrong = [
        make_release(
            prior, X[train], y[train], strategy=strategy, noise_sd=answer_sd, seed=seed
        ).predict(X[held_out])
        - y[held_out]
        for seed in seeds
    ]
    linear = np.linalg.solve(design(drawn[:-1]), wrong[:-1])
    # The last was left out, to see that it is so.
    np.testing.assert_allclose(design(drawn[-1:]) @ linear, wrong[-1:], atol=1e-9)
    errors_drawn = design(answer_sd * rng.normal(size=(20_000, answers))) @ linear
    squares = np.square(errors_drawn).sum(axis=1)
    absolutes = np.abs(errors_drawn).sum(axis=1)
    residuals = (errors.residual_map @ y)[held_out]
    noise = errors.noise_variance[held_out]
    expected = error_of(residuals, noise, loss="squared") ** 2
    assert np.mean(squares) == pytest.approx(expected, rel=0.03)
    assert np.mean(absolutes) == pytest.approx(
        error_of(residuals, noise, loss="absolute"), rel=0.03
    )


def test_absolute_errors_without_noise_and_far_from_it():
    residuals = np.array([0.0, -2.0, 5.0, 0.0, 1e150, 0.0])
    noise = np.array([0.0, 0.0, 0.0, 1.0, 1e-300, 1e-320])
    expected = 7.0 + math.sqrt(2 / math.pi) + 1e150
    assert error_of(residuals, noise, loss="absolute") == pytest.approx(expected)


def test_the_band_holds_the_largest_error(rng):
    bounds = OutputBounds(-1.0, 3.0)
    X = rng.uniform(0, 5, size=(8, 1))
    for prior in priors(mean=2.0):
        public = held_out_errors(prior, X, splits=deal(8, folds=4), answer_sd=1.0)
        for loss in ("squared", "absolute"):
            band = error_band(public, bounds=bounds, loss=loss)
            for _ in range(50):
                y = rng.choice([bounds.lo, bounds.hi], size=8)
                residuals = public.residual_map @ (y - prior.mean)
                assert error_of(residuals, public.noise_variance, loss=loss) <= band.largest


def test_dividing_by_own_sensitivities_would_choose_something_else():
    """Why all candidates share one sensitivity: of two that err alike, the touchier would win."""
    errors, own = np.array([10.0, 10.0, 9.0]), np.array([1.0, 5.0, 1.0])
    assert np.argmax(-errors) == 2
    assert np.argmax(-errors / own) == 1


def fast_waves(rows=150):
    X = np.linspace(0, 10, rows)[:, None]
    return X, np.sin(X).ravel()


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("loss", ["squared", "absolute"])
def test_it_finds_the_better_candidate_when_it_may_spend(mechanism, loss):
    X, y = fast_waves()
    candidates = [
        ExactPrior(kernel=RBF(scale), noise_variance=0.1, mean=0.0) for scale in (60.0, 1.0, 1e-3)
    ]
    chosen = select(
        candidates, X, y, bounds=(-1, 1), epsilon=200.0, loss=loss, mechanism=mechanism, **RELEASE
    )
    assert chosen == Selection(index=1, candidates=3, epsilon=200.0, mechanism=mechanism)


def test_noise_counts():
    """With little budget for the release, the prior that asks less wins (2021 paper, figure 11)."""
    X, y = fast_waves(60)
    candidates = [
        ExactPrior(kernel=RBF(scale), noise_variance=0.1, mean=0.0) for scale in (0.3, 3.0)
    ]
    settings = {"bounds": (-1, 1), "epsilon": 1e3, "predictions": "raw", "criterion": "trace"}
    generous, poor = (
        select(candidates, X, y, release_epsilon=epsilon, release_delta=0.01, **settings).index
        for epsilon in (1e3, 0.1)
    )
    assert (generous, poor) == (0, 1)


def test_nothing_but_the_choice_leaves():
    """Two tables with the same choice give the very same object, in every way it can be read."""
    X, y = fast_waves(40)
    candidates = priors()
    settings = {"bounds": (-1, 1), "epsilon": 1.0, **RELEASE}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "report_noisy_max", lambda *_, **__: 2)
        one, other = (select(candidates, X, outputs, **settings) for outputs in (y, -0.3 * y))
    assert one == other
    assert repr(one) == repr(other)
    assert pickle.dumps(one) == pickle.dumps(other)
    names = {"index", "candidates", "epsilon", "mechanism", "insecure"}
    assert {field.name for field in fields(Selection)} == names == set(vars(one))


def test_a_seeded_choice_repeats_and_says_so():
    X, y = fast_waves(40)
    settings = {"bounds": (-1, 1), "epsilon": 0.1, **RELEASE}
    first, second = (select(priors(), X, y, insecure_seed=3, **settings) for _ in range(2))
    assert first == second
    assert first.insecure
    assert not select(priors(), X, y, **settings).insecure


SECRET = 0.1234567


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"candidates": []}, "at least one candidate"),
        ({"folds": 1}, "folds"),
        ({"folds": 41}, "folds"),
        ({"folds": 2.5}, "folds"),
        ({"folds": True}, "folds"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"release_epsilon": -1.0}, "epsilon"),
        ({"release_delta": 0.0}, "delta"),
        ({"bounds": None}, "bounds"),
        ({"bounds": (1, -1)}, "bounds"),
        ({"mechanism": "coin"}, "mechanism"),
        ({"loss": "cubic"}, "loss"),
        ({"predictions": "wishful"}, "predictions"),
        ({"criterion": "art nouveau"}, "criterion"),
        ({"criterion": "bayes", "predictions": "raw"}, "raw predictions"),
        ({"y": [SECRET] * 39 + [math.nan]}, "NaN"),
        ({"y": [SECRET] * 39 + [math.inf]}, "infinity"),
        ({"y": [SECRET] * 39 + ["tall"]}, "numeric"),
        ({"y": [SECRET] * 39}, "must agree"),
        ({"y": None}, "None"),
        ({"X": np.zeros(40)}, "two dimensions"),
    ],
)
def test_bad_requests_are_refused_without_quoting_an_output(change, complaint):
    request = {
        "candidates": priors(),
        "X": np.linspace(0, 1, 40)[:, None],
        "y": np.full(40, SECRET),
        "bounds": (-1, 1),
        "epsilon": 1.0,
        **RELEASE,
    } | change
    candidates, X, y = (request.pop(name) for name in ("candidates", "X", "y"))
    with pytest.raises(ValueError, match=complaint) as caught:
        select(candidates, X, y, **request)
    said = "".join(map(str, (caught.value, caught.value.__cause__, caught.value.__context__)))
    assert str(SECRET) not in said
    assert "tall" not in said


def test_outputs_are_clipped():
    X, y = fast_waves(40)
    settings = {"bounds": (-0.5, 0.5), "epsilon": 1.0, **RELEASE}
    inside = recorded(priors(), X, np.clip(y, -0.5, 0.5), **settings)
    outside = recorded(priors(), X, y, **settings)
    assert np.array_equal(inside[0], outside[0])


def test_the_noise_that_counts_is_that_of_the_release():
    X = np.linspace(0, 5, 10)[:, None]
    bounds = OutputBounds(-1.0, 1.0)
    answer_sd = bounds.width * exact_noise_multiplier(1.0, 0.01)
    public = held_out_errors(
        priors()[0],
        X,
        splits=deal(10, folds=5),
        answer_sd=answer_sd,
        predictions="raw",
        criterion="trace",
    )
    settings = {"bounds": (-1, 1), "epsilon": 1.0, "predictions": "raw", "criterion": "trace"}
    settings["loss"] = "squared"
    scores, _, _ = recorded(priors()[:1], X, np.zeros(10), **settings, **RELEASE)
    step, _ = score_sensitivity([error_band(public, bounds=bounds, loss="squared")])
    assert -scores[0] * step == pytest.approx(math.sqrt(public.noise_variance.sum()))

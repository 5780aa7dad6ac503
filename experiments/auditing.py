"""Empirical lower bounds of ε: what an attacker attains who knows everything but one bit.

An attacker knows a release, all outputs but those of one person, and the two values that these may
have. A score orders releases from the one value to the other; a threshold makes it a test.

- Many runs (`many_runs`): releases of both data sets are scored. A quarter of the runs chooses the
  threshold, the others say how often the test errs, by Clopper and Pearson's limits. If the
  mechanism is (ε, δ)-differentially private, P(S) ≤ e^ε Q(S) + δ for every event S and its
  complement, both ways, so that with the stated confidence
  ε ≥ log((P(S) − δ)/Q(S)). If it is μ-Gaussian differentially private, no test has a power above
  Φ(Φ⁻¹(level) + μ) (Dong, Roth and Su 2022, definition 2.6), so that μ ≥ Φ⁻¹(power) − Φ⁻¹(level)
  (Nasr et al. 2023, section 4).
- One run (`one_run`): every one of m rows has its value by a coin, in one release, and the attacker
  says of some what the coin was. If that release is (ε, δ)-differentially private, so many correct
  guesses are no more probable than theorem 5.2 of Steinke, Nasr and Jagielski (2023) says.

The best score is the logarithm of the ratio of likelihoods (Neyman and Pearson): `log_ratio` has it
of a release from what its file says, question by question, as later questions may depend on earlier
answers. It takes the noise for what the file says it is; if it is not, the score is not the best,
and the bounds hold all the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special, stats

from cloakgp.privacy.entries import read_labels
from cloakgp.release import Release
from cloakgp.release.measurement import Measurement
from cloakgp.release.strategy import DenseStrategy
from cloakgp.utils.arrays import Array
from cloakgp.utils.bisection import bracket

# Quantiles of scores that are tried as thresholds.
TRIED, ROUNDING = np.linspace(0.01, 0.99, 99), 1e-9
# No audit of some thousands of runs finds more.
MOST, STEPS = 20.0, 40


@dataclass(frozen=True)
class ThresholdTest:
    """How often a test says of either data set that it is the other.

    Attributes
    ----------
    power, level : (int, int)
        How many releases of the one, and of the other, lie beyond the threshold; of how many.
    """

    power: tuple[int, int]
    level: tuple[int, int]

    def limits(self, confidence: float) -> tuple[float, float]:
        """Return the least power and the greatest level, which hold together.

        Parameters
        ----------
        confidence : float
            Of both.
        """
        wrong = (1.0 - confidence) / 2.0
        (hits, releases), (alarms, others) = self.power, self.level
        least, greatest = 0.0, 1.0
        if hits:
            least = float(special.betaincinv(hits, releases - hits + 1, wrong))
        if alarms < others:
            greatest = float(special.betaincinv(alarms + 1, others - alarms, 1.0 - wrong))
        return least, greatest

    def epsilon(self, *, delta: float, confidence: float) -> float:
        """Return what follows of ε at a δ.

        Examples
        --------
        >>> test = ThresholdTest(power=(500, 1000), level=(100, 1000))
        >>> round(test.epsilon(delta=0.0, confidence=0.95), 2)
        1.36
        """
        power, level = self.limits(confidence)
        if power <= delta or level <= 0:
            return 0.0
        return max(math.log((power - delta) / level), 0.0)

    def mu(self, *, confidence: float) -> float:
        """Return what follows of μ.

        Examples
        --------
        >>> round(ThresholdTest(power=(500, 1000), level=(100, 1000)).mu(confidence=0.95), 2)
        1.09
        """
        power, level = self.limits(confidence)
        if power <= 0 or level >= 1:
            return 0.0
        return max(float(stats.norm.ppf(power) - stats.norm.ppf(level)), 0.0)


Value = Callable[[ThresholdTest], float]
"""What follows of a test."""


def many_runs(one: Array, other: Array, *, value: Value) -> float:
    """Return a lower bound by scores of releases of two neighbours.

    Parameters
    ----------
    one, other : arrays of shape (R,)
        Higher of the first data set. By a quarter of each a threshold is chosen.
    value : callable
        What follows of the test with it, of the others.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(0.5, size=4000), rng.normal(-0.5, size=4000)
    >>> round(many_runs(*scores, value=lambda test: test.mu(confidence=0.99)), 1)
    0.8
    """
    first = len(one) // 4
    candidates = [
        (value(test), place, turned)
        for turned in (False, True)
        for place, test in _tests(one[:first], other[:first], turned=turned)
    ]
    _, place, turned = max(candidates)
    return value(_test(one[first:], other[first:], place, turned=turned))


def _tests(one: Array, other: Array, *, turned: bool) -> list[tuple[float, ThresholdTest]]:
    scores = np.concatenate([one, other])
    # Half of all releases with Laplace noise have the same score, but for rounding errors.
    places = np.unique(np.quantile(scores, TRIED)) - ROUNDING * np.abs(scores).max()
    return [(float(place), _test(one, other, place, turned=turned)) for place in places]


def _test(one: Array, other: Array, place: float, *, turned: bool) -> ThresholdTest:
    """Return the test that says "the first" from a place on; turned, "the other" up to it."""
    if turned:
        one, other, place = -other, -one, -place
    return ThresholdTest(
        power=(int(np.sum(one >= place)), len(one)), level=(int(np.sum(other >= place)), len(other))
    )


def one_run(correct: int, guesses: int, rows: int, *, delta: float, confidence: float) -> float:
    """Return a lower bound of ε by guesses of coins, in one release.

    Parameters
    ----------
    correct, guesses : int
    rows : int
        m, whose value a coin chose.
    delta : float
    confidence : float

    Examples
    --------
    >>> round(one_run(80, 100, 100, delta=0.0, confidence=0.95), 2)
    0.96
    >>> one_run(50, 100, 100, delta=0.0, confidence=0.95)
    0.0
    """

    def refuted(epsilon: float) -> bool:
        likely = _probability(correct, guesses, rows, epsilon=epsilon, delta=delta)
        return likely <= 1.0 - confidence

    return bracket(refuted, 0.0, MOST, steps=STEPS)[0] if refuted(0.0) else 0.0


def _probability(correct: int, guesses: int, rows: int, *, epsilon: float, delta: float) -> float:
    """Return the most that so many correct guesses can have as probability."""
    share = 1.0 / (1.0 + math.exp(-epsilon))
    at_least = float(stats.binom.sf(correct - 1, guesses, share))
    if not delta:
        return at_least
    steps = np.arange(1, correct + 1)
    between = stats.binom.sf(correct - steps - 1, guesses, share) - at_least
    return min(at_least + 2.0 * rows * delta * float(np.max(between / steps)), 1.0)


def log_ratio(release: Release, X: Array, one: Sequence[object], other: Sequence[object]) -> float:
    """Return the log likelihood of a release's answers under one data set, less that of another.

    Parameters
    ----------
    release : Release
        Of tables that are kept whole.
    X : array of shape (N, D)
        Public; no two rows are alike.
    one, other : sequences of N outputs
    """
    places = {row.tobytes(): place for place, row in enumerate(X)}
    total = 0.0
    for measurement in release.measurements:
        strategy = measurement.strategy
        assert isinstance(strategy, DenseStrategy)
        if measurement.answers.noise_sd > 0:
            rows = [places[row.tobytes()] for row in np.ascontiguousarray(strategy.X)]
            likely = [
                _likely(measurement, [values[row] for row in rows]) for values in (one, other)
            ]
            total += likely[0] - likely[1]
    return total


def expected_answers(measurement: Measurement, outputs: Sequence[object]) -> Array:
    """Return the answers without noise to what a release asked, shape (k, C)."""
    strategy, question = measurement.strategy, measurement.question
    assert isinstance(strategy, DenseStrategy)
    if question.labels is None:
        entries = np.array(outputs, dtype=np.float64)
    else:
        entries = read_labels(outputs, question.labels)
    answers: Array = strategy.matrix @ question.encode(entries)
    return answers


def _likely(measurement: Measurement, outputs: Sequence[object]) -> float:
    """Return the log likelihood of answers, but for what does not depend on outputs."""
    answers = measurement.answers
    noise = (answers.values - expected_answers(measurement, outputs)) / answers.noise_sd
    if answers.noise == "gaussian":
        return -0.5 * float(np.square(noise).sum())
    # The sd of Laplace noise is √2 times its scale.
    return -math.sqrt(2.0) * float(np.abs(noise).sum())


def guess_coins(answers: Array, *, guesses: int) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return of which rows an attacker is surest, and whether each is guessed to be high.

    Parameters
    ----------
    answers : array of shape (m,)
        Of each row on its own, less the middle between its two values.
    guesses : int
    """
    rows = np.argsort(-np.abs(answers), kind="stable")[:guesses]
    return rows, answers[rows] > 0


def most_asked(release: Release, X: Array) -> int:
    """Return the row whose output moves the answers of a release most, in sds of their noise.

    Parameters
    ----------
    release : Release
        Of tables that are kept whole.
    X : array of shape (N, D)
        Public; no two rows are alike.
    """
    places = {row.tobytes(): place for place, row in enumerate(X)}
    moved = np.zeros(len(X))
    for measurement in release.measurements:
        strategy = measurement.strategy
        assert isinstance(strategy, DenseStrategy)
        if measurement.answers.noise_sd > 0:
            rows = [places[row.tobytes()] for row in np.ascontiguousarray(strategy.X)]
            width = measurement.question.distance / measurement.answers.noise_sd
            moved[rows] += np.square(strategy.matrix * width).sum(axis=0)
    return int(moved.argmax())

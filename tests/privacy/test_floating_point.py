"""What floating point does on the way to the noise is told to nobody."""

import warnings

import numpy as np
import pytest

from cloakgp.privacy.ask import ask
from cloakgp.privacy.questions.bands import Bands
from cloakgp.privacy.questions.bounds import OutputBounds
from cloakgp.privacy.questions.margins import MarginQuestion
from cloakgp.privacy.questions.spread import SpreadQuestion

EXTREMES = {
    "plain": [1.0] * 8,
    "next to nothing": [5e-324, *[1.0] * 7],
    "denormal": [3e-310, *[1.0] * 7],
    "huge": [1.7e308, *[-1.7e308] * 7],
}
N = 8


@pytest.mark.parametrize("mode", ["warn", "raise"])
@pytest.mark.parametrize(
    "question",
    [
        OutputBounds(-1.0, 1.0),
        SpreadQuestion(mean=np.zeros(N), sd=np.full(N, 3.0)),
        MarginQuestion(
            mean=np.zeros(N), sd=np.full(N, 3.0), within=OutputBounds(-9.0, 9.0), cells=np.ones(1)
        ),
        Bands(lower=np.full(N, -1.0), upper=np.full(N, 2.0)),
    ],
    ids=lambda question: type(question).__name__,
)
def test_whatever_numpy_does_about_overflow_and_underflow_tells_nothing(mode, question):
    """A caller's ``np.seterr`` would warn, or fail, for some outputs and not for others."""
    whole = isinstance(question, SpreadQuestion | MarginQuestion)
    strategy = np.full((1, N), 1.0 if whole else 0.5)
    told = []
    for outputs in EXTREMES.values():
        with np.errstate(all=mode), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ask(strategy, np.array(outputs), question=question, epsilon=1.0, delta=1e-6)
        told.append([str(one.message) for one in caught])
    assert told == [told[0]] * len(told)

"""No value of y, nor of a private input, is in anything that a model shows, keeps or says.

What models of any data keep is also compared between neighbours, byte for byte, by `checker`.
"""

from __future__ import annotations

import io
import logging
import pickle
import re
import struct
import traceback
import warnings
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cloakgp import (
    DPGPClassifier,
    DPGPClassifierPrivateInputs,
    DPGPMultiOutputRegressor,
    DPGPRegressor,
    DPGPRegressorPrivateInputs,
    DPGridSearchCV,
    cloak,
)
from cloakgp.data import ArrayRows
from cloakgp.estimators.baselines import (
    DPHistogramRegressor,
    DPIntegralHistogramRegressor,
    DPMeanRegressor,
    DPRowNoiseRegressor,
)

# Values that nobody would come upon by chance: in any digits, in eight bytes, as text.
SECRETS = [61.80339887498949, 27.18281828459045, -57.72156649015329, 91.59655941772190]
WORD = "quinquagenarian"
BUDGET = {"bounds": (-100.0, 100.0), "epsilon": 1.0, "delta": 1e-4}
# Which noise is better is forecast from what is public, and is the first of all fits alone.
GAUSSIAN = {**BUDGET, "noise": "gaussian"}
LABELS = {"classes": ["no", "yes"], "epsilon": 1.0, "delta": 1e-4}
X = np.linspace(0, 10, 12)[:, None]
Y = np.resize(SECRETS, 12)
WORDS = ["no", "yes"] * 6


def grid_search(**budget: Any) -> DPGridSearchCV:
    estimator = DPGPRegressor(learn=None, **budget)
    return DPGridSearchCV(estimator, {"noise_variance": [1.0, 2.0]}, selection_epsilon=0.5, cv=2)


def in_chunks(X: Any, y: Any) -> Any:
    model = DPGPRegressor(inducing=3, **GAUSSIAN)
    return model.fit_rows(ArrayRows(X, y, chunk_rows=5, jobs=2))


def several_outputs(X: Any, y: Any, *, epsilon: float = 1.0) -> Any:
    model = DPGPMultiOutputRegressor(
        **{**GAUSSIAN, "bounds": [(-100.0, 100.0)], "epsilon": epsilon}
    )
    single = isinstance(y, list) or (isinstance(y, np.ndarray) and y.ndim == 1)
    return model.fit(X, [[one] for one in y] if single else y)


# What fits X and y.
FITS = {
    "bayes": DPGPRegressor(**BUDGET).fit,
    "trace": DPGPRegressor(criterion="trace", inducing=3, **GAUSSIAN).fit,
    "functional": DPGPRegressor(criterion="functional", **GAUSSIAN).fit,
    "one stage": DPGPRegressor(stages=None, **GAUSSIAN).fit,
    "two stages": DPGPRegressor(stages=[(0.4, None), (0.6, 1.0)], **GAUSSIAN).fit,
    "stages and the spread": DPGPRegressor(**{**GAUSSIAN, "epsilon": 60.0}).fit,
    "in chunks": in_chunks,
    "grid search": grid_search(**BUDGET).fit,
    "rows": DPRowNoiseRegressor(**BUDGET).fit,
    "mean": DPMeanRegressor(**BUDGET).fit,
    "histogram": DPHistogramRegressor(**BUDGET).fit,
    "integral histogram": DPIntegralHistogramRegressor(**BUDGET).fit,
    "private inputs": DPGPRegressorPrivateInputs(
        input_bounds=[(0, 10)], n_features=4, **BUDGET
    ).fit,
    "several outputs": several_outputs,
    "several outputs, intervals first": partial(several_outputs, epsilon=90.0),
    "cloak": lambda X, y: cloak(np.ones((1, len(X))), y, **BUDGET),
}
LABEL_FITS = {
    "classes": DPGPClassifier(**LABELS).fit,
    "the papers' iteration": DPGPClassifier(criterion="newton", steps=2, **LABELS).fit,
    "classes, sparse": DPGPClassifier(inducing=3, criterion="trace", **LABELS).fit,
}


def shown(secret: float) -> list[str]:
    """Return how a number may be written: six digits, wherever the point is."""
    digits = re.sub(r"\D", "", f"{abs(secret):.15g}")
    return [digits[:6], f"{abs(secret):.4f}", f"{abs(secret):.4g}", float(secret).hex()]


def says(text: str, secrets: Any = SECRETS) -> list[str]:
    """Return what a text shows of secrets."""
    plain = text.replace(".", "")
    return [way for one in secrets for way in shown(one) if way in text or way in plain]


def holds(content: bytes, secrets: Any = SECRETS) -> list[str]:
    """Return what bytes hold of secrets: as doubles of either byte order, singles, or text."""
    found = says(content.decode("latin-1"), secrets)
    for one in secrets:
        forms = [struct.pack(form, one) for form in ("<d", ">d", "<f", ">f")]
        # Also less the middle of the bounds, which here is zero, and over their half width.
        forms += [struct.pack("<d", one / 100.0), struct.pack("<d", one / 200.0)]
        found += [repr(form) for form in forms if form in content]
    return found


def test_the_search_finds_what_there_is():
    assert says("y must be below 61.8034") == ["61.8034"] or says("y must be below 61.8034")
    assert says("6.180339e+01 is too large")
    assert says("nothing is wrong with 61 rows") == []
    assert holds(pickle.dumps(Y))
    assert holds(pickle.dumps([SECRETS[1]]))
    assert holds(np.float32(SECRETS[2]).tobytes())
    assert holds(pickle.dumps(np.linspace(0, 1, 50))) == []


@pytest.mark.parametrize("fit", FITS.values(), ids=list(FITS))
def test_nothing_that_is_kept_or_said_shows_an_output(fit, caplog):
    caplog.set_level(logging.DEBUG)
    printed = io.StringIO()
    with (
        warnings.catch_warnings(record=True) as caught,
        redirect_stdout(printed),
        redirect_stderr(printed),
    ):
        warnings.simplefilter("always")
        model = fit(X, Y)
    said = [
        caplog.text,
        printed.getvalue(),
        *(str(warning.message) for warning in caught),
        repr(model),
    ]
    assert says("\n".join(said)) == []
    assert holds(pickle.dumps(model)) == []
    kept = vars(model)
    assert says("\n".join(map(repr, kept.values()))) == []
    release = kept.get("release_", getattr(model, "release_", model))
    assert holds(pickle.dumps(release)) == []


def test_nothing_of_private_inputs_is_kept(tmp_path):
    inputs = np.resize(np.abs(SECRETS), 12)[:, None]
    model = DPGPRegressorPrivateInputs(input_bounds=[(0, 100)], n_features=4, **BUDGET)
    model.fit(inputs, np.zeros(12))
    model.release_.save(tmp_path / "a")
    secrets = [float(one) for one in inputs[:4, 0]]
    assert holds(pickle.dumps(model), secrets) == []
    assert holds((tmp_path / "a").read_bytes(), secrets) == []
    assert says(repr(model) + repr(vars(model)), secrets) == []


def test_nothing_of_private_inputs_of_classes_is_kept(tmp_path):
    inputs = np.resize(np.abs(SECRETS), 12)[:, None]
    model = DPGPClassifierPrivateInputs(input_bounds=[(0, 100)], n_features=4, **LABELS)
    model.fit(inputs, np.resize(LABELS["classes"][:2], 12))
    model.release_.save(tmp_path / "a")
    secrets = [float(one) for one in inputs[:4, 0]]
    assert holds(pickle.dumps(model), secrets) == []
    assert holds((tmp_path / "a").read_bytes(), secrets) == []
    assert says(repr(model) + repr(vars(model)), secrets) == []


def test_rows_keep_outputs_to_themselves():
    rows = ArrayRows(X, Y, chunk_rows=5)
    assert says(repr(rows) + str(rows)) == []


BAD = {
    "missing": [*SECRETS, float("nan"), *Y[5:]],
    "infinite": [*SECRETS, float("inf"), *Y[5:]],
    "text among numbers": [*SECRETS, "61.80339887498949 kg", *Y[5:]],
    "only text": [f"{one} kg" for one in Y],
    "an object": [*SECRETS, object(), *Y[5:]],
    "complex": [*SECRETS, 61.80339887498949j, *Y[5:]],
    "a list in a list": [*SECRETS, [61.80339887498949], *Y[5:]],
    "bytes": [*SECRETS, b"61.80339887498949 kg", *Y[5:]],
    "too long": [*Y, *SECRETS],
    "too short": SECRETS,
    "none": [*SECRETS, None, *Y[5:]],
    "a day": [*SECRETS, np.datetime64("6180-01-01"), *Y[5:]],
    "a number": SECRETS[0],
    "a word": "61.80339887498949",
    "two columns": np.column_stack([Y, Y]),
    "a table": pd.DataFrame({"y": Y, "z": Y}),
    "too large": [*SECRETS, 10**400, *Y[5:]],
    "a set": set(SECRETS),
    "a mapping": dict.fromkeys(SECRETS, 1.0),
}


def chain(error: BaseException) -> str:
    """Return everything that a traceback prints, of an error and of those behind it."""
    notes = []
    one: BaseException | None = error
    while one is not None:
        notes += [*map(repr, one.args), *getattr(one, "__notes__", [])]
        one = one.__cause__ or one.__context__
    # Lines of this file are quoted, and hold the secrets as they stand.
    return "\n".join([*traceback.format_exception_only(error), *notes])


@pytest.mark.parametrize("bad", BAD.values(), ids=list(BAD))
@pytest.mark.parametrize("fit", FITS.values(), ids=list(FITS))
def test_no_message_about_bad_outputs_quotes_one(fit, bad):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises((ValueError, TypeError)) as raised:
            fit(X, bad)
    assert (
        says("\n".join([chain(raised.value), *(str(warning.message) for warning in caught)])) == []
    )


BAD_LABELS = {
    "another word": [*WORDS[:5], WORD, *WORDS[6:]],
    "a number": [*WORDS[:5], SECRETS[0], *WORDS[6:]],
    "an object": [*WORDS[:5], {WORD: WORD}, *WORDS[6:]],
    "missing": [WORD, *WORDS[:5], None, *WORDS[7:]],
    "too long": [*WORDS, WORD],
    "too short": [WORD],
    "one word": WORD,
    "two columns": [[word, WORD] for word in WORDS],
    "ragged": [*WORDS[:11], [WORD, WORD]],
}


@pytest.mark.parametrize("bad", BAD_LABELS.values(), ids=list(BAD_LABELS))
@pytest.mark.parametrize("fit", LABEL_FITS.values(), ids=list(LABEL_FITS))
def test_no_message_about_bad_labels_quotes_one(fit, bad):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises((ValueError, TypeError)) as raised:
            fit(X, bad)
    said = "\n".join([chain(raised.value), *(str(warning.message) for warning in caught)])
    assert WORD not in said
    assert says(said) == []

"""Several outputs of rows that are read in passes: as good as of rows that are held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cloakgp import DPGPMultiOutputRegressor, DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.data.entries import EntryRows
from cloakgp.privacy.questions.counts import CountQuestion
from cloakgp.release import MultiOutputRelease, StreamedStrategy
from cloakgp.release.io.bundle import ReleaseFileError
from cloakgp.report.describe import describe_several_outputs

pytestmark = [
    pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning"),
    pytest.mark.filterwarnings("ignore::cloakgp.design.DesignGapWarning"),
]

BOUNDS, WIDTHS = [(-2.0, 2.0), (-20.0, 20.0)], np.array([4.0, 40.0])
POINTS = np.linspace(0.5, 9.5, 60)[:, None]


def curves(X):
    return np.column_stack([np.sin(X[:, 0]), 10 * np.cos(X[:, 0])])


def table(rows=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0.0, 10.0, size=(rows, 1))
    return X, curves(X) + rng.normal(size=(rows, 2)) * [0.1, 1.0]


def model(**changes):
    chosen = {"bounds": BOUNDS, "epsilon": 0.5, "delta": 1e-5, "noise": "gaussian", "inducing": 12}
    return DPGPMultiOutputRegressor(**(chosen | {"insecure_seed": 2, "gap": 0.1} | changes))


def fitted(*, groups=None, rows=3000, chunk_rows=512, **changes):
    X, y = table(rows)
    return model(**changes).fit_rows(ArrayRows(X, y, groups=groups, chunk_rows=chunk_rows, jobs=1))


@pytest.fixture(scope="module")
def released():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cloakgp.fitting.row_learning.LEARNING_CELLS", 300)
        return fitted(bounds=[(-200.0, 200.0), (-20.0, 20.0)], epsilon=2.0).release_


def error(release):
    return float(np.sqrt(np.square((release.predict(POINTS) - curves(POINTS)) / WIDTHS).mean()))


@pytest.mark.parametrize("noise", ["gaussian", pytest.param("laplace", marks=pytest.mark.slow)])
def test_predictions_are_as_good_as_those_of_rows_that_are_held(noise):
    """In expectation, too: what sds say does not depend on which noise was drawn."""
    settings = {"noise": noise, "delta": 1e-5 if noise == "gaussian" else 0.0}
    settings |= {"stages": None, "interval": False, "learn": None}
    settings["epsilon"] = 1.5
    X, y = table(1000)
    passes = [fitted(rows=1000, insecure_seed=seed, **settings).release_ for seed in range(3)]
    held = [model(insecure_seed=seed, **settings).fit(X, y).release_ for seed in range(3)]
    sds = [
        np.mean(one.predict(POINTS, return_std=True)[1] / WIDTHS) for one in (passes[0], held[0])
    ]
    assert sds[0] <= 1.2 * sds[1]
    assert np.mean([error(one) for one in passes]) <= 1.2 * np.mean([error(one) for one in held])


@pytest.mark.parametrize("coregion", [None, [[1.0, 0.9], [0.9, 1.0]]])
@pytest.mark.parametrize("groups", [None, [f"p{row // 2}" for row in range(1000)]])
def test_what_is_published_is_about_entries_that_are_protected_together(coregion, groups):
    release = fitted(groups=groups, rows=1000, coregion=coregion, stages=None).release_
    X, y = table(1000)
    entries = EntryRows.of(ArrayRows(X, y, groups=groups), release.columns)
    assert (release.n_rows, release.n_inputs) == (1000, 1)
    for number, one in enumerate(release.entries.measurements):
        assert isinstance(one.strategy, StreamedStrategy)
        assert (one.strategy.together, one.strategy.grouped) == (2, groups is not None)
        assert release.entries.verify(entries, measurement=number) == pytest.approx(
            one.strategy.longest, rel=1e-6
        )
    facts = {
        fact.label: fact.text for part in describe_several_outputs(release) for fact in part.facts
    }
    assert facts["rows"] == "1,000"
    assert "not in this file row by row" in facts["not protected"]
    assert ("every person" in facts["protected"]) == (groups is not None)


def test_many_rows_are_read_in_passes_of_its_own_accord():
    X, y = table(5200)
    made = model(stages=None, interval=False, learn=None).fit(X, y.tolist())
    assert isinstance(made.release_.entries.measurements[0].strategy, StreamedStrategy)


def test_intervals_are_found_and_counted_by_output(released, tmp_path):
    counted = [released.counts_of(one) for one in released.entries.measurements]
    found = [one for one in counted if one is not None]
    assert {output for output, _ in found} == {0, 1}
    assert found[0][1].ends == pytest.approx((-200.0, 200.0))
    assert released.units.bounds[0].width < 20
    assert error(released) < 0.1
    released.save(tmp_path / "made.cloak")
    again = MultiOutputRelease.load(tmp_path / "made.cloak")
    np.testing.assert_array_equal(again.predict(POINTS), released.predict(POINTS))


def forged(release, *, counts, **changes):
    measurements = tuple(
        replace(one, strategy=replace(one.strategy, **changes))
        if isinstance(one.question, CountQuestion) == counts
        else one
        for one in release.entries.measurements
    )
    return replace(release, entries=replace(release.entries, measurements=measurements))


@pytest.mark.parametrize(
    ("counts", "changes"),
    [
        (False, {"together": 1}),
        (False, {"together": 3}),
        (False, {"together": 0}),
        (False, {"output": 0}),
        (True, {"together": 1}),
        (True, {"output": None}),
        (True, {"output": 2}),
        (True, {"output": -1}),
        (False, {"rows": 5999}),
        (False, {"input_ranges": np.array([[0.0, 0.0], [10.0, 0.0]])}),
        (False, {"input_ranges": np.array([[0.0, 0.0], [10.0, 2.0]])}),
    ],
)
def test_files_that_do_not_protect_all_outputs_together_are_refused(
    released, tmp_path, counts, changes
):
    forged(released, counts=counts, **changes).save(tmp_path / "forged.cloak")
    with pytest.raises(ReleaseFileError):
        MultiOutputRelease.load(tmp_path / "forged.cloak")


def test_rows_of_another_number_of_columns_are_refused():
    X, y = table(50)
    with pytest.raises(ValueError, match="1 private columns and bounds are given for 2"):
        model().fit_rows(ArrayRows(X, y[:, 0]))
    single = DPGPRegressor(bounds=(-2, 2), epsilon=1.0, delta=1e-5, inducing=5)
    with pytest.raises(ValueError, match="one dimension"):
        single.fit_rows(ArrayRows(X, y))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_outputs_that_are_no_numbers_are_refused_without_being_told(bad):
    X, y = table(50)
    y[7, 1] = bad
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        model(stages=None, interval=False).fit_rows(ArrayRows(X, y))
    assert "7" not in str(caught.value)

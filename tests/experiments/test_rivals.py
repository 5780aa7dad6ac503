"""Rivals: what they ask, what they do with exact answers, and how they are compared."""

import itertools
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import WhiteKernel
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import PolynomialFeatures
from typer.testing import CliRunner

from cloakgp.models import default_kernel
from cloakgp.privacy import OutputBounds
from cloakgp.privacy.accounting import exact_noise_multiplier
from experiments import __main__ as command_line
from experiments.cloaking import mean_without_privacy
from experiments.commits import PROJECT
from experiments.datasets import DatasetUnavailableError, load_kung
from experiments.pages import Kept
from experiments.priors import PriorShape, Table
from experiments.rivals import (
    cloaked,
    direct,
    explainable_boosting,
    features,
    histograms,
    report,
    trees,
)
from experiments.rivals.base import Rival, Sums, ask, part_of
from experiments.rivals.command import Rivals, all_rivals
from experiments.rivals.comparison import (
    Compared,
    Judged,
    compare_rivals,
    in_hindsight,
    tuned_on_other_tables,
)
from experiments.rivals.references import DEFAULT
from experiments.ways import Setting

SETTING = Setting(epsilon=1.0, insecure_seed=1)
# So much budget that answers are exact to many digits.
PLENTY = Setting(epsilon=1e7, insecure_seed=1)
ASKING = {
    direct.NOISY_MEAN: direct,
    direct.LOCAL_NOISE: direct,
    features.POLYNOMIALS: features,
    features.BOOSTED_SUMS: features,
    trees.ADDITIVE: trees,
    trees.TREES: trees,
    histograms.HISTOGRAM: histograms,
    histograms.PROCESS_ON_CELLS: histograms,
}


@pytest.fixture
def wave(rng):
    X = rng.uniform(0.0, 10.0, size=(80, 2))
    outputs = np.sin(X[:, 0] / 2) + 0.1 * X[:, 1]
    return Table("wave", X=X, outputs=outputs, bounds=OutputBounds(-2.0, 3.0))


@pytest.fixture
def split(wave):
    return wave.split(0, rows=50)


def name_of(rival):
    return rival.name


@pytest.mark.parametrize("rival", ASKING, ids=name_of)
def test_what_is_asked_depends_on_no_output_and_adds_up_to_the_budget(rival, split, monkeypatch):
    """Whatever was answered before, a neighbour's questions differ in one clipped output alone."""
    calls = []

    def answered(strategy, outputs, *, bounds, setting, noise):
        calls.append((strategy, bounds, setting, noise, bounds.clip(outputs)))
        answers = np.random.default_rng(len(strategy)).normal(size=len(strategy))
        return Sums(answers, noise_sd=1.0, centre=bounds.middle)

    monkeypatch.setattr(ASKING[rival], "ask", answered)
    setting = Setting(epsilon=1.0, delta=1e-3)
    rival.predict(split, setting)
    own, calls = calls, []
    original = split.outputs[7]
    split.outputs[7] = -2.0
    rival.predict(split, setting)
    split.outputs[7] = original
    assert len(own) == len(calls) > 0
    for ours, theirs in zip(own, calls, strict=True):
        assert np.array_equal(ours[0], theirs[0])
        assert ours[1:4] == theirs[1:4]
        assert set(np.flatnonzero(ours[4] != theirs[4])) <= {7}
        assert np.abs(ours[4] - theirs[4]).max() <= ours[1].width * (1 + 1e-12)
        # Either all of the budget at once, or one of equal parts.
        spent = ours[2]
        if spent != setting and ours[3] == "laplace":
            assert spent.delta == 0.0
            parts = setting.epsilon / spent.epsilon
            assert parts == pytest.approx(round(parts))
        elif spent != setting:
            whole = exact_noise_multiplier(setting.epsilon, setting.delta) ** -2
            parts = whole * exact_noise_multiplier(spent.epsilon, spent.delta) ** 2
            assert parts == pytest.approx(round(parts), rel=1e-6)


@pytest.mark.parametrize("parts", [2, 3, 6])
@pytest.mark.parametrize("budget", [(0.1, 1e-5), (0.1, 0.01), (3.0, 0.01)])
def test_parts_of_a_budget_add_up_to_it_and_have_seeds_of_their_own(parts, budget):
    setting = Setting(*budget, insecure_seed=10)
    each = [
        part_of(setting, parts=parts, number=number, noise="gaussian") for number in range(parts)
    ]
    precision = sum(exact_noise_multiplier(one.epsilon, one.delta) ** -2 for one in each)
    assert precision <= exact_noise_multiplier(*budget) ** -2 * (1 + 1e-9)
    assert precision == pytest.approx(exact_noise_multiplier(*budget) ** -2, rel=1e-6)
    assert len({one.insecure_seed for one in each}) == parts
    of_laplace = [
        part_of(setting, parts=parts, number=number, noise="laplace") for number in range(parts)
    ]
    assert sum(one.epsilon for one in of_laplace) == pytest.approx(budget[0])
    assert {one.delta for one in of_laplace} == {0.0}


def test_in_a_rival_of_several_rounds_every_round_is_asked_with_its_part(split, monkeypatch):
    settings = []

    def spied(strategy, outputs, *, bounds, setting, noise):
        settings.append(setting)
        return ask(strategy, outputs, bounds=bounds, setting=setting, noise=noise)

    monkeypatch.setattr(trees, "ask", spied)
    monkeypatch.setattr(trees, "TREE_ROUNDS", (3,))
    monkeypatch.setattr(trees, "LEAVES", (3,))
    found = trees.boosted_trees(split, SETTING)
    whole = exact_noise_multiplier(1.0, 0.01) ** -2
    assert len(settings) == 3 * len(found)
    for number in range(len(found)):
        rounds = settings[3 * number : 3 * number + 3]
        if rounds[0].delta == 0.0:
            assert sum(one.epsilon for one in rounds) == pytest.approx(1.0)
            continue
        spent = sum(exact_noise_multiplier(one.epsilon, one.delta) ** -2 for one in rounds)
        assert spent == pytest.approx(whole, rel=1e-6)


def test_randomised_response_is_unbiased_and_as_private_as_it_says():
    bounds, epsilon, count = OutputBounds(0.0, 6.0), 0.7, 100_000
    for levels in (2, 4):
        told = partial(
            direct.randomised_response, bounds=bounds, levels=levels, epsilon=epsilon, seed=3
        )
        shares = []
        for output in (0.0, 1.3, 2.0, 6.0):
            reports = told(np.full(count, output))
            spread = reports.values.std() / np.sqrt(count)
            assert abs(reports.values.mean() - output) < 5 * spread
            values, counts = np.unique(reports.values, return_counts=True)
            assert len(values) == levels
            shares.append(counts / count)
        ratios = [np.max(a / b) for a, b in itertools.permutations(shares, 2)]
        assert max(ratios) == pytest.approx(np.exp(epsilon), rel=0.05)
        mixed = told(np.linspace(0.0, 6.0, count))
        errors = mixed.values - np.linspace(0.0, 6.0, count)
        assert np.square(errors).mean() == pytest.approx(mixed.variance, rel=0.05)


def test_many_rows_add_their_own_noise_in_parts_that_share_no_row(split, monkeypatch):
    """Oracle: the same outputs in one part; whose noise is no other part's."""
    whole = direct.noisy_rows(split, SETTING, noise="laplace")
    monkeypatch.setattr(direct, "ROWS_AT_A_TIME", 20)
    parted = direct.noisy_rows(split, SETTING, noise="laplace")
    assert parted.variance == pytest.approx(whole.variance)
    np.testing.assert_allclose(parted.values[:20], whole.values[:20], atol=1e-6)
    noise = parted.values - split.bounds.clip(split.outputs)
    assert len(noise) == len(split.outputs) > 40
    assert len(np.unique(noise.round(9))) == len(noise)
    exact = direct.noisy_rows(split, PLENTY, noise="laplace")
    np.testing.assert_allclose(exact.values, split.outputs, atol=1e-3)


def test_with_plenty_of_budget_the_noisy_mean_is_the_mean(split):
    for predicted in direct.noisy_mean(split, PLENTY).values():
        np.testing.assert_allclose(predicted, split.outputs.mean(), atol=1e-3)


def test_with_plenty_of_budget_polynomials_are_least_squares(split):
    found = features.noisy_polynomials(split, PLENTY)
    lowest, highest = split.X.min(axis=0), split.X.max(axis=0)
    made = PolynomialFeatures(2)
    fitted = made.fit_transform(split.X)
    inside = ((split.X_test >= lowest) & (split.X_test <= highest)).all(axis=1)
    assert inside.sum() > 5
    expected = LinearRegression().fit(fitted, split.outputs).predict(made.transform(split.X_test))
    for kind, noise in itertools.product(("as they are", "uncorrelated"), ("laplace", "gaussian")):
        predicted = found[f"degree 2, by range, {kind}, {noise}, ridge 0"]
        np.testing.assert_allclose(predicted[inside], expected[inside], atol=1e-3)
    lengths = np.linalg.norm(
        features.polynomials(split, degree=2, ranked=False).orthonormal().fitted, axis=1
    )
    weights = np.minimum(1.0, np.quantile(lengths, 0.9) / lengths)
    weighted = LinearRegression().fit(fitted, split.outputs, sample_weight=weights)
    expected = weighted.predict(made.transform(split.X_test))
    predicted = found["degree 2, by range, levelled, gaussian, ridge 0"]
    np.testing.assert_allclose(predicted[inside], expected[inside], atol=1e-3)


def test_orthonormal_features_are_uncorrelated_and_levelled_ones_no_longer_than_most(split):
    made = features.polynomials(split, degree=3, ranked=False).orthonormal()
    gram = made.fitted.T @ made.fitted / len(split.X)
    np.testing.assert_allclose(gram, np.eye(made.count), atol=1e-9)
    lengths = np.linalg.norm(made.fitted, axis=1)
    shortened = np.linalg.norm(made.levelled().fitted, axis=1)
    assert shortened.max() == pytest.approx(np.quantile(lengths, 0.9))
    assert np.array_equal(shortened < lengths - 1e-9, lengths > np.quantile(lengths, 0.9) + 1e-9)


def test_ridge_on_all_eigenfeatures_is_the_default_gaussian_process(split):
    made = features.eigenfeatures(split, count=len(split.X))
    kernel = default_kernel(split.X, width=1.0) + WhiteKernel(0.01)
    outputs = split.outputs - split.outputs.mean()
    expected = GaussianProcessRegressor(kernel, optimizer=None).fit(split.X, outputs)
    gram = made.fitted.T @ made.fitted + 0.01 * np.eye(made.count)
    predicted = made.test @ np.linalg.solve(gram, made.fitted.T @ outputs)
    np.testing.assert_allclose(predicted, expected.predict(split.X_test), rtol=1e-5, atol=1e-7)


def test_partitions_cut_rows_and_held_out_rows_alike(split):
    rng = np.random.default_rng(0)
    made = trees.random_partition(split.X, split.X, leaves=6, rng=rng)
    assert np.array_equal(made.fitted, made.test)
    assert np.array_equal(made.indicators.sum(axis=0), np.ones(len(split.X)))
    along = trees.random_partition(split.X, split.X, leaves=4, rng=rng, column=1)
    order = np.argsort(split.X[:, 1])
    # Leaves of one input are intervals of it.
    assert np.count_nonzero(np.diff(along.fitted[order])) == len(np.unique(along.fitted)) - 1
    sums = along.indicators @ split.outputs
    means = along.means(sums)
    for leaf in np.unique(along.fitted):
        assert means[leaf] == pytest.approx(split.outputs[along.fitted == leaf].mean())


@pytest.mark.parametrize("rival", [features.BOOSTED_SUMS, trees.TREES, trees.ADDITIVE], ids=name_of)
def test_with_plenty_of_budget_boosting_predicts(rival, split):
    errors = [split.relative_error(one) for one in rival.predict(split, PLENTY).values()]
    assert min(errors) < 0.6


def test_with_plenty_of_budget_histograms_are_means_of_cells(split):
    found = histograms.noisy_histogram(split, PLENTY)
    cells = histograms.cells_around_centres(split, count=4, ranked=False)
    means = np.array([split.outputs[cells.fitted == cell].mean() for cell in range(4)])
    for noise in ("laplace", "gaussian"):
        predicted = found[f"4 cells by range, {noise}, as they are"]
        np.testing.assert_allclose(predicted, means[cells.test], atol=1e-3)


def test_with_plenty_of_budget_and_a_cell_a_row_a_process_on_cells_is_that_without_privacy(
    split, monkeypatch
):
    monkeypatch.setattr(histograms, "CELLS", (1, len(split.X)))
    found = histograms.process_on_cells(split, PLENTY)
    width = split.bounds.width
    kernel = default_kernel(split.X, width=width) + WhiteKernel((width / 10) ** 2)
    middle = split.bounds.middle
    expected = GaussianProcessRegressor(kernel, optimizer=None).fit(split.X, split.outputs - middle)
    predicted = found[f"{len(split.X)} cells, laplace, declared"]
    np.testing.assert_allclose(predicted, middle + expected.predict(split.X_test), atol=1e-3)


def test_with_plenty_of_budget_cloaked_predictions_are_those_without_privacy(split):
    found = cloaked.exact_cloaking(split, PLENTY)
    prior = split.prior(PriorShape("rbf", 0.5, noise=0.1))
    expected = mean_without_privacy(
        split.X, split.outputs, X_query=split.X_test, prior=prior, bounds=split.bounds
    )
    predicted = found["lengthscale 0.5, noise 0.1, no inducing"]
    np.testing.assert_allclose(predicted, split.bounds.clip(expected), atol=1e-3)
    # One seed, one design: the papers' calibration adds more of the same noise.
    exact, papers = cloaked.exact_cloaking(split, SETTING), cloaked.papers_cloaking(split, SETTING)
    label = "lengthscale 1, noise 0.25, 5 inducing"
    ratio = np.abs(papers[label] - found[label]) / np.abs(exact[label] - found[label])
    assert np.median(ratio) == pytest.approx(3.255 / 1.878, rel=0.01)


def test_dp_ebm_is_given_the_bounds_and_predicts_within_them(split):
    pytest.importorskip("interpret")
    found = explainable_boosting.explainable_boosting(split, SETTING)
    for predicted in found.values():
        assert predicted.min() >= split.bounds.lo
        assert predicted.max() <= split.bounds.hi
    generous = explainable_boosting.explainable_boosting(split, Setting(50.0, insecure_seed=1))
    assert min(map(split.relative_error, generous.values())) < 0.8


def test_tunings_are_chosen_in_hindsight_or_by_the_other_tables():
    tables = [
        Judged(("a", "b", "c"), np.array([[0.0, 1.0], [1.0, 0.9], [0.0, 0.0]])),
        Judged(("b", "a"), np.array([[0.5, 0.5], [0.9, 0.9]])),
        Judged(("a", "b"), np.array([[0.2, 0.2], [0.4, 0.0]])),
    ]
    assert tables[0].best == 2
    # c was not tried everywhere. Of a and b: the others of the first say b, of the second a.
    chosen = tuned_on_other_tables(tables)
    np.testing.assert_array_equal(chosen[:2], [[1.0, 0.9], [0.9, 0.9]])
    np.testing.assert_array_equal(in_hindsight(tables)[1:], [[0.5, 0.5], [0.2, 0.2]])
    np.testing.assert_array_equal(in_hindsight(tables[:1]), tuned_on_other_tables(tables[:1]))


def toy_rival(name, *, private=True, calls):
    def predict(split, setting):
        calls.append((name, setting.epsilon))
        return {"low": np.full(len(split.X_test), -1.0), "middle": np.zeros(len(split.X_test))}

    return Rival(name, "ε" if private else "", predict)


def test_errors_are_kept_and_a_run_goes_on_where_it_was(wave, tmp_path):
    calls = []
    rivals = [toy_rival("a", calls=calls), toy_rival("r", private=False, calls=calls)]
    compared = partial(compare_rivals, [wave], budgets=[(1.0, 0.1), (2.0, 0.1)], draws=2, rows=40)
    plain = compared(rivals=rivals)
    assert len(calls) == 2 * (2 + 1)
    first = compared(rivals=rivals, measurements=tmp_path)
    calls.clear()
    again = compared(rivals=[*rivals, toy_rival("b", calls=calls)], measurements=tmp_path)
    assert calls == [("b", 1.0), ("b", 2.0)] * 2
    for found in (plain, first):
        errors = found.private[1.0, 0.1]["a"][0].errors
        np.testing.assert_array_equal(errors, again.private[1.0, 0.1]["a"][0].errors)
        assert found.not_private["r"][0].tunings == ("low", "middle")
    expected = wave.split(1, rows=40).relative_error(np.zeros(20))
    assert again.private[2.0, 0.1]["b"][0].errors[1, 1] == pytest.approx(expected)


def toy_comparison():
    ours = Judged(("untouched",), np.array([13 * [0.5, 0.7]]))
    theirs = Judged(("x", "y"), np.array([13 * [0.4, 0.6], 13 * [0.9, 1.1]]))
    return Compared(
        tables=("t",),
        private={(1.0, 0.01): {DEFAULT.name: [ours], "rival": [theirs]}},
        not_private={"free": [Judged(("z",), np.array([26 * [0.3]]))]},
    )


def test_reports_show_errors_differences_and_tunings():
    found = toy_comparison()
    laid_out = {name: tables[0] for name, tables in report.all_reports(found).items()}
    cells = {
        name: [list(column.cells) for column in table.columns] for name, table in laid_out.items()
    }
    assert cells["overall"][1] == ["0.600 (0.020)", "0.500 (0.020)", "0.300 (0.000)"]
    assert cells["differences"] == [["rival"], ["-0.100; 1"]]
    assert cells["one-tuning"][2] == ["untouched", "x"]
    assert cells["by-table"][1] == ["0.600 (0.020)", "[bold]0.500 (0.020)[/bold]"]
    assert cells["not-private"] == [["t"], ["0.300 (0.000)"]]


def test_who_is_below_the_default_in_hindsight_is_what_docs_say():
    title = "δ = 1e-05: mean over tables, the best tuning of each in hindsight"
    [table] = [one for one in Kept.read("rivals").tables if one.title == title]
    ours, *others = table.rows
    rivals = [row for row in others if "not private" not in row[0]]
    below = {
        name: {row[0] for row in rivals if float(row[place]) < float(ours[place])}
        for place, name in enumerate(table.columns[1:], start=1)
    }
    cells, histogram, sums = "default GP on a histogram", "histogram", "noisy Xᵀy, polynomials"
    assert below == {
        "ε = 0.1": {cells, histogram, sums, "integral GP on a histogram", "noisy mean"},
        "ε = 0.3": {cells, histogram},
        "ε = 1": {cells, histogram, sums, "boosted clipped residuals, features"},
        "ε = 3": {cells},
    }
    page = (PROJECT / "docs" / "rivals.md").read_text(encoding="utf-8")
    assert (
        "At ε = 0.1 a histogram, a regression, the integral process and, hardly, the noisy mean "
        "would be, too, at ε = 0.3 a histogram, and at 1 a histogram, a regression and boosted "
        "features."
    ) in " ".join(page.split())


def test_every_rival_has_a_name_of_its_own_and_says_whom_it_protects():
    names = [rival.name for rival in all_rivals()]
    assert len(set(names)) == len(names)
    for rival in all_rivals():
        if rival.is_private and rival not in (DEFAULT, cloaked.EXACT):
            assert "Neighbours: " in rival.predict.__doc__


@pytest.fixture
def data():
    try:
        load_kung()
    except DatasetUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.usefixtures("data")
def test_the_command_prints_its_tables_and_goes_on_where_it_was(tmp_path):
    options = ["--measurements", str(tmp_path / "kept")]
    with warnings.catch_warnings():
        # Likelihoods of few rows are flat.
        warnings.filterwarnings("ignore", module="sklearn")
        done = CliRunner().invoke(
            command_line.app,
            ["rivals", "--fast", "--output-dir", str(tmp_path), *options],
            env={"COLUMNS": "40"},
        )
    assert done.exit_code == 0, done.output
    assert "…" not in done.output
    assert "noisy Xᵀy" in done.output
    kept = sorted(path.name for path in (tmp_path / "kept").iterdir())
    assert len(kept) == Rivals.small["draws"] * 2

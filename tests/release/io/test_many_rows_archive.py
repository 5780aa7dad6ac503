"""Files of many rows: damage and forgeries that loading refuses, and those that rows betray."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from dataclasses import MISSING, fields, replace

import numpy as np
import pytest
from row_fits import release_rows
from sklearn.gaussian_process.kernels import RBF

from cloakgp import Release, ReleaseFileError
from cloakgp.data import ArrayRows
from cloakgp.design.streaming.rules import LinearRule
from cloakgp.fitting.strategies import Query
from cloakgp.fitting.table import Table
from cloakgp.privacy import Answers, OutputBounds
from cloakgp.privacy.accounting import gaussian_epsilon
from cloakgp.release import Hyperprior, StreamedStrategy

# Budgets here are as large, or tables as small, as each test needs.
pytestmark = pytest.mark.filterwarnings("ignore::cloakgp.PrivacyParameterWarning")

X = np.random.default_rng(8).uniform(0, 4, size=(60, 2))
OUTPUTS = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1]
ROWS = ArrayRows(X, np.full(60, np.nan), chunk_rows=25, jobs=1)


class Foreign(RBF):
    """A kernel that is not scikit-learn's."""


def make(criterion="bayes", kernel=RBF, **settings):
    return release_rows(
        ArrayRows(X, OUTPUTS, chunk_rows=25, jobs=1, input_names=("a", "b")),
        bounds=OutputBounds(-2.0, 3.0),
        epsilon=20.0,
        delta=1e-3,
        query=Query(X=X[:10]),
        kernel=1.5 * kernel(1.5),
        inducing=X[:7],
        gap=1e-2,
        criterion=criterion,
        **settings,
    )


@pytest.fixture(scope="module")
def releases():
    return {
        "ball": make(),
        "linear": make("trace"),
        "learned": make(hyperprior=Hyperprior(), average=True),
    }


@pytest.fixture
def saved(releases, tmp_path):
    def save(name="ball"):
        path = tmp_path / name
        releases[name].save(path, overwrite=True)
        return path

    return save


def forge(path, change, *, digests=True):
    """Edit a file as somebody would who can compute checksums."""
    with zipfile.ZipFile(path) as bundle:
        payloads = {name: bundle.read(name) for name in bundle.namelist()}
    manifest = json.loads(payloads["manifest.json"])
    change(manifest, payloads)
    if digests:
        manifest["sha256"] = {
            name: hashlib.sha256(payloads[name]).hexdigest() for name in manifest["sha256"]
        }
    text = json.dumps(manifest).encode()
    payloads["manifest.json"] = text
    if digests:
        payloads["manifest.sha256"] = hashlib.sha256(text).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as bundle:
        for name, payload in payloads.items():
            bundle.writestr(name, payload)
    return path


STRATEGY, ANSWERS = ("measurements", 0, "strategy"), ("measurements", 0, "answers")
OF_ANSWERS = {"values", "noise_sd", "centre", "insecure", "guarantee"}
OF_RELEASE = {"input_names", "output_name", "prior", "likelihood", "learned", "version"}


def located(path):
    """Return where an entry stands: in the release, its strategy, or its answers."""
    if path[0] in OF_RELEASE:
        return path
    if path[0] == "question":
        return ("measurements", 0, *path)
    return (*(ANSWERS if path[0] in OF_ANSWERS else STRATEGY), *path)


def place_of(manifest, path):
    for step in path:
        manifest = manifest[step]
    return manifest


def bounds(lo, hi):
    return {"type": "bounds", "lo": lo, "hi": hi}


def setting(*path, to):
    path = located(path)

    def change(manifest, _):
        place_of(manifest, path[:-1])[path[-1]] = to

    return change


def scaling(*path, by):
    path = located(path)

    def change(manifest, _):
        place_of(manifest, path[:-1])[path[-1]] *= by

    return change


def without(*path):
    path = located(path)

    def change(manifest, _):
        del place_of(manifest, path[:-1])[path[-1]]

    return change


def array_bytes(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, allow_pickle=True)
    return buffer.getvalue()


def replacing(*path, by):
    """Put something else in place of an array: the result of a function of it."""

    path = located(path)

    def change(manifest, payloads):
        name = place_of(manifest, path)
        array = np.lib.format.read_array(io.BytesIO(payloads[name]))
        payloads[name] = array_bytes(by(array))

    return change


def all_of(*changes):
    def change(manifest, payloads):
        for one in changes:
            one(manifest, payloads)

    return change


NAN = float("nan")
FREE = {"mu": 0.0, "epsilon": 1e-6, "delta": 1e-12, "answers": 0, "coarseness": 0.0}
FORGERIES = {
    # Less noise than is said.
    "less noise": (scaling("noise_sd", by=0.99), "noise is less than"),
    "no noise": (setting("noise_sd", to=0.0), "carry no noise"),
    "negative noise": (scaling("noise_sd", by=-1.0), "carry no noise"),
    "noise of NaN": (setting("noise_sd", to=NAN), "carry no noise"),
    "infinite noise": (setting("noise_sd", to=float("inf")), "carry no noise"),
    "longer columns": (scaling("longest", by=1.01), "noise is less than"),
    "wider bounds": (setting("question", to=bounds(-200.0, 201.0)), "noise is less than"),
    # Another guarantee than was had.
    "smaller epsilon": (setting("guarantee", "epsilon", to=0.5), "guarantee does not hold"),
    "smaller delta": (setting("guarantee", "delta", to=1e-9), "guarantee does not hold"),
    "delta of seven": (setting("guarantee", "delta", to=7.0), "delta"),
    "negative epsilon": (setting("guarantee", "epsilon", to=-1.0), "damaged"),
    "smaller mu": (setting("guarantee", "mu", to=0.01), "noise is less than"),
    "larger mu": (setting("guarantee", "mu", to=90.0), "guarantee does not hold"),
    "mu of nothing": (setting("guarantee", "mu", to=0.0), "carry no noise"),
    "mu of NaN": (setting("guarantee", "mu", to=NAN), "guarantee is damaged"),
    "fewer answers": (setting("guarantee", "answers", to=1), "guarantee is damaged"),
    "coarse noise": (setting("guarantee", "coarseness", to=2.0), "guarantee does not hold"),
    "negative coarseness": (
        all_of(
            scaling("noise_sd", by=1e-6),
            scaling("guarantee", "mu", by=1e6),
            setting("guarantee", "coarseness", to=-1e9),
        ),
        "guarantee is damaged",
    ),
    "nothing was asked, and here are the answers": (
        all_of(
            setting("longest", to=0.0), setting("noise_sd", to=0.0), setting("guarantee", to=FREE)
        ),
        "questions of length 0",
    ),
    "nothing was asked, and here are the sums": (
        all_of(
            setting("longest", to=0.0),
            setting("noise_sd", to=0.0),
            setting("guarantee", to=FREE),
            replacing("values", by=np.zeros_like),
        ),
        "questions of length 0",
    ),
    # Rows.
    "no rows": (setting("rows", to=0), "rows are damaged"),
    "negative rows": (setting("rows", to=-60), "rows are damaged"),
    "half a row": (setting("rows", to=60.5), "'rows' is damaged"),
    "rows in words": (setting("rows", to="60"), "'rows' is damaged"),
    "true rows": (setting("chunk_rows", to=True), "'chunk_rows' is damaged"),
    "chunks of nothing": (setting("chunk_rows", to=0), "rows are damaged"),
    "chunks longer than the table": (setting("chunk_rows", to=61), "rows are damaged"),
    "longest of NaN": (setting("longest", to=NAN), "rows are damaged"),
    "negative longest": (setting("longest", to=-1.0), "rows are damaged"),
    "infinite longest": (setting("longest", to=float("inf")), "rows are damaged"),
    # Rules.
    "unknown rule": (setting("rule", "type", to="magic"), "unknown kind"),
    "rule of nothing": (setting("rule", to=None), "damaged"),
    "curvatures missing": (without("rule", "curvatures"), "damaged"),
    "negative curvatures": (
        replacing("rule", "curvatures", by=np.negative),
        "its rule is damaged",
    ),
    "too few curvatures": (replacing("rule", "curvatures", by=lambda q: q[1:]), "rule is damaged"),
    "rule of fewer answers": (replacing("rule", "matrix", by=lambda m: m[1:]), "damaged|do not"),
    "rule of more inducing": (
        replacing("rule", "matrix", by=lambda m: np.hstack([m, m])),
        "do not fit",
    ),
    "rule of NaN": (replacing("rule", "matrix", by=lambda m: m * NAN), "not of finite numbers"),
    # Sums.
    "sums of NaN": (
        replacing("sums", 0, "channels", 0, "noise", by=lambda b: b * NAN),
        "not of finite numbers",
    ),
    "no covariance": (
        replacing("sums", 0, "channels", 0, "noise", by=lambda b: b - 1e9 * np.eye(len(b))),
        "damaged",
    ),
    "sums of fewer features": (
        replacing("sums", 0, "channels", 0, "features", by=lambda a: a[:, 1:]),
        "do not fit",
    ),
    "sums of fewer answers": (
        replacing("sums", 0, "channels", 0, "noise", by=lambda b: b[1:, 1:]),
        "do not fit each other",
    ),
    "too few totals": (replacing("row_totals", by=lambda t: t[1:]), "do not fit"),
    "no sums": (setting("sums", to=[]), "priors do not fit its sums"),
    "sums without priors": (
        lambda manifest, _: [
            one.update(prior=None) for one in place_of(manifest, STRATEGY)["sums"]
        ],
        "'prior' is damaged",
    ),
    # Everything else.
    "too few answers": (replacing("values", by=lambda a: a[1:]), "do not fit"),
    "answers in a column": (replacing("values", by=lambda a: a[:, None]), "do not fit"),
    "answers of NaN": (replacing("values", by=lambda a: a * NAN), "not of finite numbers"),
    "answers in 32 bits": (
        replacing("values", by=lambda a: a.astype(np.float32)),
        "an array is written in another way",
    ),
    "pickled answers": (
        replacing("values", by=lambda _: np.array([{"a": 1}], dtype=object)),
        "an array is written in another way",
    ),
    "a centre": (setting("centre", to=0.4), "holds something unknown"),
    "bounds upside down": (setting("question", to=bounds(3.0, -2.0)), "damaged"),
    "one bound": (setting("question", to={"type": "bounds", "lo": 3.0}), "damaged|lacks"),
    "seeded or not": (setting("insecure", to="no"), "'insecure' is damaged"),
    "seeded by zero": (setting("insecure", to=0), "'insecure' is damaged"),
    "certificate of wishes": (setting("certificate", "criterion", to="wishes"), "certificate"),
    "certificate of NaN": (setting("certificate", "gap", to=NAN), "certificate"),
    "query of three inputs": (
        replacing("X_query", by=lambda q: np.hstack([q, q[:, :1]])),
        "do not fit",
    ),
    "too few query weights": (replacing("query_weights", by=lambda w: w[1:]), "do not fit"),
    "negative query weights": (replacing("query_weights", by=np.negative), "query weights"),
    "ranges of one input": (replacing("input_ranges", by=lambda r: r[:, :1]), "do not fit"),
    "a single range": (replacing("input_ranges", by=lambda r: r[0]), "damaged"),
    "dense prior": (setting("prior", "type", to="exact"), "holds something unknown"),
    "unknown approximation": (
        setting("prior", "approximation", to="magic"),
        "unknown approx|'approximation' is damaged",
    ),
    "negative noise variance": (setting("prior", "noise_variance", to=-1.0), "damaged"),
    "inducing of one input": (
        replacing("prior", "inducing", by=lambda z: z[:, :1]),
        "do not fit",
    ),
    "fewer inducing": (replacing("prior", "inducing", by=lambda z: z[1:]), "do not fit"),
    "array that is not there": (setting("row_totals", to="array_99.npy"), "was changed"),
    "array from elsewhere": (setting("row_totals", to="../x.npy"), "was changed"),
    "newer version": (setting("version", to=99), "install a newer cloakgp"),
}
# All that has no default: other entries may be missing from files of before there were such.
EVERY_ENTRY = [
    field.name
    for kind in (StreamedStrategy, Answers, Release)
    for field in fields(kind)
    if field.default is MISSING and field.name != "measurements"
]


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_with_good_checksums_are_refused(name, saved):
    change, complaint = FORGERIES[name]
    path = forge(saved(), change)
    with pytest.raises(ReleaseFileError, match=complaint) as caught:
        Release.load(path)
    assert str(path) in str(caught.value)


def test_what_is_not_forged_is_not_refused(saved):
    """The tests above can fail: the same file, taken apart and put together again, loads."""
    Release.load(forge(saved(), lambda *_: None)).verify(ROWS)


@pytest.mark.parametrize("entry", EVERY_ENTRY)
def test_no_entry_may_be_missing(entry, saved):
    with pytest.raises(ReleaseFileError, match="damaged"):
        Release.load(forge(saved(), without(entry)))


def test_unknown_entries_are_refused(saved):
    for place in ((), STRATEGY, ANSWERS):
        path = forge(saved(), lambda m, _, at=place: place_of(m, at).update(more=1))
        with pytest.raises(ReleaseFileError, match="holds something unknown: 'more'"):
            Release.load(path)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (setting("learned", 0, "weight", to=0.9), "weights of its priors"),
        (setting("learned", 0, "weight", to=-1.0), "weights of its priors"),
        (setting("learned", 0, "weight", to=NAN), "weights of its priors"),
        (without("learned", 1), "weights of its priors"),
        (replacing("sums", 1, "channels", 0, "noise", by=lambda b: b[1:, 1:]), "do not fit"),
        (replacing("sums", 1, "channels", 0, "features", by=lambda a: a[:, 1:]), "do not fit"),
        (replacing("sums", 1, "prior", "inducing", by=lambda z: z[1:]), "do not fit"),
        (setting("learned", 1, "prior", "noise_variance", to=7.0), "priors of their fit alone"),
    ],
)
def test_forged_priors_are_refused(change, complaint, saved):
    with pytest.raises(ReleaseFileError, match=complaint):
        Release.load(forge(saved("learned"), change))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (replacing("reconstruction", by=np.transpose), "an array is written in another way"),
        (replacing("reconstruction", by=lambda r: r * NAN), "not of finite numbers"),
        (setting("rule", "type", to="ball rule"), "damaged"),
    ],
)
def test_forged_reconstructions_and_rules_are_refused(change, complaint, saved):
    with pytest.raises(ReleaseFileError, match=complaint):
        Release.load(forge(saved("linear"), change))


@pytest.mark.parametrize(
    "change", [setting("guarantee", "epsilon", to=0.1), setting("rows", to=61)]
)
def test_careless_edits_are_noticed(change, saved):
    with pytest.raises(ReleaseFileError, match="was changed after it was written"):
        Release.load(forge(saved(), change, digests=False))


def test_truncated_files_are_refused(saved):
    path = saved()
    content = path.read_bytes()
    for length in sorted({*range(0, len(content), 499), len(content) - 1, len(content) - 23}):
        path.write_bytes(content[:length])
        with pytest.raises(ReleaseFileError):
            Release.load(path)


# What a file cannot betray, rows do.


def shrunk(manifest, _):
    """Columns that are said to be a thousandth as long, with noise and guarantee to match."""
    place_of(manifest, STRATEGY)["longest"] /= 1000
    guarantee = place_of(manifest, ANSWERS)["guarantee"]
    guarantee["mu"] /= 1000
    guarantee["epsilon"] = gaussian_epsilon(guarantee["mu"], 5e-4)


def curved_less(manifest, payloads):
    replacing("rule", "curvatures", by=lambda q: q * 0)(manifest, payloads)
    replacing("rule", "matrix", by=lambda m: -m)(manifest, payloads)


def shortened(manifest, _):
    place_of(manifest, STRATEGY)["longest"] *= 1 - 1e-6


def another_kernel(manifest, _):
    """Shorten every lengthscale."""

    def walk(tree):
        for key, value in tree.items():
            if key == "length_scale":
                tree[key] = 0.3
            elif isinstance(value, dict):
                walk(value)

    before = json.dumps(manifest["prior"]["kernel"])
    strategy = place_of(manifest, STRATEGY)
    for prior in (
        manifest["prior"],
        strategy["prior"],
        *(one["prior"] for one in strategy["sums"]),
    ):
        walk(prior["kernel"])
    assert json.dumps(manifest["prior"]["kernel"]) != before


BETRAYED = {
    "shrunk columns": ("ball", shrunk, "longest column"),
    "slightly shrunk columns": ("ball", shortened, "longest column"),
    "linear for ball": (
        "ball",
        all_of(setting("rule", "type", to="linear rule"), without("rule", "curvatures")),
        "longest|other rows",
    ),
    "a steeper rule": ("linear", replacing("rule", "matrix", by=lambda m: 2 * m), "longest"),
    "another rule of the same lengths": ("ball", curved_less, "longest|other rows"),
    "another kernel": ("linear", another_kernel, "longest column|other rows"),
    "other inducing inputs": (
        "ball",
        replacing("prior", "inducing", by=lambda z: z + 0.5),
        "longest|other rows",
    ),
    "more rows": ("ball", setting("rows", to=61), "about 61 rows, not 60"),
    "other totals": ("ball", replacing("row_totals", by=lambda t: t + 1e-3), "other rows"),
}


@pytest.mark.parametrize("name", BETRAYED)
def test_lies_about_columns_do_not_verify(name, saved):
    kind, change, complaint = BETRAYED[name]
    loaded = Release.load(forge(saved(kind), change))
    with pytest.raises(ValueError, match=complaint):
        loaded.verify(ROWS)


def test_overflowing_rules_do_not_verify(releases):
    """Columns of infinity less infinity are no numbers, and no column is shown to be short."""
    release = releases["linear"]
    strategy = release.measurements[0].strategy
    huge = np.full_like(strategy.rule.matrix, 1e308)
    huge[:, ::2] *= -1
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"longest column|other rows"):
        replace(strategy, rule=LinearRule(matrix=huge)).verify(
            ROWS, question=release.measurements[0].question
        )


# Kinds, kernels and rules.


def test_foreign_kernels_load_with_their_class(tmp_path):
    release = make(kernel=Foreign)
    release.save(tmp_path / "a")
    with pytest.raises(ReleaseFileError, match="unknown kernel 'Foreign'"):
        Release.load(tmp_path / "a")
    back = Release.load(tmp_path / "a", kernels=[Foreign])
    assert back.predict(X).tobytes() == release.predict(X).tobytes()


def test_foreign_rules_cannot_be_saved(releases, tmp_path):
    class Odd:
        answers = 3

    [one] = releases["linear"].measurements
    odd = replace(one, strategy=replace(one.strategy, rule=Odd()))
    with pytest.raises(ValueError, match="Odd cannot be written to a file"):
        replace(releases["linear"], measurements=(odd,)).save(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_release_that_asked_nothing_comes_back(tmp_path, monkeypatch):
    """A latent function that is zero everywhere the rows are leaves no question to be asked.

    Fits refuse it; a file may hold it.
    """
    monkeypatch.setattr(Table, "check_asks", lambda *_: None)
    release = make("trace")
    empty = release_rows(
        ArrayRows(X + 1e6, OUTPUTS, jobs=1),
        bounds=OutputBounds(-2.0, 3.0),
        epsilon=1.0,
        delta=1e-3,
        query=Query(X=X[:10]),
        kernel=RBF(1.5),
        inducing=X[:7],
        criterion="trace",
    )
    strategy = empty.measurements[0].strategy
    assert (strategy.n_answers, empty.guarantee.mu, strategy.longest_column()) == (0, 0.0, 0.0)
    empty.save(tmp_path / "empty")
    back = Release.load(tmp_path / "empty")
    np.testing.assert_array_equal(back.predict(X[:3]), np.full(3, 0.5))
    np.testing.assert_array_equal(back.predict(X[:3], return_std=True)[1], np.ones(3))
    assert back.guarantee == empty.guarantee
    assert back.guarantee.epsilon == release.guarantee.epsilon / 20

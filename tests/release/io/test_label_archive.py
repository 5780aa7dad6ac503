"""Files of classification: the same doubles back, and no forgery that goes unseen."""

from __future__ import annotations

import datetime as dt
import hashlib
import io
import json
import zipfile

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

from cloakgp import DPGPClassifier, Release, ReleaseFileError
from cloakgp.release.io.codec import to_tree

KERNEL = ConstantKernel(4.0) * RBF(1.5)
Z = np.array([[0.1], [3.3], [7.0]])
X = np.linspace(0, 6, 12)[:, None]
POSITIONS = np.arange(12) // 2

KINDS = {
    "ints": ([0, 1], {}),
    "words": (["well", "ill"], {"link": "logit"}),
    "truth values": ([False, True], {"learn": "map"}),
    "floats": ([0.1, 2.5], {"learn": "average"}),
    "three": (["a", "b", "ç"], {"learn": "average", "kernel": RBF(1.5)}),
    "four ints": ([5, -3, 2**60, 0], {}),
    "mixed": (["a", 1, 2.5], {}),
    "sparse": ([0, 1], {"inducing": 4}),
    "sor": ([0, 1, 2], {"inducing": [[0.0], [2.0], [5.0]], "approximation": "sor"}),
    "white": ([0, 1], {"kernel": KERNEL + WhiteKernel(0.1), "learn": "map"}),
    "laplace": ([0, 1], {"criterion": "newton", "link": "logit", "steps": 2}),
    "trace": ([0, 1], {"criterion": "trace"}),
    "secure": ([0, 1], {"insecure_seed": None}),
}


def fitted(classes, **changes):
    budget = {"epsilon": 2.0, "delta": 0.01, "noise": "gaussian"}
    settings = {"kernel": KERNEL, "learn": None, "insecure_seed": 3, **budget}
    model = DPGPClassifier(classes=classes, **{**settings, **changes})
    y = np.empty(12, dtype=object)
    y[:] = [classes[position % len(classes)] for position in POSITIONS]
    return model.fit(X, y).release_


@pytest.mark.parametrize("name", KINDS)
def test_the_same_doubles_come_back(name, tmp_path):
    classes, changes = KINDS[name]
    release = fitted(classes, **changes)
    release.save(tmp_path / "file")
    back = Release.load(tmp_path / "file")
    assert back.classes == release.classes
    assert [type(label) for label in back.classes] == [type(label) for label in release.classes]
    assert back.guarantee == release.guarantee
    assert back.insecure == release.insecure
    assert (back.inference, back.hyperprior) == (release.inference, release.hyperprior)
    assert back.average is release.average
    assert (back.input_names, back.output_name) == (release.input_names, release.output_name)
    assert back.likelihood == release.likelihood
    assert to_tree(back.prior) == to_tree(release.prior)
    assert len(back.learned) == len(release.learned)
    for noise in (True, False):
        mine, theirs = (one.predict_proba(Z, privacy_noise=noise) for one in (release, back))
        assert mine.tobytes() == theirs.tobytes()
    for part in ("mean", "sd", "privacy_sd"):
        mine, theirs = (getattr(one.predict_latent(Z), part) for one in (release, back))
        assert mine.tobytes() == theirs.tobytes()
    assert back.predict(Z) == release.predict(Z)
    # Once more, to the same file.
    back.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "file").read_bytes()


def test_combined_tables_come_back(tmp_path):
    one = fitted([0, 1])
    both = one.combine(fitted([0, 1], insecure_seed=8), same_rows=False)
    both.save(tmp_path / "file")
    back = Release.load(tmp_path / "file")
    assert [part.strategy.table for part in back.measurements] == [0, 1]
    assert back.guarantee == both.guarantee
    assert back.predict_proba(Z).tobytes() == both.predict_proba(Z).tobytes()


def test_files_hold_no_labels_and_no_pickle(tmp_path):
    """Each class is named twice: in the declaration, and for readers in other languages."""
    release = fitted(["goitre", "croup"], insecure_seed=None)
    release.save(tmp_path / "file")
    with zipfile.ZipFile(tmp_path / "file") as bundle:
        payloads = {name: bundle.read(name) for name in bundle.namelist()}
    everything = b"".join(payloads.values())
    for name in (b"goitre", b"croup"):
        assert everything.count(name) == 2
    classes = release.measurements[0].question
    labels = np.array(["goitre", "croup"])[POSITIONS % 2]
    encoded = classes.encode(classes.read(labels, rows=12))
    strategy = release.measurements[0].strategy.matrix
    assert encoded.tobytes() not in everything
    for number in (strategy @ encoded).ravel():
        assert np.float64(number).tobytes() not in everything
    assert release.measurements[0].answers.values.tobytes() in everything
    for name, payload in payloads.items():
        if name.endswith(".npy"):
            np.lib.format.read_array(io.BytesIO(payload), allow_pickle=False)


class OneMoment(dt.datetime):
    """Two files that are made a second apart say so, and would differ by that."""

    @classmethod
    def now(cls, tz=None):
        return cls(2024, 1, 1, tzinfo=tz)


def test_files_of_neighbours_with_the_same_answers_are_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "cloakgp.privacy.noise.gaussian.add_discrete_gaussian",
        lambda integers, **_: np.arange(len(integers)) * 2**36,
    )
    monkeypatch.setattr("cloakgp.release.provenance.datetime", OneMoment)
    for count in (2, 3):
        for name, label in (("one", 0), ("two", count - 1)):
            y = POSITIONS % count
            y[5] = label
            budget = {"epsilon": 1.0, "delta": 0.01, "noise": "gaussian"}
            model = DPGPClassifier(KERNEL, classes=range(count), learn="map", **budget)
            model.fit(X, y).release_.save(tmp_path / name, overwrite=True)
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


# --- forgeries ---


def forge(path, change):
    """Edit a file as somebody would who can compute checksums."""
    with zipfile.ZipFile(path) as bundle:
        payloads = {name: bundle.read(name) for name in bundle.namelist()}
    manifest = json.loads(payloads["manifest.json"])
    change(manifest, payloads)
    manifest["sha256"] = {
        name: hashlib.sha256(payloads[name]).hexdigest() for name in manifest["sha256"]
    }
    text = json.dumps(manifest).encode()
    payloads["manifest.json"] = text
    payloads["manifest.sha256"] = hashlib.sha256(text).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as bundle:
        for name, payload in payloads.items():
            bundle.writestr(name, payload)


def edited(entry, edit):
    """Return a change of one array of the first measurement."""

    def change(manifest, payloads):
        part = "answers" if entry == "values" else "strategy"
        place = manifest["measurements"][0][part]
        array = np.lib.format.read_array(io.BytesIO(payloads[place[entry]]))
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, np.ascontiguousarray(edit(array)))
        # Under a name of its own: others may be kept under the same one.
        place[entry] = f"{entry}.npy"
        payloads[place[entry]] = buffer.getvalue()
        manifest["sha256"][place[entry]] = ""

    return change


def answers(**changes):
    return lambda manifest, _: manifest["measurements"][0]["answers"].update(changes)


def guarantee(**changes):
    return lambda manifest, _: manifest["measurements"][0]["answers"]["guarantee"].update(changes)


def likelihood(**changes):
    return lambda manifest, _: manifest["likelihood"].update(changes)


def classes(labels):
    return lambda m, _: m["measurements"][0]["question"].update(labels=labels)


def top(**changes):
    return lambda manifest, _: manifest.update(changes)


def scaled(factor):
    def change(manifest, _):
        manifest["measurements"][0]["answers"]["noise_sd"] *= factor

    return change


FORGERIES = {
    "less noise": (scaled(0.999), "noise is less than its guarantee needs"),
    "no noise": (answers(noise_sd=0.0), "carry no noise"),
    "negative noise": (scaled(-1.0), "carry no noise"),
    "noise of NaN": (answers(noise_sd=float("nan")), "carry no noise"),
    "endless noise": (answers(noise_sd=float("inf")), "carry no noise"),
    "longer questions": (edited("matrix", lambda R: 1.01 * R), "noise is less"),
    "a smaller mu": (guarantee(mu=1e-3), "noise is less"),
    "a larger mu": (guarantee(mu=100.0), "guarantee does not hold"),
    "a smaller epsilon": (guarantee(epsilon=0.5), "guarantee does not hold"),
    "a smaller delta": (guarantee(delta=1e-6), "guarantee does not hold"),
    "a delta of one": (guarantee(delta=1.0), "delta"),
    "fewer answers": (guarantee(answers=1), "guarantee is damaged"),
    "a class more": (classes([0, 1, 2, 3]), "do not fit|damaged"),
    "a class less": (classes([0, 1]), "do not fit|damaged"),
    "one class": (classes([0]), "two are needed"),
    "a class twice": (classes([0, 1, 1]), "declared twice"),
    "classes of nothing": (classes([0, 1, None]), "is damaged"),
    "classes as a word": (classes("abc"), "'labels' is damaged"),
    "a mean less": (likelihood(latent_means=[0.0, 0.0]), "prior is damaged"),
    "a mean of NaN": (likelihood(latent_means=[0.0, 0.0, float("nan")]), "prior is damaged"),
    "another link": (likelihood(link_name="cloglog"), "'link_name' is damaged"),
    "another likelihood": (top(likelihood={"type": "numbers"}), "something else than its prior"),
    "another inference": (top(inference="oracle"), "'inference' is damaged"),
    "another learning": (top(average="mcmc"), "'average' is damaged"),
    "the papers' iteration": (top(inference="newton"), "do not determine the papers' iteration"),
    "no measurement": (top(measurements=[]), "no measurement"),
    "weights": (
        lambda m, _: m.update(
            learned=[{"weight": 0.5, "prior": m["prior"], "likelihood": m["likelihood"]}]
        ),
        "weights of its priors",
    ),
    "fewer answers than questions": (edited("values", lambda a: a[:-1]), "do not fit"),
    "a channel less": (edited("values", lambda a: a[:, :-1]), "do not fit"),
    "answers in a row": (edited("values", lambda a: a.ravel()), "do not fit"),
    "answers of NaN": (edited("values", lambda a: a * np.nan), "finite"),
    "a row less": (edited("X", lambda rows: rows[:-1]), "do not fit"),
    "a column more": (edited("X_query", lambda Q: np.hstack([Q, Q])), "do not fit"),
    "questions of no size": (edited("matrix", lambda R: 1e-200 * R), "out of scale"),
    "a kind": (top(kind="statistics"), "open it with cloakgp"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries_with_good_checksums_are_refused(name, tmp_path):
    change, complaint = FORGERIES[name]
    fitted([0, 1, 2]).save(tmp_path / "file")
    forge(tmp_path / "file", change)
    with pytest.raises(ReleaseFileError, match=complaint):
        Release.load(tmp_path / "file")


def test_an_honest_edit_would_load(tmp_path):
    """The forgeries above fail for what they change, not for having been repacked."""
    fitted([0, 1, 2]).save(tmp_path / "file")
    forge(tmp_path / "file", scaled(1.5))
    assert Release.load(tmp_path / "file").measurements[0].answers.noise_sd > 0


def test_careless_edits_are_noticed(tmp_path):
    fitted([0, 1]).save(tmp_path / "file")
    with zipfile.ZipFile(tmp_path / "file") as bundle:
        payloads = {name: bundle.read(name) for name in bundle.namelist()}
    payloads["manifest.json"] = payloads["manifest.json"].replace(b'"probit"', b'"logit"')
    with zipfile.ZipFile(tmp_path / "file", "w") as bundle:
        for name, payload in payloads.items():
            bundle.writestr(name, payload)
    with pytest.raises(ReleaseFileError, match="changed after it was written"):
        Release.load(tmp_path / "file")


PAPERS_FORGERIES = {
    "fewer query points": lambda m, p: [
        edited(entry, lambda array: array[:-1])(m, p) for entry in ("X_query", "reconstruction")
    ],
    "other rows later": lambda m, _: (
        m["measurements"][1]["strategy"].update(table=1),
        m["measurements"][1]["strategy"].update(
            X=m["measurements"][0]["strategy"]["reconstruction"]
        ),
    ),
    "another table": lambda m, _: m["measurements"][1]["strategy"].update(table=1),
}


@pytest.mark.parametrize("name", PAPERS_FORGERIES)
def test_what_is_no_iteration_is_not_read_as_one(name, tmp_path):
    classes, changes = KINDS["laplace"]
    fitted(classes, **changes).save(tmp_path / "file")
    forge(tmp_path / "file", PAPERS_FORGERIES[name])
    with pytest.raises(ReleaseFileError):
        Release.load(tmp_path / "file")


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Release.load(tmp_path / "nothing")


def test_foreign_kernels_load_with_their_class(tmp_path):
    release = fitted([0, 1], kernel=Foreign(2.0))
    release.save(tmp_path / "file")
    with pytest.raises(ReleaseFileError, match="Foreign"):
        Release.load(tmp_path / "file")
    back = Release.load(tmp_path / "file", kernels=[Foreign])
    np.testing.assert_array_equal(back.predict_proba(Z), release.predict_proba(Z))


class Foreign(RBF):
    """A kernel from elsewhere."""

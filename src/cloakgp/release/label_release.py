"""The published object of classification: everything public about visits to private labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models.likelihoods.classes import LabelPrior
from cloakgp.privacy import Guarantee, compose
from cloakgp.privacy.accounting import short_form
from cloakgp.privacy.labels import Classes, ClassLabel
from cloakgp.release.hyperparameters.classification import WeightedLabelPrior, learn_labels
from cloakgp.release.io import label_archive
from cloakgp.release.label_measurement import LabelMeasurement, sign_answers
from cloakgp.release.measurement import check_noise_is_new, renumbered
from cloakgp.release.posterior.probabilities import LabelPredictor, LatentPrediction, Rule
from cloakgp.utils.arrays import Array, as_inputs
from cloakgp.utils.files import write_file

Learning = Literal["map", "average"]


@dataclass(frozen=True, eq=False)
class LabelRelease:
    """Probabilities of classes anywhere, from noisy answers; a public object.

    It holds public inputs, a public prior, the declared classes, the questions asked, the noisy
    answers and what they cost: no label, nor anything computed from labels without noise. The link,
    every iteration and all learning come after the noise and cost no more privacy.

    Attributes
    ----------
    prior : LabelPrior
        As declared, before any answer was seen.
    measurements : tuple of LabelMeasurement
    rule : {"posterior", "laplace"}
        How predictions are read off the answers: by the posterior, or by the papers' iteration.
    learning : {"map", "average"} or None
        What is learned from the answers about hyperparameters, again whenever answers are added.
    learn_means : bool
        Whether the latent means, and so the classes' rates, are learned too.
    learned : tuple of WeightedLabelPrior
        The result; empty if nothing was learned.
    input_names : tuple of str
        Names of the public columns, in order.
    output_name : str
        Name of the private column.

    See Also
    --------
    cloakgp.DPGPClassifier : Makes releases.

    Examples
    --------
    >>> from cloakgp import DPGPClassifier
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> y = np.where(X[:, 0] > 5, "ill", "well")
    >>> model = DPGPClassifier(classes=["ill", "well"], epsilon=1.0, delta=1e-3).fit(X, y)
    >>> model.release_.predict_proba([[3.0], [9.0]]).shape
    (2, 2)
    >>> print(model.release_.guarantee)
    (1, 0.001)-differential privacy (mu = 0.3884)
    """

    prior: LabelPrior
    measurements: tuple[LabelMeasurement, ...]
    rule: Rule = "posterior"
    learning: Learning | None = None
    learn_means: bool = True
    learned: tuple[WeightedLabelPrior, ...] = ()
    input_names: tuple[str, ...] = ()
    output_name: str = "y"

    @property
    def classes(self) -> tuple[ClassLabel, ...]:
        """The declared classes, in the order of the columns of `predict_proba`."""
        return self._classes.labels

    @property
    def guarantee(self) -> Guarantee:
        """What it all cost anyone whose label was in every measurement."""
        return compose(*(one.answers.guarantee for one in self.measurements))

    @property
    def insecure(self) -> bool:
        """True if any noise came from a fixed seed: the release is then not private."""
        return any(one.answers.insecure for one in self.measurements)

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return int(self.measurements[0].questions.X.shape[1])

    @property
    def fitted_prior(self) -> LabelPrior:
        """The prior that predictions use most: the learned one, or the declared one."""
        return max(self._priors, key=lambda one: one.weight).prior

    def predict(self, X: ArrayLike) -> list[ClassLabel]:
        """Return the most probable class at any inputs, at no further cost in privacy.

        Of classes that are equally probable, the first.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `Release.predict`: columns of a table are found by name.
        """
        return [self.classes[index] for index in self.predict_proba(X).argmax(axis=1)]

    def predict_proba(self, X: ArrayLike, *, privacy_noise: bool = True) -> Array:
        """Return the probability of every class at any inputs.

        Averaged over everything that is not known: the latent function given the labels, the
        privacy noise on what is published of them, and, with ``learning="average"``, the
        hyperparameters.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `Release.predict`: columns of a table are found by name.
        privacy_noise : bool
            False leaves out what the privacy noise makes unknown, as the papers do: probabilities
            are then nearer to 0 and 1 than the answers warrant.

        Returns
        -------
        array of shape (P, C)
            In the order of `classes`; each row adds up to 1.
        """
        points = as_inputs(X, input_names=self.input_names, n_inputs=self.n_inputs)
        probabilities = np.zeros((len(points), len(self.classes)))
        for predictor, weight in self._predictors:
            probabilities += weight * predictor.probabilities(points, privacy_noise=privacy_noise)
        return probabilities

    def predict_latent(self, X: ArrayLike) -> LatentPrediction:
        """Return what is known of the latent functions at any inputs.

        Parameters
        ----------
        X : array-like or table of shape (P, D)
            As for `Release.predict`: columns of a table are found by name.

        Returns
        -------
        LatentPrediction
            Mean, sd, and the part of the sd that is due to privacy noise. With two classes, of the
            one function that is high where the second class is probable; else of one per class.
        """
        points = as_inputs(X, input_names=self.input_names, n_inputs=self.n_inputs)
        parts = [predictor.functions.latent(points) for predictor, _ in self._predictors]
        weights = np.array([weight for _, weight in self._predictors])
        means, variances, shares = (np.stack(part) for part in zip(*parts, strict=True))
        mean = np.tensordot(weights, means, axes=1)
        # The law of total variance: within the priors, and between them.
        variance = np.tensordot(weights, variances + np.square(means - mean), axes=1)
        share = np.tensordot(weights, shares, axes=1)
        shape = (len(points),) if self._classes.channels == 1 else mean.shape
        return LatentPrediction(
            mean=mean.reshape(shape),
            sd=np.sqrt(variance).reshape(shape),
            privacy_sd=np.sqrt(share).reshape(shape),
        )

    def combine(self, *others: LabelRelease, same_rows: bool | None = None) -> LabelRelease:
        """Return one release that knows what this and others know.

        The guarantee is that of all together, for somebody whose label was in every one of them.
        Predictions are by the posterior, also where parts were made for the papers' iteration.

        Parameters
        ----------
        *others : LabelRelease
            With the same prior, classes and columns.
        same_rows : bool, optional
            Whether tables with equal inputs are the same rows (asked again: the same labels) or
            other rows at the same places. If not given, equal inputs are taken to be the same rows.

        Raises
        ------
        ValueError
            If priors, classes or columns differ, ``same_rows=True`` and the inputs do, or
            ``same_rows=False`` and parts are copies of one visit.
        """
        for other in others:
            if label_archive.prior_to_tree(other.prior) != label_archive.prior_to_tree(self.prior):
                raise ValueError("releases with different priors cannot be combined: refit one")
            if other.classes != self.classes:
                raise ValueError("releases about different classes cannot be combined")
            if (other.input_names, other.output_name, other.n_inputs) != (
                self.input_names,
                self.output_name,
                self.n_inputs,
            ):
                raise ValueError("releases about different columns cannot be combined")
        together = list(self.measurements)
        for other in others:
            tables = renumbered(
                [(one.questions.table, one.questions.X) for one in together],
                [(one.questions.table, one.questions.X) for one in other.measurements],
                same_rows=same_rows,
            )
            for one in other.measurements:
                questions = replace(one.questions, table=tables[one.questions.table])
                check_noise_is_new(
                    one.answers,
                    (
                        known.answers
                        for known in together
                        if known.questions.table != questions.table
                    ),
                )
                if not any(_same_answers(one, known, questions.table) for known in together):
                    together.append(replace(one, questions=questions))
        return replace(self, rule="posterior").with_measurements(together)

    def learn(self, learning: Learning | None = "map") -> LabelRelease:
        """Return the same answers with hyperparameters fitted to them, at no cost in privacy.

        Parameters
        ----------
        learning : {"map", "average"} or None
            Their maximum a posteriori, an average over their posterior, or those declared.
        """
        return replace(self, learning=learning).with_measurements(self.measurements)

    def with_measurements(self, measurements: Sequence[LabelMeasurement]) -> LabelRelease:
        """Return a release of other answers, and learn from them what this one learned."""
        learned: tuple[WeightedLabelPrior, ...] = ()
        if self.learning is not None:
            learned = learn_labels(
                self.prior,
                sign_answers(measurements),
                means=self.learn_means,
                average=self.learning == "average",
            )
        return replace(self, measurements=tuple(measurements), learned=learned)

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, without pickle.

        Parameters
        ----------
        path : str or Path
        overwrite : bool
            Replace a file that exists.

        Raises
        ------
        FileExistsError
            If it exists and overwrite is False.
        """
        write_file(path, self.to_bytes(), overwrite=overwrite)

    def to_bytes(self) -> bytes:
        """Return the file that `save` would write."""
        return label_archive.to_bytes(label_archive.Contents.of(self))

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        kernels: Iterable[type[Kernel]] = (),
        max_bytes: int | None = None,
    ) -> LabelRelease:
        """Read a release from a file, checking it.

        Parameters
        ----------
        path : str or Path
        kernels : iterable of kernel classes
            Kernels beyond scikit-learn's that the release may use.
        max_bytes : int, optional
            The most that the file may unpack to. If not given, a hundred times its size, but at
            least 256 MiB and at most 8 GiB.

        Raises
        ------
        ReleaseFileError
            If the file is no release of classification, truncated, edited, or newer than this
            package.
        """
        contents = label_archive.read(path, kernels=tuple(kernels), max_bytes=max_bytes)
        return cls(
            prior=contents.prior,
            measurements=contents.measurements,
            rule=contents.rule,
            learning=contents.learning,
            learn_means=contents.learn_means,
            learned=contents.learned,
            input_names=contents.input_names,
            output_name=contents.output_name,
        )

    @property
    def _classes(self) -> Classes:
        return self.measurements[0].answers.classes

    @property
    def _priors(self) -> tuple[WeightedLabelPrior, ...]:
        return self.learned or (WeightedLabelPrior(prior=self.prior, weight=1.0),)

    @cached_property
    def _predictors(self) -> tuple[tuple[LabelPredictor, float], ...]:
        return tuple(
            (LabelPredictor.given(one.prior, self.measurements, rule=self.rule), one.weight)
            for one in self._priors
        )

    def __repr__(self) -> str:
        answers = sum(one.answers.values.size for one in self.measurements)
        return short_form(
            f"Release of {answers} noisy answers about classes, {self.guarantee}",
            insecure=self.insecure,
        )


def _same_answers(one: LabelMeasurement, other: LabelMeasurement, table: int) -> bool:
    """Return whether two measurements are copies of one visit: noise never repeats by chance."""
    return (
        other.questions.table == table
        and one.answers.values.size > 0
        and np.array_equal(one.questions.strategy, other.questions.strategy)
        and np.array_equal(one.answers.values, other.answers.values)
    )

r"""`measure_labels`, where private labels meet noise: the door for classification.

Mechanism
---------
The set of classes is public and declared. With two classes a label is v = ±1 and V has one column;
with C > 2 it is a row of V with 1 − 1/C in the column of its class and −1/C in the others. Given a
public strategy R of shape (k, N), publish R V + s Z with Z independent noise on a grid: discrete
Gaussian, or discrete Laplace (`cloakgp.privacy.noise`).

Neighbours
    One person's label changes to any other declared class; everything else is equal.
Sensitivity
    With two classes, R V moves by 2‖r_j‖. With more, two entries of row j of V move by one each, so
    R V moves by r_j (e_a − e_b)ᵀ, whose Frobenius norm is √2 ‖r_j‖ and whose entries add up to
    2 ‖r_j‖₁: no union bound over classes. It is computed here from the very R that is asked, over
    all columns, and inflated for rounding (`cloakgp.privacy.grid.integer_sensitivity`).
Groups
    With groups, all labels of one group change, each to any declared class. Two classes are one
    column of signs: R V moves by 2 R_g δ with δ_j in {−1, 0, 1}, by at most twice the gauge of
    `cloakgp.privacy.groups`. With more, R V moves by Σ_j r_j δ_jᵀ over the group, by the triangle
    inequality at most √2 Σ_j ‖r_j‖, or 2 Σ_j ‖r_j‖₁ (`Sensitivity.of_strategy`).
Theorem
    As for `cloakgp.privacy.queries`, in k or kC dimensions.
Argument
    As there: the answers are (ε, δ)-DP, or ε-DP with Laplace noise, and all that is published later
    is computed from them and from public arrays.

Which classes there are must not be inferred from labels: somebody alone in a class would show.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from cloakgp.privacy.accounting import Calibration, Guarantee
from cloakgp.privacy.bounds import as_column
from cloakgp.privacy.entries import read_labels
from cloakgp.privacy.grid import Sensitivity, calibrate, noisy
from cloakgp.privacy.groups import checked_groups
from cloakgp.privacy.noise import NOISES, noise_named
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.privacy.spending import one_charge
from cloakgp.privacy.tracebacks import forget_on_failure
from cloakgp.utils.arrays import Array, as_matrix
from cloakgp.utils.names import NoiseName

ClassLabel = bool | int | float | str


@dataclass(frozen=True)
class Classes:
    """The declared, public set of classes.

    An `Encoding` of labels: what questions are asked about is V of `cloakgp.privacy.labels`.

    Attributes
    ----------
    labels : tuple
        At least two different numbers, strings or truth values, in the order of the columns of V.
        With two, the second is +1.

    Examples
    --------
    >>> Classes.checked(["ill", "well"]).channels
    1
    """

    labels: tuple[ClassLabel, ...]

    def validate(self) -> None:
        """Refuse classes that are none; see `checked`."""
        Classes.checked(list(self.labels))

    largest: ClassVar[float] = 1.0

    @classmethod
    def checked(cls, classes: object) -> Classes:
        """Return classes, or say what is wrong with them.

        Raises
        ------
        ValueError
            Unless they are at least two different numbers, strings or truth values.
        """
        advice = "give classes=[...], every label that can occur, known without the data"
        if isinstance(classes, cls):
            return classes
        if classes is None:
            raise ValueError(f"classes are missing: {advice}")
        listed = classes.to_numpy() if hasattr(classes, "to_numpy") else classes
        if not isinstance(listed, list | tuple | np.ndarray | range) or (
            isinstance(listed, np.ndarray) and listed.ndim != 1
        ):
            raise ValueError(f"classes must be a list of labels: {advice}")
        labels = tuple(one.item() if isinstance(one, np.generic) else one for one in listed)
        if not all(isinstance(one, bool | int | float | str) for one in labels):
            raise ValueError(f"classes must be numbers, strings or truth values: {advice}")
        if any(isinstance(one, float) and not math.isfinite(one) for one in labels):
            raise ValueError(f"classes must be finite: {advice}")
        if len(set(labels)) < len(labels):
            raise ValueError(f"a class is declared twice: {advice}")
        if len(labels) < 2:
            raise ValueError(
                f"Classifier can't train when one class is declared, two are needed: {advice}"
            )
        return cls(labels=labels)

    def in_order(self) -> tuple[ClassLabel, ...]:
        """Return the labels sorted, or as declared where they have no order."""
        try:
            return tuple(sorted(self.labels))
        except TypeError:
            return self.labels

    @property
    def channels(self) -> int:
        """Columns of V: 1 for two classes, one per class for more."""
        return 1 if len(self.labels) == 2 else len(self.labels)

    @property
    def distance(self) -> float:
        """How far a row of V moves when its label changes, rounded up."""
        exact = 2.0 if self.channels == 1 else math.sqrt(2.0)
        return exact * (1 + 8 * UNIT_ROUNDOFF)

    @property
    def absolute_distance(self) -> float:
        """The same in ℓ1 norm: ±1 moves by two, and so do two entries by one each."""
        return 2.0 * (1 + 8 * UNIT_ROUNDOFF)

    def encode(self, y: ArrayLike, *, rows: int) -> Array:
        """Return V, shape (N, channels).

        Parameters
        ----------
        y : array-like of shape (N,)
            Private.
        rows : int
            N, the number of rows of X.

        Raises
        ------
        ValueError
            If y is missing, of another length, or holds something that is masked or not a declared
            class. No message shows a label, or says how many there were of any.
        """
        entries = read_labels(as_column(y, rows=rows), self.labels)
        for fault, complaint in zip(self.faults(entries), self.complaints, strict=True):
            if fault:
                raise ValueError(complaint)
        return self.encoded(entries)

    @property
    def complaints(self) -> tuple[str, ...]:
        """What can be wrong with labels; shows none."""
        return (
            "Unknown label type: y holds NaN or labels that are not among the declared classes "
            f"{list(self.labels)}, or entries that are masked: declare every class, and one for "
            "missing labels",
        )

    def faults(self, entries: Array) -> tuple[bool, ...]:
        """Return whether there are labels that were not declared.

        Parameters
        ----------
        entries : array of shape (n,)
            Private: places among the labels, from 0.
        """
        return (not bool(np.isin(entries, np.arange(len(self.labels))).all()),)

    def encoded(self, entries: Array) -> Array:
        """Return V, shape (n, channels).

        Parameters
        ----------
        entries : array of shape (n,)
            Private: places among the labels, from 0, all of them declared.
        """
        if self.channels == 1:
            return np.asarray(2.0 * entries - 1.0, dtype=np.float64)[:, None]
        encoded = np.full((len(entries), len(self.labels)), -1.0 / len(self.labels))
        encoded[np.arange(len(entries)), entries.astype(np.intp)] += 1.0
        return encoded


@dataclass(frozen=True, eq=False)
class LabelAnswers:
    """Noisy answers about labels: public, and the only thing that leaves the private side.

    Attributes
    ----------
    values : array of shape (k, channels)
        R V + noise.
    noise_sd : float
        Of each answer; 0 only if nothing was asked.
    classes : Classes
    guarantee : Guarantee
    insecure : bool
        True if the noise came from a fixed seed: such a release is not private.
    noise : {"gaussian", "laplace"}
        What it was drawn from.
    """

    values: Array
    noise_sd: float
    classes: Classes
    guarantee: Guarantee
    insecure: bool = False
    noise: NoiseName = "gaussian"

    @property
    def encoding(self) -> Classes:
        """What labels were encoded as."""
        return self.classes

    @property
    def output_noise_sd(self) -> float:
        """The noise sd of `about_outputs`."""
        return self.signed()[1]

    def about_outputs(self, totals: Array, *means: float) -> Array:
        """Return answers about labels ±1 less a mean in every channel, shape (k, channels).

        Parameters
        ----------
        totals : array of shape (k,)
            R 1.
        *means : float
            At most one; 0 if none.
        """
        shift = (signed_centre(self.classes) - sum(means)) * totals
        answers: Array = self.signed()[0] + shift[:, None]
        return answers

    def validate(self) -> None:
        """Refuse answers that nobody can have given.

        Raises
        ------
        ValueError
            If they are damaged.
        """
        if self.values.ndim != 2 or self.values.shape[1] != self.classes.channels:
            raise ValueError("its arrays do not fit each other")
        if self.noise not in NOISES:
            raise ValueError("its noise is damaged")

    def signed(self) -> tuple[Array, float]:
        r"""Return the answers about signs, and their noise sd.

        Channel c then asks R applied to ±1 for "of class c, or not", less 2/C − 1. The columns of V
        add up to zero, so noise in that direction can be taken off: what is left in each channel
        has variance s²(1 − 1/C), times 4 for the signs' scale.

        Returns
        -------
        array of shape (k, channels)
        float
        """
        if self.classes.channels == 1:
            return self.values, self.noise_sd
        projected = self.values - self.values.mean(axis=1, keepdims=True)
        share = 1.0 - 1.0 / self.classes.channels
        return 2.0 * projected, 2.0 * self.noise_sd * math.sqrt(share)


def signed_width(classes: Classes, *, noise: NoiseName = "gaussian") -> float:
    """Return the noise sd of `LabelAnswers.signed` per unit of column norm and `Noise.unit_sd`."""
    distance = NOISES[noise].distance(classes)
    if classes.channels == 1:
        return distance
    return 2.0 * distance * math.sqrt(1.0 - 1.0 / classes.channels)


def signed_centre(classes: Classes) -> float:
    """Return what is subtracted from every sign before it is asked about."""
    return 0.0 if classes.channels == 1 else 2.0 / classes.channels - 1.0


@forget_on_failure
@one_charge
def measure_labels(
    strategy: Array,
    y: ArrayLike,
    *,
    classes: Classes,
    epsilon: float,
    delta: float,
    groups: Iterable[Hashable] | None = None,
    noise: NoiseName = "gaussian",
    calibration: Calibration = "exact",
    after_answers: bool = False,
    insecure_seed: int | None = None,
) -> LabelAnswers:
    """Answer the questions of a strategy about labels, under (ε, δ)-differential privacy.

    Mechanism, neighbours, theorem and argument stand at the head of this module.

    Parameters
    ----------
    strategy : array of shape (k, N)
        R: public, one column per row of y.
    y : array-like of shape (N,)
        Private labels.
    classes : Classes
        Public.
    epsilon, delta : float
        The budget; δ may be 0 with Laplace noise, which needs none.
    groups : iterable of N hashables, optional
        Public: whose row it is. The guarantee is that of all the rows of one group together.
    noise : {"gaussian", "laplace"}
    calibration : {"exact", "papers"}
        The papers' noise is for comparison, and refused for ε > 1.
    after_answers : bool
        Whether answers that were published before decided what is asked: if that is nothing, the
        budget counts as spent all the same.
    insecure_seed : int, optional
        Makes the noise reproducible and the release **not private**. For experiments only.

    Returns
    -------
    LabelAnswers

    Raises
    ------
    ValueError
        For budgets or labels that do not make sense; no message quotes a label of y.

    Examples
    --------
    >>> answers = measure_labels(np.full((1, 4), 0.5), ["b", "a", "a", "b"],
    ...                          classes=Classes(("a", "b")), epsilon=1.0, delta=1e-6)
    >>> round(answers.noise_sd, 2)
    4.22
    """
    law = noise_named(noise)
    epsilon, delta = law.check(epsilon, delta, calibration=calibration)
    units = checked_groups(groups, rows=strategy.shape[1])
    encoded = classes.encode(y, rows=strategy.shape[1])
    if strategy.shape[0] == 0 or not np.any(strategy):
        return LabelAnswers(
            values=np.zeros((strategy.shape[0], classes.channels)),
            noise_sd=0.0,
            classes=classes,
            guarantee=law.unasked(
                epsilon,
                delta,
                answers=strategy.shape[0] * classes.channels,
                after_answers=after_answers,
            ),
            insecure=insecure_seed is not None,
            noise=law.name,
        )
    questions = as_matrix(strategy, name="strategy")
    grid, guarantee = calibrate(
        questions,
        sensitivity=Sensitivity.of_strategy(questions, encoding=classes, groups=units, noise=law),
        epsilon=epsilon,
        delta=delta,
        noise=law,
        calibration=calibration,
    )
    return LabelAnswers(
        values=noisy(questions @ encoded, grid=grid, insecure_seed=insecure_seed),
        noise_sd=grid.noise_sd,
        classes=classes,
        guarantee=guarantee,
        insecure=insecure_seed is not None,
        noise=law.name,
    )

r"""Classes: a label as a sign, or as an indicator of its class.

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
    As for `cloakgp.privacy.ask`, in k or kC dimensions.
Argument
    As there: the answers are (ε, δ)-DP, or ε-DP with Laplace noise, and all that is published later
    is computed from them and from public arrays.

Which classes there are must not be inferred from labels: somebody alone in a class would show.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from cloakgp.privacy.entries import as_column, read_labels
from cloakgp.privacy.questions.base import Question
from cloakgp.privacy.rounding import UNIT_ROUNDOFF
from cloakgp.utils.arrays import Array, check_writable

ClassLabel = bool | int | float | str


@dataclass(frozen=True)
class Classes(Question):
    """The declared, public set of classes.

    As a question: the sign of a label, or an indicator of its class, less one over their number.

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

    name: ClassVar[str] = "labels"
    largest: ClassVar[float] = 1.0

    labels: tuple[ClassLabel, ...]

    def validate(self) -> None:
        """Refuse classes that are none; see `checked`."""
        Classes.checked(list(self.labels))

    @classmethod
    def checked(cls, classes: object) -> Classes:
        """Return valid classes, or raise an error that explains the fault.

        Raises
        ------
        ValueError
            Unless they are at least two different numbers, strings or truth values, and can be
            written.
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
        check_writable(labels)
        if len(set(labels)) < len(labels):
            raise ValueError(f"a class is declared twice: {advice}")
        if len(labels) < 2:
            raise ValueError(
                f"Classifier can't train when one class is declared, two are needed: {advice}"
            )
        return cls(labels=labels)

    @classmethod
    def ordered(cls, classes: object) -> Classes:
        """Return valid classes sorted, unless they are `Classes`, which keep their order.

        Parameters
        ----------
        classes : Classes or sequence of labels

        Raises
        ------
        ValueError
            As `checked`.

        Examples
        --------
        >>> Classes.ordered(["well", "ill"]).labels
        ('ill', 'well')
        """
        declared = cls.checked(classes)
        return declared if isinstance(classes, cls) else cls(labels=declared.in_order())

    def in_order(self) -> tuple[ClassLabel, ...]:
        """Return the labels sorted, or as declared where they have no order."""
        try:
            return tuple(sorted(self.labels))
        except TypeError:
            return self.labels

    def as_array(self) -> NDArray[Any]:
        """Return the labels as an array: of their own type if they share one, else of objects.

        Examples
        --------
        >>> Classes((1, "a")).as_array()
        array([1, 'a'], dtype=object)
        """
        array = np.array(self.labels)
        kept = array.tolist()
        return array if kept == list(self.labels) else np.array(self.labels, dtype=object)

    @property
    def channels(self) -> int:
        """Columns of V: 1 for two classes, one per class for more."""
        return 1 if len(self.labels) == 2 else len(self.labels)

    @property
    def distance(self) -> float:
        """The largest change of a row of V by a change of its label, rounded up."""
        exact = 2.0 if self.channels == 1 else math.sqrt(2.0)
        return exact * (1 + 8 * UNIT_ROUNDOFF)

    @property
    def absolute_distance(self) -> float:
        """The same in ℓ1 norm: ±1 moves by two, and so do two entries by one each."""
        return 2.0 * (1 + 8 * UNIT_ROUNDOFF)

    def read(self, y: ArrayLike, *, rows: int) -> Array:
        """Return places of labels among the classes, from 0, shape (N,).

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
        return entries

    @property
    def complaints(self) -> tuple[str, ...]:
        """Messages about invalid labels; none shows a label."""
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

    def encode(self, entries: Array) -> Array:
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

    @property
    def limits(self) -> None:
        """None: labels are no numbers."""
        return

    @property
    def centre(self) -> float:
        """Of every sign, subtracted before it is asked about."""
        return 0.0 if self.channels == 1 else 2.0 / self.channels - 1.0

    def about_outputs(self, values: Array, totals: Array, *means: float) -> Array:
        r"""Return answers about labels ±1 less a mean in every channel, shape (k, channels).

        Channel c then asks R applied to ±1 for "of class c, or not". The columns of V add up to
        zero, so noise in that direction can be taken off: noise in each channel is left with
        variance s²(1 − 1/C), times 4 for the signs' scale.
        """
        signed = values
        if self.channels > 1:
            signed = 2.0 * (values - values.mean(axis=1, keepdims=True))
        return signed + np.asarray((self.centre - sum(means)) * totals)[:, None]

    def output_noise_sd(self, noise_sd: float) -> float:
        """Return the noise sd of answers about labels ±1."""
        if self.channels == 1:
            return noise_sd
        return 2.0 * noise_sd * math.sqrt(1.0 - 1.0 / self.channels)

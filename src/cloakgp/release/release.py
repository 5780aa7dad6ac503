"""Release: a prior, a likelihood and measurements. Public, and predicts anywhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cloakgp.columns.numbers import Number
from cloakgp.columns.schema import Schema
from cloakgp.models import ExactPrior, SparsePrior
from cloakgp.models.kernels.integral import IntegralRBF
from cloakgp.models.latent import components
from cloakgp.models.likelihoods import NUMBERS, Likelihood, QuantileLikelihood
from cloakgp.models.likelihoods.classes import class_likelihood
from cloakgp.models.transforms import OutputTransform
from cloakgp.privacy import Guarantee, compose
from cloakgp.privacy.cohorts import (
    DISJOINT,
    OVERLAPPING,
    Cohorts,
    People,
    asked_of,
    check_cohorts,
    compare_ids,
    guarantee_of_cohorts,
    join_cohorts,
)
from cloakgp.privacy.composition import MixedGuarantee
from cloakgp.privacy.filters import Amount, Costs, checked_limit, filter_of, has_room
from cloakgp.privacy.questions.classes import ClassLabel
from cloakgp.release.accuracy import LIKELY, Accuracy, mean_root
from cloakgp.release.calibration import Calibration
from cloakgp.release.choice import Choice
from cloakgp.release.coefficient_tree import coefficient_tree, has_coefficients
from cloakgp.release.consistency import check_alike, check_parts, declared_classes
from cloakgp.release.custodians import Custodians
from cloakgp.release.error_range import (
    ErrorRange,
    distinct_points,
    error_range,
    known_noise,
    noise_range_of_counts,
)
from cloakgp.release.functional import ReleasedFunction
from cloakgp.release.hyperparameters.alike import AlikeOutputs, rows_among
from cloakgp.release.hyperparameters.hyperprior import Hyperprior
from cloakgp.release.hyperparameters.learning import learn
from cloakgp.release.io.bundle import Store
from cloakgp.release.margins import DAMAGED as DAMAGED_MARGINS
from cloakgp.release.margins import Margins
from cloakgp.release.measurement import (
    Measurement,
    Published,
    exposures_of,
    merge_measurements,
    tables_of,
)
from cloakgp.release.points import points_of
from cloakgp.release.posterior.dense import Posterior
from cloakgp.release.posterior.intervals import probability_limits
from cloakgp.release.posterior.mixture import Inference, Mixture, WeightedPrior
from cloakgp.release.predictions import Predictions
from cloakgp.release.provenance import Provenance
from cloakgp.release.public_rows import PublicRows
from cloakgp.release.strategy import DenseStrategy
from cloakgp.release.streamed_strategy import StreamedStrategy
from cloakgp.utils.arrays import Array
from cloakgp.utils.formatting import short_form
from cloakgp.utils.markup import html_table
from cloakgp.utils.passes import Passes


@dataclass(frozen=True, eq=False)
class Release(Predictions):
    """Predictions anywhere, from noisy answers about private outputs; a public object.

    It holds a public prior, the questions asked, the noisy answers and what they cost. It holds no
    output, nor anything computed from outputs without noise. Everything done with it is
    post-processing and costs no more privacy.

    Attributes
    ----------
    prior : ExactPrior or SparsePrior
        Of the latent functions, as declared before any answer was seen.
    measurements : tuple of Measurement
        Each a strategy, dense (kept with its rows) or streamed (a rule over any number of rows),
        and the answers to it.
    likelihood : Likelihood
        How outputs depend on the latent functions: as numbers, or as classes.
    learned : tuple of WeightedPrior
        What the answers say about the hyperparameters; empty if nothing was learned.
    hyperprior : Hyperprior or None
        What is learned again whenever answers are added.
    average : bool
        Whether learning averages over the posterior of the hyperparameters.
    inference : {"posterior", "iterated", "newton"}
        How predictions are read off the answers: by the posterior, in which outputs in bands are
        linearised once or repeatedly, or by the papers' iteration.
    choice : Choice or None
        What choosing the prior from the private data cost, if it was so chosen.
    input_names : tuple of str
        Names of the public columns, in order.
    output_name : str
        Name of the private column.
    schema : Schema or None
        What the raw public columns are, if inputs are encoded from them: `predict` and its like
        then take raw columns.
    exposure : Number or None
        What the raw column of exposures was, of counts that were read from a table with one.
    provenance : Provenance or None
        When and with what it was made.
    transform : OutputTransform or None
        The function of outputs that the prior and the answers are about: their logarithm, or log
        odds. `predict` and `predict_frame` give output units; everything else is of the
        transformed.
    visits : int
        How often private outputs were asked, by `fit`, `refine` and `extend`.
    calibration : int or None
        Which measurement counted outputs where they were predicted to lie, if predictions are those
        still; see `predict_interval`. None where none did, or where anything was learned since.
    kept : int or None
        Which measurement asked the rows that were kept out of all others, to tell the margins of
        intervals; None where none were, or where anything was asked since.
    cohorts : tuple of tuples of int
        Sets of tables that one person may be in together, by their numbers; empty if anybody may be
        in all. See `cloakgp.privacy.cohorts`.
    limit : (float, float) or None
        (ε, δ) of all visits together, declared before the first answer was read; see `within`.
    predictor : Release or None
        About other people: its predictions are the last input, if `prior.trend` goes by these, and
        are computed where they are not given.
    public_rows : PublicRows or None
        The same of public rows.
    custodians : Custodians or None
        Of the rows, if there were several: what the guarantee assumes of them.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp import DPGPRegressor
    >>> X = np.linspace(0, 10, 50)[:, None]
    >>> y = np.sin(X).ravel()
    >>> release = DPGPRegressor(bounds=(-1, 1), epsilon=1.0).fit(X, y).release_
    >>> release.predict([[3.0], [4.0]]).shape
    (2,)
    >>> print(release.guarantee)
    1-differential privacy
    """

    kind = "one output"
    private_inputs = False

    prior: ExactPrior | SparsePrior
    measurements: tuple[Measurement, ...]
    likelihood: Likelihood = NUMBERS
    learned: tuple[WeightedPrior, ...] = ()
    hyperprior: Hyperprior | None = None
    average: bool = False
    inference: Inference = "posterior"
    choice: Choice | None = None
    input_names: tuple[str, ...] = ()
    output_name: str = "y"
    schema: Schema | None = None
    exposure: Number | None = None
    provenance: Provenance | None = None
    transform: OutputTransform | None = None
    visits: int = 1
    limit: tuple[float, float] | None = None
    calibration: int | None = None
    kept: int | None = None
    cohorts: Cohorts = ()
    predictor: Release | None = None
    public_rows: PublicRows | None = None
    custodians: Custodians | None = None

    @property
    def guarantee(self) -> Guarantee | MixedGuarantee:
        """The joint guarantee of all measurements and of the choice, for whoever is asked most.

        Anybody may be in every table, unless the `cohorts` say who is in which; with a private
        choice of the prior all measurements add up in any case. Of several visits whose prices were
        fixed before any answer was read; without a δ, however they were chosen. Where one was
        chosen by answers, the `limit` holds instead.
        """
        if self.choice is not None:
            return self.choice.total([one.guarantee for one in self.measurements])
        return guarantee_of_cohorts(self.cohorts, self._asked)

    @property
    def _asked(self) -> list[tuple[int, Guarantee]]:
        """The table that each measurement asked, and its guarantee."""
        return [(one.strategy.table, one.guarantee) for one in self.measurements]

    @property
    def insecure(self) -> bool:
        """True if any noise came from a fixed seed: the release is then not private."""
        return any(measurement.answers.insecure for measurement in self.measurements)

    @property
    def n_inputs(self) -> int:
        """D, the number of public inputs."""
        return self.measurements[0].strategy.n_inputs

    @property
    def n_rows(self) -> int:
        """The number of asked rows, in all tables."""
        return sum(strategy.n_rows for strategy in tables_of(self.measurements).values())

    @property
    def classes(self) -> tuple[ClassLabel, ...]:
        """The declared classes, in the order of the columns of `predict_proba`.

        Raises
        ------
        TypeError
            If outputs are no classes.
        """
        classes = declared_classes(self.measurements)
        if classes is None:
            raise TypeError(f"outputs are {self.likelihood.outputs}, and there are no classes")
        return classes.labels

    @property
    def class_labels(self) -> tuple[ClassLabel, ...]:
        """The declared classes in their order; empty if outputs are no classes."""
        return self.classes if self.likelihood.outputs == "classes" else ()

    @property
    def of_quantiles(self) -> bool:
        """Whether it is about quantiles of outputs, and not about their mean."""
        return isinstance(self.likelihood, QuantileLikelihood)

    @property
    def has_box_inputs(self) -> bool:
        """Whether inputs are boxes that outputs are averages over."""
        return any(isinstance(part, IntegralRBF) for part in components(self.prior.kernel))

    @property
    def keeps_rows(self) -> bool:
        """Whether the inputs of all rows are in the release."""
        strategies = tables_of(self.measurements).values()
        return all(isinstance(strategy, DenseStrategy) for strategy in strategies)

    @property
    def known_rows(self) -> int:
        """How many rows there are, of all tables."""
        return self.n_rows

    @property
    def even_inputs(self) -> Array:
        """Those that the release holds: no others are known to be possible."""
        return self.known_inputs

    def predict_asked(self, X: Array) -> tuple[Array, Array]:
        """Return mean and sd of the latent function, each of shape (P,)."""
        found = self.predict_latent(X)
        return found.mean, found.sd

    @property
    def known_inputs(self) -> Array:
        """Inputs of all rows of all tables, each table once, shape (n, D).

        Of tables that are not kept, the query points.
        """
        strategies = tables_of(self.measurements).values()
        return np.vstack(
            [each.X if isinstance(each, DenseStrategy) else each.X_query for each in strategies]
        )

    @property
    def input_ranges(self) -> Array:
        """The least and the greatest of every input, over all tables, shape (2, D)."""
        ranges = np.array([each.ranges for each in tables_of(self.measurements).values()])
        return np.array([ranges[:, 0].min(axis=0), ranges[:, 1].max(axis=0)])

    @property
    def typical_inputs(self) -> Array:
        """The median of every input of `known_inputs`, shape (D,)."""
        return np.asarray(np.median(self.known_inputs, axis=0), dtype=np.float64)

    @property
    def where_typical(self) -> str:
        """What `typical_inputs` are the medians of, in words."""
        return "median of the rows" if self.keeps_rows else "median of the queried points"

    @property
    def prior_rates(self) -> Array | None:
        """The probability of each class before any answer, over `known_inputs`, shape (C,)."""
        if not self.class_labels:
            return None
        return class_likelihood(self.likelihood).prior_rates(self.prior, self.known_inputs)

    def probability_limits(
        self, X: Any, *, privacy_noise: bool = True
    ) -> tuple[Array, Array] | None:
        """Return 95 % limits of the probability of every class, each (P, C).

        Parameters
        ----------
        X, privacy_noise
            As for `cloakgp.release.posterior.intervals.probability_limits`; X may be a table.
        """
        return probability_limits(self, points_of(self, X).X, privacy_noise=privacy_noise)

    def published(self, measurement: int = 0) -> Published:
        """Return the raw predictions of one measurement at its queried points.

        These are C y plus noise: unbiased, and what the papers publish. `predict` uses the prior to
        weigh them, which is nearly always closer to the truth. Of outputs that were transformed,
        they are predictions of these.

        Parameters
        ----------
        measurement : int
            Which one, in the order in which they were combined.

        Raises
        ------
        ValueError
            If the answers do not determine them, or outputs are no latent values plus noise.
        """
        if not self.likelihood.linear:
            raise ValueError(f"outputs are {self.likelihood.name}: raw predictions are of numbers")
        return self.measurements[measurement].published(self.prior)

    def function(self, measurement: int = 0) -> ReleasedFunction:
        """Return the raw predictions of one measurement, of criterion "functional", at any inputs.

        The posterior mean plus noise: unbiased, and the same function whenever it is evaluated.

        Raises
        ------
        ValueError
            If the questions were not those of a whole function.
        """
        return ReleasedFunction.of_measurement(
            self.prior, self.measurements[measurement], input_names=self.input_names
        )

    def combine(
        self,
        *others: Release,
        same_rows: bool | None = None,
        people: People = OVERLAPPING,
        ids: Sequence[Iterable[Hashable]] | None = None,
    ) -> Release:
        """Return one release that combines this and others.

        The guarantee is that of all together, for somebody whose output was in every one of them,
        unless it is said that people are in few of them (`cloakgp.privacy.cohorts`).
        Predictions are by the posterior, also where parts were made for the papers' iteration.
        Hyperparameters that were learned while many rows were there are set aside.

        Parameters
        ----------
        *others : Release
            With the same prior, likelihood and columns.
        same_rows : bool, optional
            Whether tables with equal inputs are the same rows (asked again: the same outputs, so
            the same observation noise) or other rows at the same places. If not given, equal inputs
            are taken to be the same rows; of tables that are not kept, as many rows within the same
            ranges.
        people : {"overlapping", "disjoint"}
            Whether anybody may be in two of the releases. That nobody is, is the word of the
            caller; tables with equal inputs are then other rows.
        ids : sequence of iterables of texts or whole numbers, optional
            Whose each row is, of each table: those of this release in the order in which they were
            asked, then those of the others that are not the same rows. Not kept. Measurements add
            up by person, and nobody may be in two releases that were said to be disjoint.

        Raises
        ------
        TypeError
            If another is no such release.
        ValueError
            If priors, classes or columns differ, one was made within a limit, ``same_rows=True``
            and the inputs differ, or same_rows is not given where a release has cohorts or ids are,
            ``same_rows=False`` and parts are copies of one visit, or the same rows were asked
            different questions and are not kept; if people are said to be disjoint and are not, or
            ids do not go with the tables.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPRegressor
        >>> X = np.linspace(0, 10, 50)[:, None]
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, noise="gaussian")
        >>> first, second = (model.fit(X, np.sin(X).ravel()).release_ for _ in range(2))
        >>> round(first.combine(second).guarantee.epsilon, 2)
        1.51
        >>> round(first.combine(second, people="disjoint").guarantee.epsilon, 2)
        1.0
        """
        for other in others:
            if not isinstance(other, Release):
                raise TypeError(
                    f"a release is combined with releases of its kind, not {type(other).__name__}"
                )
            check_alike(self, other)
        if any(one.limit is not None for one in (self, *others)):
            raise ValueError(
                "a release within a limit is refined or extended, not combined: nothing refused "
                "what the others spent before it was drawn. A ledger keeps a limit of all"
            )
        parts = (self.measurements, *(other.measurements for other in others))
        if people == DISJOINT:
            if same_rows:
                raise ValueError("same_rows=True says that people are in both: leave it out")
            same_rows = False
        elif same_rows is None and (ids is not None or any(one.cohorts for one in (self, *others))):
            # A guess that two tables are one would leave out what people of the other were asked.
            raise ValueError(
                "a person is in few of the tables: say whether tables with equal inputs are the "
                "same rows, same_rows=True (--rows same), or others, same_rows=False (--rows other)"
            )
        together, renamed = merge_measurements(parts, same_rows=same_rows)
        cohorts = self.cohorts
        for number, (other, numbers) in enumerate(zip(others, renamed[1:], strict=True), 1):
            known = {table for part in renamed[:number] for table in part.values()}
            cohorts = join_cohorts(
                cohorts,
                tuple(tuple(numbers[table] for table in cohort) for cohort in other.cohorts),
                tables=(known, numbers.values()),
                people=people,
            )
        if ids is not None:
            strategies = tables_of(together)
            cohorts = compare_ids(
                ids,
                rows={number: one.n_rows for number, one in strategies.items()},
                groups={number: one.groups for number, one in strategies.items() if one.grouped},
                apart=[part.values() for part in renamed] if people == DISJOINT else (),
            )
        inference: Inference = "iterated" if self.inference == "iterated" else "posterior"
        made = replace(self, inference=inference, cohorts=cohorts).with_measurements(together)
        visits = self.visits + sum(other.visits for other in others)
        made = replace(made, visits=visits)
        if made.provenance is None:
            return made
        origin = made.provenance.join([other.provenance for other in others])
        return replace(made, provenance=origin)

    def within(self, epsilon: float, delta: float) -> Release:
        """Return the same release with a limit of this visit and all later ones together.

        Declared before anybody has read an answer, (ε, δ) holds of all visits together however the
        price of each is chosen after reading answers: `refine` and `extend` refuse what its filter
        has no room for (`cloakgp.privacy.filters`), before anything is drawn. A file remembers no
        more than itself: each visit must start from the release of the one before. A ledger
        remembers all.

        Parameters
        ----------
        epsilon, delta : float
            δ may be 0, where all noise is Laplace noise.

        Raises
        ------
        ValueError
            If the limit makes no sense or has no room for this visit; if there was a later one.

        Examples
        --------
        >>> from cloakgp import DPGPRegressor, refine
        >>> X, y = [[0.0], [1.0], [2.0]], [0, 1, 1]
        >>> release = DPGPRegressor(bounds=(0, 1), epsilon=0.6).fit(X, y).release_.within(1.0, 0.0)
        >>> refine(release, y, epsilon=0.6, delta=0.0)
        Traceback (most recent call last):
        ...
        ValueError: the limit of (1, 0) that this release was made within has no room for this: ...
        """
        if self.visits > 1 or self.limit is not None:
            raise ValueError("a limit is declared once, before the first later visit")
        made = replace(self, limit=checked_limit(epsilon, delta))
        if not made._keeps_limit():
            raise ValueError(
                f"this release spent more than a limit of ({epsilon:g}, {delta:g}) allows: give "
                "one that holds it and the visits to come"
            )
        return made

    def check_limit(
        self, *later: Costs, table: int | None = None, cohorts: Cohorts | None = None
    ) -> None:
        """Refuse visits beyond the limit, if one was declared.

        Parameters
        ----------
        *later : Costs
            Of visits that are to come.
        table : int, optional
            The number of the table that they ask; whoever is in none of its cohorts is not asked.
            By default they ask everybody.
        cohorts : tuple of tuples of int, optional
            The cohorts with them; by default those that there are.

        Raises
        ------
        ValueError
        """
        if self.limit is not None and not self._keeps_limit(*later, table=table, cohorts=cohorts):
            raise ValueError(
                f"the limit of ({self.limit[0]:g}, {self.limit[1]:g}) that this release was made "
                "within has no room for this: nothing was drawn"
            )

    def _keeps_limit(
        self, *later: Costs, table: int | None = None, cohorts: Cohorts | None = None
    ) -> bool:
        """Return whether all visits are within the limit that was declared; see `check_limit`."""
        assert self.limit is not None
        # Of the filters alone: this visit takes no limit whole that was declared after it.
        rule = filter_of(self.limit)
        for cohort, spent in self._spent_by_cohort(self.cohorts if cohorts is None else cohorts):
            asked = later if table is None or not cohort or table in cohort else ()
            if not (rule.accepts(spent) and has_room(spent, asked, limit=self.limit)):
                return False
        return True

    def _spent_by_cohort(self, cohorts: Cohorts) -> list[tuple[tuple[int, ...], Amount]]:
        """Return what was spent on people of each cohort; of none, if anybody is in all tables."""
        if not cohorts or self.choice is not None:
            return [((), Amount.of_guarantee(replace(self, cohorts=()).guarantee))]
        spent = []
        for cohort in cohorts:
            asked = asked_of(cohort, self._asked)
            spent.append((cohort, Amount.of_guarantee(compose(*asked)) if asked else Amount()))
        return spent

    def learn(self, hyperprior: Hyperprior | None = None, *, average: bool = False) -> Release:
        """Return the same answers with hyperparameters fitted to them, at no cost in privacy.

        Maximises the marginal likelihood of the published answers together with weak priors around
        the declared hyperparameters; see `cloakgp.release.hyperparameters.regression`.

        Parameters
        ----------
        hyperprior : Hyperprior, optional
            What is free besides the kernel's own hyperparameters; noise variance and means if not
            given.
        average : bool
            Average predictions over the posterior of the hyperparameters.

        Raises
        ------
        ValueError
            If what was asked of every row is not kept.

        Examples
        --------
        >>> import numpy as np
        >>> from cloakgp import DPGPRegressor
        >>> X = np.linspace(0, 10, 50)[:, None]
        >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, delta=1e-3, learn=None)
        >>> release = model.fit(X, np.sin(X).ravel()).release_
        >>> release.learn().guarantee == release.guarantee
        True
        """
        chosen = Hyperprior() if hyperprior is None else hyperprior
        return replace(self, hyperprior=chosen, average=average).with_measurements(
            self.measurements
        )

    def without_learning(self) -> Release:
        """Return the same answers under the prior and likelihood as they were declared."""
        return replace(self, hyperprior=None).with_measurements(self.measurements)

    def with_measurements(self, measurements: Sequence[Measurement]) -> Release:
        """Return a release of other answers, and learn the same hyperparameters from them.

        Parameters
        ----------
        measurements : sequence of Measurement
            With all that this release has, for what comes after it.
        """
        learned: tuple[WeightedPrior, ...] = ()
        if self.hyperprior is not None:
            learned = learn(
                self.prior,
                self.likelihood,
                measurements,
                hyperprior=self.hyperprior,
                average=self.average,
                inference=self.inference,
            )
        provenance = None if self.provenance is None else self.provenance.successor(measurements)
        return replace(
            self,
            measurements=tuple(measurements),
            learned=learned,
            provenance=provenance,
            calibration=None,
            kept=self.kept if measurements is self.measurements else None,
        )

    def verify(self, passes: Passes, *, measurement: int = 0) -> float:
        """Check the questions of one measurement, from the public inputs of its rows.

        Parameters
        ----------
        passes : Passes
            The same rows; `cloakgp.data` makes such objects.
        measurement : int

        Returns
        -------
        float
            The norm of the longest column, which the guarantee rests on, computed anew.

        Raises
        ------
        ValueError
            If there are other rows, or the column of any row is longer than the guarantee allows.
        """
        chosen = self.measurements[measurement]
        return chosen.strategy.verify(passes, question=chosen.question)

    def validate(self) -> None:
        """Refuse parts that do not fit each other.

        Raises
        ------
        ValueError
            If they do not, or the guarantee of a choice does not hold.
        """
        check_parts(self)
        if self.visits < 1:
            raise ValueError("how often outputs were asked is damaged")
        check_cohorts(self.cohorts, tables_of(self.measurements))
        if self.limit is not None:
            checked_limit(*self.limit)
            self.check_limit()
        _ = self.calibrated_by
        self._check_kept()
        if self._keeps_sums:
            # Raises where sums are no covariances, or not those of its priors.
            _ = self._mixture

    @cached_property
    def calibrated_by(self) -> Calibration | None:
        """The calibration from noisy counts of outputs in their predicted distributions, if any.

        Raises
        ------
        ValueError
            If it goes by a measurement that counted nothing of the kind.
        """
        if self.calibration is None:
            return None
        if not 0 <= self.calibration < len(self.measurements):
            raise ValueError("its calibration is damaged")
        return Calibration.of(self.measurements[self.calibration])

    @cached_property
    def margins(self) -> Margins | None:
        """The conformal margins of intervals, by rows that were kept out, if predictions are those.

        Raises
        ------
        ValueError
            If they go by a measurement that counted nothing of the kind.
        """
        return None if self.kept is None else Margins.of(self.measurements[self.kept])

    def _check_kept(self) -> None:
        """Refuse rows that were kept out and asked again, or of which nothing tells margins."""
        if self.kept is None:
            return
        if not 0 <= self.kept < len(self.measurements) or len(self.measurements) < 2:
            raise ValueError(DAMAGED_MARGINS)
        kept, *others = (
            self.measurements[self.kept],
            *(one for place, one in enumerate(self.measurements) if place != self.kept),
        )
        again = any(one.strategy.table == kept.strategy.table for one in others)
        if again or kept.strategy.grouped:
            raise ValueError(DAMAGED_MARGINS)
        _ = self.margins

    @property
    def posterior(self) -> Posterior:
        """The Gaussian process given the answers, under the hyperparameters of most weight.

        Of several latent functions, the first; see `posteriors`.
        """
        return self.posteriors[0]

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        """The posterior of every latent function, under the hyperparameters of most weight."""
        return self._mixture.posteriors

    @property
    def fitted(self) -> WeightedPrior:
        """The prior and likelihood that predictions use most: learned ones, or those declared."""
        return self._mixture.main

    @property
    def fitted_prior(self) -> ExactPrior | SparsePrior:
        """The prior that predictions use most: the learned one, or the declared one."""
        return self.fitted.prior

    @property
    def _keeps_sums(self) -> bool:
        return any(isinstance(each.strategy, StreamedStrategy) for each in self.measurements)

    @cached_property
    def _mixture(self) -> Mixture:
        declared = WeightedPrior(prior=self.prior, likelihood=self.likelihood, weight=1.0)
        return Mixture.given(
            self.learned or (declared,), self.measurements, inference=self.inference
        )

    def accuracy(self) -> Accuracy | None:
        """Return the accuracy of predictions of numbers at the query points, by their own estimate.

        None of classes, and of quantiles, each of which has an error of its own.

        Examples
        --------
        >>> from cloakgp import DPGPRegressor
        >>> model = DPGPRegressor(bounds=(0, 1), epsilon=1.0).fit([[0.0], [1.0], [2.0]], [0, 1, 1])
        >>> model.release_.accuracy().output
        'y'
        """
        if self.class_labels or self.of_quantiles:
            return None
        points = np.vstack([one.strategy.X_query for one in self.measurements])
        mean, sd = self.predict(points, return_std=True)
        if self.likelihood.linear:
            marginals = self._marginals(points, new_output=True)
            new_error = self._new_numbers(points, *marginals).typical_error()
        else:
            _, new_sd = self.predict(points, return_std=True, new_output=True)
            new_error = mean_root(new_sd)
        before = None
        if self.transform is None:
            before = mean_root(np.sqrt(self.prior.query_variance(points)))
        found = Accuracy.expected(
            self.output_name,
            mean,
            sd,
            new_error=new_error,
            # Of rates the bounds are none: those of counts go with an exposure.
            ends=None if exposures_of(self.measurements) else self.output_bounds,
            without=before,
        )
        return found.with_range(self._error_range(points))

    @property
    def learns_noise(self) -> bool:
        """Whether answers tell the spread between people with equal inputs, and nobody gave it."""
        return (
            (self.hyperprior is not None and self.hyperprior.noise_variance)
            or self.fitted_prior.noise_variance != self.prior.noise_variance
            or self.asks_spread
        )

    @property
    def asks_spread(self) -> bool:
        """Whether an answer is about the spread between people with equal inputs."""
        return any(one.about_spread and one.noise_sd > 0 for one in self.measurements)

    @property
    def counts_tell_noise(self) -> bool:
        """Whether that spread is told by counts and by the curve, as most outputs are at an end."""
        told = self.learns_noise and self.likelihood.linear and not self.is_calibrated
        return told and self._alike is not None

    @cached_property
    def _alike(self) -> AlikeOutputs | None:
        """What counts tell of outputs most of which are at an end of their bounds, if they are."""
        return AlikeOutputs.counted(self.measurements)

    def _noise_by_counts(self, points: Array) -> tuple[float, float]:
        """Return what counts tell of the noise, as `known_noise`.

        Parameters
        ----------
        points : array of shape (P, D)
            Where rows are not kept these stand for them.
        """
        alike, strategy, multiple = self._alike, self.measurements[0].strategy, 1.0
        assert alike is not None
        kept = rows_among(strategy.X) if isinstance(strategy, DenseStrategy) else None
        variance, log_sd = alike.noise(*self.posterior.joint(points if kept is None else kept))
        claimed = self.fitted_prior.noise_variance
        if kept is not None and claimed > 0:
            # Files of earlier versions may claim less.
            multiple = max(variance / claimed, 1.0)
        return multiple, noise_range_of_counts(log_sd)

    @property
    def noise_is_unknown(self) -> bool:
        """Whether nobody gave the spread between people with equal inputs, and no answer tells it.

        Intervals then allow for that (`cloakgp.release.unknown_noise`).
        """
        asked = self.is_calibrated or self.asks_spread or self.counts_tell_noise
        return self.likelihood.linear and self.learns_noise and not asked

    def _error_range(self, points: Array) -> ErrorRange | None:
        """Return between what the error of new outputs lies, where answers tell their spread."""
        if not self.likelihood.linear:
            return None
        chosen = distinct_points(points)
        _, covariance = self.likelihood.predict(
            self._mixture, chosen, return_std=False, return_cov=True, new_output=False
        )
        known = None
        if self.learns_noise:
            told = self.transform is None and self.counts_tell_noise
            known = self._noise_by_counts(chosen) if told else known_noise(self.measurements)
        return error_range(
            self._new_numbers(chosen, *self._marginals(chosen, new_output=True)),
            covariance=np.asarray(covariance),
            log_noise=known,
            probability=LIKELY,
            measurements=self.measurements,
        )

    @property
    def predicts_within(self) -> bool:
        """Whether inputs hold predictions by a release, or by public rows, within it."""
        return self.predictor is not None or self.public_rows is not None

    def coefficients(self, *, stored: Store, beside: bool = False) -> dict[str, Any] | None:
        """Return what programs in other languages predict by, if they can.

        Parameters
        ----------
        stored, beside
            As for `cloakgp.release.coefficient_tree.coefficient_tree`.
        """
        if not has_coefficients(self.likelihood):
            return None
        return coefficient_tree(self, stored=stored, beside=beside)

    def __repr__(self) -> str:
        answers = sum(measurement.answers.values.size for measurement in self.measurements)
        about = "" if self.likelihood.linear else f" about {self.likelihood.outputs}"
        if self._keeps_sums:
            about += f"{' of' if about else ' about'} {self.n_rows:,} rows"
        return short_form(
            f"Release of {answers} noisy answers{about}, {self.guarantee}", insecure=self.insecure
        )

    def _repr_html_(self) -> str:
        origin, accuracy = self.provenance, self.accuracy()
        unused = "" if origin is None else origin.unused_delta(self.guarantee)
        made = [] if origin is None else [("made", f"{origin.made}, cloakgp {origin.version}")]
        columns = self.input_names if self.schema is None else self.schema.sources
        answers = sum(measurement.answers.values.size for measurement in self.measurements)
        return html_table(
            f"Release about {self.output_name}",
            [
                ("guarantee", str(self.guarantee)),
                *([("δ", unused)] if unused else []),
                ("private", f"{self.output_name} ({self.likelihood.outputs})"),
                ("public", ", ".join(columns) or f"{self.n_inputs} inputs"),
                ("rows", f"{self.n_rows:,}"),
                ("published", f"{answers:,} noisy answers, {len(self.measurements)} measurements"),
                *made,
            ],
            lead="" if accuracy is None else f"For one person, {accuracy.for_one_person()}",
            insecure=self.insecure,
        )

"""`cloakgp release` of a private class in every row."""

from __future__ import annotations

from dataclasses import dataclass

from cloakgp.choices import choose_label_prior
from cloakgp.cli import options
from cloakgp.cli.console import warn
from cloakgp.cli.design_progress import design_progress
from cloakgp.cli.doubts import budget_doubts, exact_rates
from cloakgp.cli.plan import Plan
from cloakgp.design import CriterionName
from cloakgp.label_fitting import LABEL_MECHANISMS, LabelMechanism, release_labels
from cloakgp.models import default_latent_kernel
from cloakgp.models.defaults import LATENT_SD
from cloakgp.models.links import LINKS, LinkName
from cloakgp.privacy.labels import Classes
from cloakgp.release import LabelRelease
from cloakgp.release.label_release import Learning
from cloakgp.tables import read_labelled_rows

CRITERIA: tuple[CriterionName, ...] = ("logdet", "trace")
LEARNED: dict[str, Learning | None] = {"map": "map", "average": "average", "none": None}


@dataclass(frozen=True)
class ClassOptions:
    """Options that go with --classes only; empty text and None for what was not given."""

    classes: str
    class_rates: str
    link: str
    criterion: str
    steps: int | None


def release_classes(plan: Plan, given: ClassOptions) -> LabelRelease:
    """Ask a private column of classes once.

    Classes keep the order in which they are declared: with two, the latent function is high where
    the second is probable.

    Parameters
    ----------
    plan : Plan
    given : ClassOptions

    Raises
    ------
    ValueError
        For anything that does not make sense; no message quotes a label.
    """
    names = options.names(given.classes, example="yes,no")
    if len(names) == 1:
        raise ValueError(
            f"--classes names one class, {names[0]}: name every class that can occur, at least two"
        )
    classes = Classes.checked(names)
    mechanism = _mechanism(plan.mechanism)
    link = _link(given.link, default="logit" if mechanism == "laplace" else "probit")
    _check_iteration(plan, given, mechanism=mechanism, classes=classes)
    rates = None
    if given.class_rates:
        rates = options.positive_numbers(given.class_rates, option="--class-rates")
    X, y = read_labelled_rows(plan.table, inputs=plan.inputs, output=plan.output, classes=names)
    for doubt in (
        *budget_doubts(epsilon=plan.epsilon, delta=plan.delta, rows=len(X)),
        *exact_rates(rates or ()),
    ):
        warn(doubt)
    plan.check_rows(X)
    with design_progress(gap=plan.gap) as progress:
        prior = choose_label_prior(
            X,
            classes=classes,
            kernel=plan.kernel(X, variance=LATENT_SD**2, default=default_latent_kernel),
            link_name=link,
            class_rates=rates,
            inducing=plan.inducing,
        )
        return release_labels(
            X,
            y,
            prior=prior,
            query=plan.query(X),
            classes=classes,
            epsilon=plan.epsilon,
            delta=plan.delta,
            mechanism=mechanism,
            criterion=_criterion(given.criterion),
            steps=1 if given.steps is None else given.steps,
            gap=plan.gap,
            learning=LEARNED[plan.learn],
            learn_means=rates is None,
            input_names=plan.inputs,
            output_name=plan.output,
            progress=progress,
        )


def _mechanism(name: str) -> LabelMechanism:
    for mechanism in LABEL_MECHANISMS:
        if name == mechanism:
            return mechanism
    raise ValueError(
        f"--mechanism must be one of {', '.join(LABEL_MECHANISMS)} for classes, got {name!r}"
    )


def _link(name: str, *, default: LinkName) -> LinkName:
    for link in LINKS:
        if (name or default) == link:
            return link
    raise ValueError(f"--link must be one of {', '.join(LINKS)}, got {name!r}")


def _criterion(name: str) -> CriterionName:
    for criterion in CRITERIA:
        if (name or CRITERIA[0]) == criterion:
            return criterion
    raise ValueError(f"--criterion must be one of {', '.join(CRITERIA)}, got {name!r}")


def _check_iteration(
    plan: Plan, given: ClassOptions, *, mechanism: LabelMechanism, classes: Classes
) -> None:
    """Raise ValueError where options and the papers' iteration do not go together."""
    _criterion(given.criterion)
    if given.steps is not None and given.steps < 1:
        raise ValueError(f"--steps must be at least 1, got {given.steps}")
    if mechanism != "laplace":
        if given.steps is not None or given.criterion:
            raise ValueError("--steps and --criterion go with --mechanism laplace")
        return
    if classes.channels > 1:
        raise ValueError("--mechanism laplace is for two classes: take bayes for more")
    if plan.queries is not None:
        raise ValueError("--mechanism laplace asks at the rows: --queries goes with the others")
    if given.link == "probit":
        raise ValueError("--mechanism laplace iterates the logit: --link probit goes with others")

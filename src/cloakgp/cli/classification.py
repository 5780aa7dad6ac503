"""`cloakgp release` of a private class in every row."""

from __future__ import annotations

from cloakgp.classification import DPGPClassifier
from cloakgp.cli import options
from cloakgp.cli.plan import ClassOptions, Plan, as_table
from cloakgp.cli.progress import reporting
from cloakgp.cli.warnings import showing_warnings
from cloakgp.criteria import Criterion
from cloakgp.criteria.laplace import LAPLACE
from cloakgp.models import default_latent_kernel
from cloakgp.models.defaults import LATENT_SD
from cloakgp.names import CRITERIA, LINKS, CriterionName, LinkName
from cloakgp.privacy.labels import Classes
from cloakgp.release import LabelRelease
from cloakgp.tables import read_labelled_rows


def release_classes(plan: Plan, given: ClassOptions) -> LabelRelease:
    """Ask a private column of classes once, as `DPGPClassifier` does.

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
    # In the order of the declaration.
    classes = Classes.checked(names)
    chosen = plan.criterion_for("classes")
    _check_options(plan, given, chosen=chosen, classes=classes)
    rates = None
    if given.class_rates:
        rates = options.positive_numbers(given.class_rates, option="--class-rates")
    with reporting("reading the table", gap=plan.gap) as reporter, showing_warnings():
        X, y = read_labelled_rows(plan.table, inputs=plan.inputs, output=plan.output, classes=names)
        plan.check_ranges(X)
        model = DPGPClassifier(
            plan.kernel(X, variance=LATENT_SD**2, default=default_latent_kernel),
            classes=classes,
            epsilon=plan.epsilon,
            delta=plan.delta,
            criterion=chosen.name,
            link=_link(given),
            class_rates=rates,
            inducing=plan.inducing,
            learn=plan.learning,
            step_criterion=_step_criterion(given),
            steps=given.steps,
            gap=plan.gap,
            memory=plan.memory,
        )
        table, labels = as_table(X, y, inputs=plan.inputs, output=plan.output)
        return model.fit(
            table, labels, plan.query_table(), progress=reporter.gap, tell=reporter.step
        ).release_


def _link(given: ClassOptions) -> LinkName | None:
    return options.one_of(LINKS, given.link, option="--link") if given.link else None


def _step_criterion(given: ClassOptions) -> CriterionName | None:
    if not given.step_criterion:
        return None
    return options.one_of(CRITERIA, given.step_criterion, option="--step-criterion")


def _check_options(plan: Plan, given: ClassOptions, *, chosen: Criterion, classes: Classes) -> None:
    """Raise ValueError, in the words of options, for what `DPGPClassifier` would refuse."""
    _link(given)
    _step_criterion(given)
    if given.steps is not None and given.steps < 1:
        raise ValueError(f"--steps must be at least 1, got {given.steps}")
    if not chosen.iterates:
        if given.steps is not None or given.step_criterion:
            raise ValueError(f"--steps and --step-criterion go with --criterion {LAPLACE.name}")
        return
    said = f"--criterion {chosen.name}"
    if classes.channels > 1:
        raise ValueError(f"{said} is for two classes: take bayes for more")
    if plan.queries is not None:
        raise ValueError(f"{said} asks at the rows: --queries goes with the others")
    if given.link and given.link != chosen.link:
        raise ValueError(
            f"{said} knows the {chosen.link} link alone: --link {given.link} goes with others"
        )

"""Private fits with one argument for each setting; one stage and no search by default."""

from functools import partial

from cloakgp import DPGPClassifier, DPGPRegressor
from cloakgp.fitting.fit import Plan, fit
from cloakgp.fitting.held import HeldTable
from cloakgp.fitting.interval import find_intervals
from cloakgp.fitting.steps import Learning
from cloakgp.fitting.strategies import Budget
from cloakgp.fitting.table import DesignSettings, Model
from cloakgp.models.likelihoods import NUMBERS


def release_held(
    X,
    y,
    *,
    prior,
    question,
    epsilon,
    delta,
    likelihood=NUMBERS,
    noise="gaussian",
    groups=None,
    hyperprior=None,
    average=False,
    stages=None,
    prior_within=None,
    transform=None,
    input_names=(),
    output_name="y",
    insecure_seed=None,
    **settings,
):
    """Fit a table that is held; an interval is looked for if there is a prior within one."""

    def model(found):
        if found is None:
            return Model(prior=prior, question=question, likelihood=likelihood)
        [within] = found
        return Model(prior=prior_within(within), question=within)

    table = HeldTable.of(
        X, groups=groups, transform=transform, input_names=input_names, output_name=output_name
    )
    plan = Plan(
        budget=Budget(epsilon, delta, noise=noise),
        model=model,
        settings=DesignSettings(**settings),
        learning=Learning(hyperprior=hyperprior, average=average),
        stages=None if stages is None else [(one.share, one.width) for one in stages],
        searched=() if prior_within is None else (question,),
        transform=transform,
        insecure_seed=insecure_seed,
    )
    return fit(table, y, plan)


def release_rows(rows, *, bounds, query=None, progress=None, **settings):
    """Fit numbers of rows that are read in passes."""
    alone = {"noise": "gaussian", "learn": None, "stages": None, "interval": False}
    model = DPGPRegressor(bounds=(bounds.lo, bounds.hi), **(alone | settings))
    asked = () if query is None else (query.X, query.weights)
    return model.fit_rows(rows, *asked, progress=progress).release_


def release_label_rows(rows, *, classes, query=None, **settings):
    """Fit classes of rows that are read in passes."""
    alone = {"noise": "gaussian", "learn": None}
    model = DPGPClassifier(classes=list(classes), **(alone | settings))
    asked = () if query is None else (query.X, query.weights)
    return model.fit_rows(rows, *asked).release_


def find(table, y, *, bounds, plan, insecure_seed=None):
    """Look for the intervals of the outputs of a table, as a fit does."""
    return find_intervals(
        partial(table.count, y=y),
        bounds=bounds,
        rows=table.counted,
        plan=plan,
        insecure_seed=insecure_seed,
    )

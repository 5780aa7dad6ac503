"""Private fits of tables in passes, with one argument for each setting."""

from functools import cache

from cloakgp.fitting.defaults import LARGEST_DEFAULT_QUERY, choose_prior
from cloakgp.fitting.fit import Plan, fit
from cloakgp.fitting.passes import RowTable, inducing_inputs
from cloakgp.fitting.steps import Learning
from cloakgp.fitting.strategies import Budget, Query
from cloakgp.fitting.table import DesignSettings, Model


def release_rows(
    rows,
    *,
    bounds,
    epsilon,
    delta,
    query=None,
    kernel=None,
    noise_variance=None,
    mean=None,
    inducing=200,
    approximation="fitc",
    hyperprior=None,
    average=False,
    insecure_seed=None,
    **settings,
):
    """Fit a table in passes in one stage, within the declared bounds."""
    table = RowTable.of(rows)
    points = inducing_inputs(table.summary, inducing, random_state=0)

    @cache
    def model(_):
        prior = choose_prior(
            table.summary.sample,
            bounds=bounds,
            kernel=kernel,
            noise_variance=noise_variance,
            mean=mean,
            inducing=points,
            approximation=approximation,
            input_names=rows.input_names,
        )
        return Model(prior=prior, question=bounds)

    plan = Plan(
        budget=Budget(epsilon, delta),
        model=model,
        settings=DesignSettings(
            query=query or Query(*table.summary.centres(LARGEST_DEFAULT_QUERY)), **settings
        ),
        learning=Learning(hyperprior=hyperprior, average=average),
        insecure_seed=insecure_seed,
    )
    return fit(table, table.passes, plan)

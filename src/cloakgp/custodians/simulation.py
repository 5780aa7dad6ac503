"""Simulation of several custodians in one process, to try a plan on data that are at hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from cloakgp.custodians.coordinator import Coordinator, JointRelease
from cloakgp.custodians.counting import JointCount
from cloakgp.custodians.errors import WaitingError
from cloakgp.custodians.exchange import MemoryExchange
from cloakgp.custodians.plan import Plan
from cloakgp.custodians.site import Site
from cloakgp.fitting.passes import Rows
from cloakgp.privacy.spending import asking_cohort, counted_in_charge


def simulate(
    plan: Plan, tables: Mapping[str, Rows], *, dropping: Sequence[str] = ()
) -> JointRelease:
    """Release the rows of several sites as they would, one after the other in this process.

    Noise and masks are drawn as ever: the release is as private as that of sites apart, though not
    from this process, which has all outputs. An account that is open counts what the release
    states, in one charge.

    Parameters
    ----------
    plan : Plan
    tables : mapping
        Rows, from `cloakgp.data`, by names of sites.
    dropping : sequence of str
        Sites that join, and do not answer: the others go on without them.

    Returns
    -------
    Release or MultiOutputRelease

    Raises
    ------
    CustodiansError
        As sites and coordinator raise it.

    Examples
    --------
    >>> import numpy as np
    >>> from cloakgp import DPGPRegressor
    >>> from cloakgp.data import ArrayRows
    >>> X = np.linspace(0, 10, 60)[:, None]
    >>> tables = {name: ArrayRows(X[part::3], np.sin(X[part::3, 0]))
    ...           for part, name in enumerate(["a", "b", "c"])}
    >>> model = DPGPRegressor(bounds=(-1, 1), epsilon=1.0, stages=None, interval=False)
    >>> release = simulate(Plan.of(model, sites="abc", input_names=["x"]), tables)
    >>> release.n_rows, release.custodians.honest
    (60, 2)
    """
    exchange = MemoryExchange()
    coordinator = Coordinator(exchange, plan)
    with TemporaryDirectory() as folder:
        sites = {
            name: Site(name, rows, exchange, Path(folder) / name, trusts_exchange=True)
            for name, rows in tables.items()
        }
        for site in sites.values():
            site.step()
        if dropping:
            coordinator.close_roster()
            for name in dropping:
                del sites[name]

        def pause(count: JointCount) -> None:
            done = []
            for place, (name, site) in enumerate(sites.items()):
                keeper_of = partial(count.keeper_of, site=name)
                # Of draws that are told at an interruption, too, one site's concern anybody.
                with counted_in_charge(keeper_of), asking_cohort(place):
                    done.append(site.step())
            if not any(done):
                raise WaitingError(coordinator.members, to="go on")

        while True:
            try:
                # Every call of the coordinator is a charge of its own.
                step = partial(pause, JointCount())
                return coordinator.collect(patience=float("inf"), pause=step)
            except WaitingError:
                left = [name for name in coordinator.members if name in dropping]
                if not left:
                    raise
                coordinator.begin_without(left)

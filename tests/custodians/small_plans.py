"""A plan of three small sites, and its steps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPRegressor
from cloakgp.custodians import Coordinator, MemoryExchange, Plan, Site
from cloakgp.data import ArrayRows

NAMES = ("east", "north", "west")
X = np.linspace(0.0, 10.0, 30)[:, None]
Y = np.sin(X[:, 0])
ONE_QUESTION = {
    "kernel": 0.5 * RBF(2.0),
    "noise_variance": 0.1,
    "learn": None,
    "stages": None,
    "interval": False,
    "inducing": 4,
}
TWO_QUESTIONS = {**ONE_QUESTION, "stages": [(0.4, None), (0.6, 1.0)]}


def plan_of(*, colluding=1, sites=NAMES, **settings):
    model = DPGPRegressor(
        **{"bounds": (-2, 2), "epsilon": 1.0, "delta": 1e-5, **ONE_QUESTION, **settings}
    )
    return Plan.of(model, sites=sites, input_names=["x"], colluding=colluding)


def rows_of(part, *, outputs=Y, inputs=X, parts=3):
    return ArrayRows(inputs[part::parts], outputs[part::parts], jobs=1)


def site_at(*parts, **settings):
    """A site that compares no digests: these tests have one machine."""
    return Site(*parts, **{"trusts_exchange": True, **settings})


class Ward:
    """Sites and coordinator of a plan, on one exchange."""

    def __init__(self, folder, *, plan=None, exchange=None, names=NAMES, **sites):
        self.folder = Path(folder)
        self.exchange = exchange or MemoryExchange()
        self.plan = plan or plan_of()
        self.coordinator = Coordinator(self.exchange, self.plan)
        self._names, self._settings = names, sites
        self.sites = {}
        self.begin_again(*names)

    def begin_again(self, *names):
        """Let new processes go on with some sites, which read all files anew."""
        for name in names:
            rows = rows_of(self._names.index(name))
            folder = self.folder / name
            self.sites[name] = site_at(name, rows, self.exchange, folder, **self._settings)

    def step(self, *names):
        return {name: self.sites[name].step() for name in names or self.sites}

    def ask(self):
        """Let all join, and the coordinator put the first question."""
        self.step()
        self.collect()

    def collect(self):
        from cloakgp.custodians import WaitingError

        try:
            return self.coordinator.collect()
        except WaitingError as error:
            return error.sites

    def finish(self):
        """Go on until there is a release."""
        for _ in range(50):
            found = self.collect()
            if not isinstance(found, tuple):
                return found
            self.step()
        raise AssertionError("it does not come to an end")

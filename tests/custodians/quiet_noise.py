"""No noise, in the place of that which custodians and tables draw."""

from __future__ import annotations

from cloakgp.privacy.noise import gaussian, laplace
from cloakgp.privacy.spending import Cost, spend


def silence(monkeypatch):
    """Draw no noise; return what it was to be added to, with scale, sensitivity and sharers."""
    drawn = []

    def adding(cost_of):
        def add(integers, *, scale, sensitivity, sharers, hide):
            drawn.append((integers.copy(), scale, sensitivity, sharers))
            cost = cost_of(len(integers), sensitivity=sensitivity, scale=scale)
            return spend(cost, lambda: hide(integers))

        return add

    def of_laplace(_, **settings):
        return Cost.of_pure("laplace", **settings)

    def of_gaussian(count, **settings):
        return Cost.of_gaussian(answers=count, **settings)

    monkeypatch.setattr(laplace, "add_share_of_laplace", adding(of_laplace))
    monkeypatch.setattr(gaussian, "add_share_of_gaussian", adding(of_gaussian))
    for law in (laplace.LaplaceNoise, gaussian.GaussianNoise):
        monkeypatch.setattr(law, "add", lambda _, integers, **__: integers)
    return drawn

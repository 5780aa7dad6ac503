"""Baselines, by the name under which users have them: see `cloakgp.estimators.baselines`."""

from cloakgp.estimators.baselines import *  # noqa: F403
from cloakgp.estimators.baselines import __all__ as __all__

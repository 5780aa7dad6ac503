"""
A plan: expected errors before any question
===========================================

A plan reads the public columns only. It states the expected error at each budget, and the facts
that become public.
"""

from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor
from cloakgp.plots import PlanDisplay

X = load_diabetes(as_frame=True, scaled=False).data[["bmi"]]

plan = DPGPRegressor(bounds=(0, 350), epsilon=1.0, delta=1e-3).plan(X)
PlanDisplay.from_plan(plan, output="progression")

# %%
# In a notebook, a plan shows itself:
plan

"""
A map over two inputs
=====================

Disease progression over body mass index and blood pressure. Lines join places where the
prediction has one sd; places without people have no colour.
"""

from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor
from cloakgp.plots import PredictionDisplay

table = load_diabetes(as_frame=True, scaled=False)
names = {"bmi": "body mass index (kg/m²)", "bp": "blood pressure (mmHg)"}
X = table.data[list(names)].rename(columns=names)

model = DPGPRegressor(bounds=(0, 350), epsilon=1.0, delta=1e-3)
model.fit(X, table.target.rename("progression"))

# %%
# Any holder of the release can draw this picture, at no cost in privacy.
PredictionDisplay.from_release(model.release_)

# %%
# Both inputs one by one, each at the median of the other:
PredictionDisplay.from_release(model.release_, apart=True)

"""
Categories, as they are in a table
==================================

Public columns may hold text. What each column is, is seen from the public columns, and kept in
the release: its users pass raw columns.
"""

from sklearn.datasets import load_diabetes

from cloakgp import DPGPRegressor
from cloakgp.columns import Category, Number, Schema
from cloakgp.plots import PredictionDisplay

table = load_diabetes(as_frame=True, scaled=False)
people = table.data[["age", "bmi", "sex"]].assign(sex=table.data["sex"].map({1: "one", 2: "other"}))

# %%
# The table names its two sexes 1 and 2, and does not say which is which. A schema gives units,
# too; without one, it is inferred.
schema = Schema(
    columns=(
        Number("age", unit="years"),
        Number("bmi", title="body mass index", unit="kg/m²"),
        Category("sex"),
    )
)
model = DPGPRegressor(bounds=(0, 350), epsilon=1.0, delta=1e-3, schema=schema)
model.fit(people, table.target.rename("progression"))
PredictionDisplay.from_estimator(model)

# %%
# Raw columns go in, with their index:
model.release_.predict_frame(people.head(3)).round(1)

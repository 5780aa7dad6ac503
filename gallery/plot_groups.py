"""
Several rows of one person
==========================

Twenty men did three exercises: three rows each. Said whose row is whose, all rows of one man are
protected together.
"""

import pandas as pd
from sklearn.datasets import load_linnerud

from cloakgp import DPGPRegressor
from cloakgp.plots import PredictionDisplay

table = load_linnerud(as_frame=True)
wide = table.data.assign(man=range(20), waist_cm=table.target["Waist"] * 2.54)
rows = wide.melt(["man", "waist_cm"], var_name="exercise", value_name="times")
rows.head(3)

# %%
# No one does an exercise more than 300 times, which is known without the table. Twenty people are
# very few: ε is large here, and bands are wide all the same.
model = DPGPRegressor(bounds=(0, 300), epsilon=4.0, delta=1e-3)
model.fit(rows[["waist_cm", "exercise"]], rows["times"], groups=rows["man"])
PredictionDisplay.from_estimator(model)

# %%
# What a single row would be promised, and a man with all of his rows is not, if groups were left
# out:
pd.Series(
    {
        "all rows of a man together": str(model.release_.guarantee),
        "people": model.release_.measurements[0].strategy.groups.max() + 1,
    }
)

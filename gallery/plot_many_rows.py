"""
Many rows, several of each unit
===============================

Each of 1,797 images of digits has 64 rows, one for each pixel. All rows of one image are
protected together: the release would be almost as likely if any one image were another.
"""

import numpy as np
from sklearn.datasets import load_digits

from cloakgp import DPGPRegressor
from cloakgp.data import ArrayRows
from cloakgp.plots import PredictionDisplay

digits = load_digits()
count = len(digits.images)
down, across = np.mgrid[:8, :8]
X = np.tile(np.column_stack([across.ravel(), down.ravel()]), (count, 1)).astype(float)
image = np.repeat(np.arange(count), 64)

# %%
# 115,008 rows are read chunk by chunk, by a sparse process, in bounded memory. The release holds
# a rule and sums, and none of the rows.
rows = ArrayRows(X, digits.data.ravel(), groups=image)
model = DPGPRegressor(bounds=(0, 16), epsilon=2.0, delta=1e-6, inducing=25).fit_rows(rows)
display = PredictionDisplay.from_estimator(model, unit="of 16", sd_kw={"levels": 2})
display.ax_.invert_yaxis()

# %%
# Beside the exact mean over all images, which is public here:
truth = digits.images.mean(axis=0)
predicted = model.predict(X[:64]).reshape(8, 8)
float(np.sqrt(np.mean((predicted - truth) ** 2)).round(2))

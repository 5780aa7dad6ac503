"""
Rows on a Dask cluster
======================

The rows lie on workers of a cluster, here two threads of this machine; the answers are summed
there, and noise is drawn once, where the fit was called. Whom one must trust then is said in
:doc:`/many-rows`.
"""

import dask.dataframe as dd
from distributed import Client
from sklearn.datasets import load_digits

from cloakgp import DPGPRegressor
from cloakgp.data import DaskRows
from cloakgp.plots import PredictionDisplay

# %%
# Every pixel of 1,797 written digits is a row: where it is, and how dark.
digits = load_digits(as_frame=True)
pixels = digits.data.melt(var_name="pixel", value_name="ink")
place = pixels["pixel"].str.extract(r"pixel_(\d)_(\d)").astype(float)
rows = place.rename(columns={0: "down", 1: "across"}).assign(ink=pixels["ink"])

# %%
# Privacy is that of one pixel here; the example of many rows protects a whole image.
with Client(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"):
    frame = dd.from_pandas(rows, npartitions=4)
    held = DaskRows.from_dataframe(frame, inputs=["across", "down"], output="ink")
    model = DPGPRegressor(bounds=(0, 16), epsilon=0.5, delta=1e-8, inducing=40).fit_rows(held)

PredictionDisplay.from_estimator(model, unit="of 16", sd_kw={"levels": 2}).ax_.invert_yaxis()

"""
More than two classes
=====================

Three cultivars of wine from two measurements. Each class is told from all the others, and has a
map of its own.
"""

from sklearn.datasets import load_wine

from cloakgp import DPGPClassifier
from cloakgp.plots import ClassificationDisplay

table = load_wine(as_frame=True)
X = table.data[["flavanoids", "color_intensity"]]
cultivar = table.target.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"}).rename("wine")

model = DPGPClassifier(classes=["Barolo", "Grignolino", "Barbera"], epsilon=2.0, delta=1e-3)
model.fit(X, cultivar)
ClassificationDisplay.from_estimator(model)

# %%
# All classes over each input, the other at its median:
ClassificationDisplay.from_estimator(model, apart=True)

# %%
# As the table is public here, we may look how often the most probable class is right. With
# private labels, this share would be a function of them, and must not be published.
(model.predict(X) == cultivar).mean().round(2)

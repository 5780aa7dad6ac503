"""
Probabilities of a private class
================================

Whether a tumour is malignant, from the mean radius and texture of its cells. Hatched is where 95
% limits leave the class open, and with strokes where only the privacy noise does.
"""

from sklearn.datasets import load_breast_cancer

from cloakgp import DPGPClassifier
from cloakgp.plots import ClassificationDisplay

table = load_breast_cancer(as_frame=True)
X = table.data[["mean radius", "mean texture"]]
labels = table.target.map(dict(enumerate(table.target_names))).rename("tumour")

# %%
# The classes are declared: they are public, and known without the table.
model = DPGPClassifier(classes=["benign", "malignant"], epsilon=1.0, delta=1e-3)
model.fit(X, labels)
ClassificationDisplay.from_estimator(model)

# %%
# Over one input, with what the privacy noise adds to the limits:
ClassificationDisplay.from_estimator(model, vary=["mean radius"])

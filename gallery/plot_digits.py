"""
Ten classes from pictures
=========================

Which digit was written, from sixteen numbers for each picture. Labels are private, pictures are
not.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.gaussian_process.kernels import RBF

from cloakgp import DPGPClassifier

digits = load_digits()
# Means over blocks of two by two pixels, from 0 to 16.
blocks = digits.images.reshape(-1, 4, 2, 4, 2).mean(axis=(2, 4)).reshape(-1, 16)
train, test = slice(0, 1200), slice(1200, None)

model = DPGPClassifier(
    kernel=4.0 * RBF(14.0, "fixed"),
    classes=range(10),
    epsilon=2.0,
    delta=1e-4,
    inducing=80,
    learn=None,
)
model.fit(blocks[train], digits.target[train])

# %%
# The table is public, so that errors on other pictures may be shown:
predicted = model.predict(blocks[test])
counts = np.zeros((10, 10), dtype=int)
np.add.at(counts, (digits.target[test], predicted.astype(int)), 1)

figure, ax = plt.subplots(figsize=(5.4, 5), layout="constrained")
ax.imshow(counts, cmap="Blues")
ax.set(xlabel="predicted", ylabel="written", xticks=range(10), yticks=range(10))
_ = ax.set_title(
    f"{np.mean(predicted == digits.target[test]):.0%} right, {model.release_.guarantee}"
)

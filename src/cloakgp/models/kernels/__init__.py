"""Covariance functions beside those of scikit-learn: non-stationary, of integrals, of outputs."""

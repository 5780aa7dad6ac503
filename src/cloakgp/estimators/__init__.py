"""Estimators in the manner of scikit-learn: what users call; they fit, and keep a release."""

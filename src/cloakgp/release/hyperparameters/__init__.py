"""Hyperparameters learned from noisy answers, or averaged over, at no cost in privacy."""

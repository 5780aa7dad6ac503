"""Likelihoods: how the outputs that answers sum depend on the latent function."""

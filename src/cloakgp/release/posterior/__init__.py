"""Posteriors given noisy answers: of numbers and classes, for strategies kept whole or as rules."""

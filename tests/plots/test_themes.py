"""Colours stand out from their background, and from each other, for colour-blind people too."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from cloakgp.plots.themes import DARK, LIGHT

# Machado, Oliveira and Fernandes 2009, severity 1, on linear light.
SIGHTS = {
    "full": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
THEMES = {"light": (LIGHT, "white"), "dark": (DARK, "#111417")}
# From linear light to X, Y and Z, and the white that belongs to it (sRGB, D65).
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = TO_XYZ.sum(axis=1)


def linear(colour):
    share = np.array(to_rgb(colour))
    return np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)


def lightness_and_hue(light):
    ratio = np.cbrt(TO_XYZ @ np.clip(light, 0, 1) / WHITE)
    return np.array([116 * ratio[1] - 16, 500 * (ratio[0] - ratio[1]), 200 * (ratio[1] - ratio[2])])


def contrast(one, other):
    bright, dark = sorted((float(TO_XYZ[1] @ linear(each)) for each in (one, other)), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("name", THEMES)
def test_words_and_marks_stand_out_from_the_background(name):
    """WCAG 2: at least 4.5 for words, and 3 for graphical objects."""
    theme, background = THEMES[name]
    for word in (theme.ink, theme.warning):
        assert contrast(word, background) >= 4.5
    for mark in (theme.curve, theme.pale, *theme.shades):
        assert contrast(mark, background) >= 3


@pytest.mark.parametrize("sight", SIGHTS)
@pytest.mark.parametrize("name", THEMES)
def test_colours_in_one_panel_are_told_apart(name, sight):
    """By 10 units of CIELAB; lines of classes differ in their dashes as well."""
    theme, _ = THEMES[name]
    first = theme.shades[:4]
    pairs = [*combinations(first, 2), (theme.band, theme.privacy)]
    for one, other in pairs:
        seen = [lightness_and_hue(SIGHTS[sight] @ linear(each)) for each in (one, other)]
        assert np.linalg.norm(seen[0] - seen[1]) > 10, (one, other)

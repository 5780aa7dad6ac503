"""Thumbnails of the gallery that can be read: the first panel of each first picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

# Pixels of a panel, roughly, in pictures of twice the resolution; wider pictures have several.
PANEL, ONE_PANEL = 950, 1650
# After sphinx-gallery, which makes its own when a build begins.
LATER = 900
FIRST = "_001_2_00x.png"


def first_panel(picture: Image.Image) -> Image.Image:
    """Return the left panel of a picture."""
    width, height = picture.size
    panels = round(width / PANEL) if width > ONE_PANEL else 1
    return picture.crop((0, 0, width // panels, height))


def write_thumbnails(app: Any) -> None:
    """Replace thumbnails by first panels, where the gallery's examples were run."""
    images = Path(app.srcdir) / "auto_examples" / "images"
    for path in images.glob(f"*{FIRST}"):
        thumbnail = images / "thumb" / f"{path.name.removesuffix(FIRST)}_thumb.png"
        with Image.open(path) as picture:
            panel = first_panel(picture)
            panel.thumbnail((panel.width // 2, panel.height // 2))
            panel.save(thumbnail)


def setup(app: Any) -> dict[str, bool]:
    """Register it."""
    app.connect("builder-inited", write_thumbnails, priority=LATER)
    return {"parallel_read_safe": True}

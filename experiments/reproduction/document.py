"""The report as a PDF."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl
from PIL import Image as Pictures
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.platypus import (
    CondPageBreak,
    Flowable,
    Image,
    KeepTogether,
    LongTable,
    PageBreak,
    Paragraph,
    SimpleDocTemplate,
    Spacer,
    TableStyle,
)

from experiments.reproduction import layout
from experiments.reproduction.layout import Shown, ShownItem, ShownRow
from experiments.reproduction.page import introduction
from experiments.reproduction.results import Results
from experiments.reproduction.sources import SOURCES, UNSOUND

# Greek letters and signs: matplotlib brings a font that has them.
FONT, BOLD, ITALIC = "DejaVuSans", "DejaVuSans-Bold", "DejaVuSans-Oblique"
INK, PALE, LINE = colors.HexColor("#22303c"), colors.HexColor("#5c6975"), colors.HexColor("#d7dde2")
ACCENT, TINT = colors.HexColor("#1f6f8b"), colors.HexColor("#f4f6f7")
MARGIN = 15 * mm
WIDTH = A4[0] - 2 * MARGIN
# Left on a page for an item to begin on it.
LEAST = 55 * mm
# Of what, published, reproduced, the authors' code and cloakgp.
SHARES = (0.29, 0.13, 0.2, 0.14, 0.24)
COUNTED = (0.23, 0.09, 0.13, 0.11, 0.11, 0.11, 0.11, 0.11)
UNSOUND_SHARES = (0.17, 0.27, 0.56)


@dataclass(frozen=True)
class Styles:
    """Styles of paragraphs, by what they are for."""

    title: ParagraphStyle
    source: ParagraphStyle
    item: ParagraphStyle
    text: ParagraphStyle
    facts: ParagraphStyle
    cell: ParagraphStyle
    head: ParagraphStyle

    @classmethod
    def made(cls) -> Styles:
        """Register the fonts, and return the styles."""
        folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
        for name in (FONT, BOLD, ITALIC):
            pdfmetrics.registerFont(TTFont(name, str(folder / f"{name}.ttf")))
        pdfmetrics.registerFontFamily(FONT, normal=FONT, bold=BOLD, italic=ITALIC, boldItalic=BOLD)
        text = ParagraphStyle(
            "text", fontName=FONT, fontSize=8.5, leading=12, textColor=INK, spaceAfter=4
        )
        small: dict[str, Any] = {"parent": text, "fontSize": 7, "leading": 9, "spaceAfter": 0}
        heading: dict[str, Any] = {"parent": text, "fontName": BOLD}
        return cls(
            title=ParagraphStyle("title", fontSize=18, leading=23, spaceAfter=8, **heading),
            source=ParagraphStyle(
                "source", fontSize=14, leading=18, spaceAfter=3, **heading | {"textColor": ACCENT}
            ),
            item=ParagraphStyle(
                "item", fontSize=9.5, leading=13, spaceBefore=10, spaceAfter=3, **heading
            ),
            text=text,
            facts=ParagraphStyle("facts", **small | {"textColor": PALE, "spaceAfter": 2.5}),
            cell=ParagraphStyle("cell", **small),
            head=ParagraphStyle("head", **small | {"fontName": BOLD}),
        )


class Outlined(SimpleDocTemplate):
    """A document whose headings are in its outline."""

    def afterFlowable(self, flowable: Flowable) -> None:
        """Add a heading to the outline."""
        level = {"source": 0, "item": 1}.get(getattr(getattr(flowable, "style", None), "name", ""))
        if level is None or not isinstance(flowable, Paragraph):
            return
        key = f"heading-{id(flowable)}"
        self.canv.bookmarkPage(key)
        self.canv.addOutlineEntry(flowable.getPlainText(), key, level=level, closed=level == 0)


def write_pdf(path: Path, results: Results) -> None:
    """Write the whole report as a PDF.

    Parameters
    ----------
    path : Path
    results : Results
    """
    document = Outlined(
        str(path),
        pagesize=A4,
        leftMargin=MARGIN,
        rightMargin=MARGIN,
        topMargin=MARGIN,
        bottomMargin=MARGIN,
        title=layout.TITLE,
        author="The cloakgp authors",
        lang="en",
    )
    styles = Styles.made()
    document.build(list(_story(results, styles)), onFirstPage=_foot, onLaterPages=_foot)


def _foot(canvas: Any, document: Any) -> None:
    canvas.saveState()
    canvas.setFont(FONT, 7)
    canvas.setFillColor(PALE)
    canvas.drawRightString(A4[0] - MARGIN, 8 * mm, str(document.page))
    canvas.restoreState()


def _story(results: Results, styles: Styles) -> Iterable[Flowable]:
    yield Paragraph(escape(layout.TITLE), styles.title)
    for words in introduction(results):
        yield Paragraph(escape(words), styles.text)
    yield _counts(results, styles)
    yield Spacer(0, 8)
    yield Paragraph("What does not hold", styles.source)
    yield _unsound(results, styles)
    for source in SOURCES:
        yield PageBreak()
        yield Paragraph(escape(source.name), styles.source)
        yield Paragraph(f"<i>{escape(source.reference)}</i>", styles.text)
        for shown in layout.shown_items(source, results):
            yield from _item(shown, styles)


def _counts(results: Results, styles: Styles) -> Flowable:
    counts = [one for source in SOURCES for one in layout.counts(source, results)]
    near, far = f"within {100 * layout.NEAR:g} %", f"within {100 * layout.FAR:g} %"
    heads = ("", "rows", "printed", near, far, "further off", "not reproduced", "not yet computed")
    rows = [
        (
            one.name,
            one.rows,
            one.published,
            one.near,
            one.not_far,
            one.far,
            one.without,
            one.waiting,
        )
        for one in (*counts, layout.total(counts))
    ]
    return _table(heads, [[str(cell) for cell in row] for row in rows], COUNTED, styles)


def _unsound(results: Results, styles: Styles) -> Flowable:
    heads = ("where", "what the paper says", "what is the case, and the tests that show it")
    rows = [
        [
            escape(one.place),
            escape(one.claim),
            "<br/>".join(
                [
                    escape(one.finding),
                    *map(_line, layout.measured(one, results)),
                    *(
                        f'<font color="#5c6975" size="6">{_breakable(test)}</font>'
                        for test in one.tests
                    ),
                ]
            ),
        ]
        for one in UNSOUND
    ]
    return _table(heads, rows, UNSOUND_SHARES, styles)


def _item(shown: ShownItem, styles: Styles) -> Iterable[Flowable]:
    item = shown.item
    yield CondPageBreak(LEAST)
    yield Paragraph(escape(f"{item.place}: {item.title}"), styles.item)
    for head, words in (("The paper: ", item.settings), ("Left open: ", item.leaves_open)):
        if words:
            yield Paragraph(f"<b>{head}</b>{escape(words)}", styles.facts)
    heads = list(layout.COLUMNS)
    if item.unit:
        heads[1] += f" ({item.unit})"
    yield _table(heads, [_row(row) for row in shown.rows], SHARES, styles)
    if item.remark:
        yield Spacer(0, 4)
        yield Paragraph(escape(item.remark), styles.text)
    for words, path in shown.pictures:
        yield KeepTogether([Spacer(0, 4), _picture(path), Paragraph(escape(words), styles.facts)])


def _row(row: ShownRow) -> list[str]:
    remark = f'<br/><font color="#5c6975">{escape(row.remark)}</font>' if row.remark else ""
    return [
        escape(row.what) + remark,
        escape(row.published),
        "<br/>".join(map(_line, row.reproduced)),
        escape(row.authors),
        "<br/>".join(map(_line, row.ours)),
    ]


def _line(one: Shown) -> str:
    parts = [f"<b>{escape(one.figure)}</b>"] if one.figure else []
    if one.label:
        parts.append(escape(one.label))
    if one.note:
        note = escape(one.note).replace(" = ", "\u00a0=\u00a0")
        parts.append(f'<font color="#5c6975">({note})</font>')
    if one.words:
        words = escape(one.words)
        parts.append(words if one.kind == "words" else f"<i>{words}</i>")
    return " ".join(parts)


def _breakable(test: str) -> str:
    """Let the address of a test be broken at its signs."""
    return escape(test).replace("/", "/\u200b").replace("_", "_\u200b").replace("::", "::\u200b")


def _table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], shares: Sequence[float], styles: Styles
) -> Flowable:
    cells = [[Paragraph(escape(head), styles.head) for head in heads]]
    cells += [[Paragraph(cell, styles.cell) for cell in row] for row in rows]
    return LongTable(
        cells,
        colWidths=[share * WIDTH for share in shares],
        repeatRows=1,
        spaceBefore=2,
        style=TableStyle(
            [
                ("VALIGN", (0, 0), (-1, -1), "TOP"),
                ("LINEBELOW", (0, 0), (-1, 0), 0.8, ACCENT),
                ("LINEBELOW", (0, 1), (-1, -1), 0.3, LINE),
                ("ROWBACKGROUNDS", (0, 1), (-1, -1), (colors.white, TINT)),
                ("LEFTPADDING", (0, 0), (-1, -1), 3),
                ("RIGHTPADDING", (0, 0), (-1, -1), 3),
                ("TOPPADDING", (0, 0), (-1, -1), 2),
                ("BOTTOMPADDING", (0, 0), (-1, -1), 2.5),
            ]
        ),
    )


def _picture(path: Path) -> Flowable:
    """Return a picture as wide as the page, or as high as half of it."""
    with Pictures.open(path) as picture:
        file = BytesIO()
        picture.convert("RGB").save(file, format="JPEG", quality=85)
        width, height = picture.size
    scale = min(WIDTH / width, 0.55 * A4[1] / height)
    file.seek(0)
    return Image(file, width=scale * width, height=scale * height)

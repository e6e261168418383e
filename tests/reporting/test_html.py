"""The pages: whole, escaped, self-contained."""

import base64
import io
import re

import numpy as np
from PIL import Image

from weft.reporting import alignment, html


def test_text_is_escaped_and_markup_is_not_escaped_twice():
    cell = html.strong("<b> & c")
    assert cell == "<strong>&lt;b&gt; &amp; c</strong>"
    assert html.paragraph(cell) == f"<p>{cell}</p>"
    assert "<script>" not in html.page("<script>", ["<script>"], "<script>")


def test_a_table_has_a_header_and_rows():
    text = html.table(["a", "b"], [["1", "<2>"]], kind="text")
    assert "<th>a</th><th>b</th>" in text
    assert "<td>1</td><td>&lt;2&gt;</td>" in text
    assert '<table class="text">' in text


def test_a_picture_is_inside_the_page_at_twice_its_size():
    text = html.picture(alignment(np.eye(2), ["a", "b"], ["c", "d"]), 'says "x"', "below")
    data, width, height = re.findall(r'base64,([^"]+)" width="(\d+)" height="(\d+)"', text)[0]
    image = Image.open(io.BytesIO(base64.b64decode(data)))
    assert image.format == "PNG"
    assert abs(image.width - 2 * int(width)) <= 2
    assert abs(image.height - 2 * int(height)) <= 2
    assert 'alt="says &quot;x&quot;"' in text
    assert "<figcaption>below</figcaption>" in text


def test_right_and_wrong_do_not_hang_on_colour():
    assert "✓ yes" in html.marked("yes", True)
    assert "✗ no" in html.marked("no", False)


def test_empty_sections_leave_nothing():
    assert html.section("Title", html.row([]), html.facts([]), "") == ""
    assert html.small("x", "") == "x"
    assert html.section("Title", "", html.paragraph("x")) == "<h2>Title</h2>\n<p>x</p>"


def test_the_page_fetches_nothing():
    text = html.page("t", [html.picture(alignment(np.eye(1), ["a"], ["b"]), "x")])
    assert re.findall(r'(?:src|href)="(?!data:)', text) == []
    assert "http" not in re.sub(r"base64,[^\"]+", "", text)
    assert '<meta name="viewport"' in text

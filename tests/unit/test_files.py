"""Files into documents."""

import io
import logging
import os
import sys
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from documents import (
    PACKAGE,
    csv_file,
    docx_file,
    encrypted_pdf,
    epub_file,
    pdf,
    pptx_file,
    repacked,
    sheet_of,
    xlsx_file,
)
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PageObject

import qrmem
from qrmem.errors import BadDocument, BadImport, MissingError, UsageError
from qrmem.io.triple_files import read_openie
from qrmem.llm.recorder import Replayer
from qrmem.text.decoding import open_file
from qrmem.text.files import discover, from_bytes, read
from qrmem.text.normalise import normalise
from qrmem.types import Document

FRENCH = "L'élève naïf s'était enfui à Noël après avoir mangé la crème brûlée; où était-il ?\n"


@pytest.mark.parametrize(
    ("encoding", "recorded"),
    [
        ("utf-8", "utf-8"),
        ("utf-8-sig", "utf-8-sig"),
        ("utf-16", "utf-16"),
        ("utf-16-le", "utf-16-le"),
        ("utf-16-be", "utf-16-be"),
        ("utf-32", "utf-32"),
        ("cp1252", "cp1252"),
        ("latin-1", "cp1252"),
    ],
)
def test_the_encoding_is_found_and_recorded(encoding: str, recorded: str) -> None:
    document = from_bytes(FRENCH.encode(encoding), "a.txt")
    assert document.text == FRENCH
    assert document.metadata == {"source": "a.txt", "encoding": recorded}


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("naïve café", "latin-1"),
        (
            "Смотритель гавани вёл книгу тридцать один год, и никто не попросил её показать.",
            "cp1251",
        ),
        (
            "Смотритель гавани вёл книгу тридцать один год, и никто не попросил её показать.",
            "koi8-r",
        ),
        (
            "港の管理人は三十一年間、その台帳をつけてきたが、誰も見せてくれとは言わなかった。",
            "shift_jis",
        ),
        ("港口管理员保管这本账簿已有三十一年，在此期间从未有人要求查看。", "gb18030"),
        ("港口管理员保管这本账簿已有三十一年，在此期间从未有人要求查看。", "utf-16-be"),
        ("He said it’s fine – “really” – and paid £20 for the coffee.", "cp1252"),
        ("Zoë’s résumé is on the desk.", "cp1252"),
        ("Elle habite près de la forêt.", "cp1252"),
        ("The boat costs £20.", "cp1252"),
        ("“No,” she said… 20 °C is warm – half the crew’s gone.", "cp1252"),
        ("The € fell by ½ point; see § 3 of the naïve plan.", "cp1252"),
        ("Der Käfer läuft über die Straße und fällt in die größte Pfütze.", "cp1252"),
        ("El niño comió piñas en la montaña. ¿Cuándo volverá mañana?", "cp1252"),
        ("Não há informações sobre a situação da população.", "cp1252"),
        ("På øen er der en båd, og ærlig talt går det godt.", "cp1252"),
        ("Hun kjøpte en blåbærkake, og så gikk hun ut.", "cp1252"),
        ("Perché la città è così bella? È l’estate, però.", "cp1252"),
        ("Książka leży na stole. Jutro będzie padać śnieg i znów zrobi się zimno.", "cp1250"),
        ("Příliš žluťoučký kůň úpěl ďábelské ódy. Včera večer přišel starý přítel.", "cp1250"),
        ("Ο καπετάνιος κρατούσε το βιβλίο του λιμανιού τριάντα ένα χρόνια.", "cp1253"),
        ("Пристанищният началник водеше книгата тридесет и една години.", "cp1251"),
        ("항구 관리인은 삼십일 년 동안 장부를 썼지만 아무도 보여 달라고 하지 않았다.", "euc-kr"),
    ],
)
def test_other_encodings_are_recognised_by_their_bytes(text: str, encoding: str) -> None:
    assert from_bytes(text.encode(encoding), "a.txt").text == text


LEDGER = "The harbour master kept the book.\n" * 9000


@pytest.mark.parametrize(
    "text",
    [
        LEDGER + "Nobody asked in the café.\n",
        LEDGER + "Nobody asked in the café.\n" + LEDGER,
        LEDGER + "Nobody asked in the café.\n" + LEDGER + "“Never,” said the keeper – once.\n",
        LEDGER.replace("\n", " ") + "Nobody asked in the café.",
    ],
)
def test_an_encoding_is_recognised_by_few_accents_in_a_long_text(text: str) -> None:
    document = from_bytes(text.encode("cp1252"), "a.txt")
    assert (document.text, document.metadata["encoding"]) == (text, "cp1252")


@pytest.mark.parametrize("name", ["iso-8859-1", "latin1", "us-ascii"])
def test_a_page_that_says_latin_1_is_read_as_windows_1252(name: str) -> None:
    page = f'<meta charset="{name}"><p>“£20 – the Šárka café.”</p>'
    assert from_bytes(page.encode("cp1252"), "a.html").text == "“£20 – the Šárka café.”"


def test_a_page_in_a_declared_encoding_is_read_in_it() -> None:
    page = '<html><head><meta charset="iso-8859-2"></head><body>Zażółć gęślą jaźń</body></html>'
    document = from_bytes(page.encode("iso-8859-2"), "a.html")
    assert document.text == "Zażółć gęślą jaźń"
    assert document.metadata["encoding"] == "iso-8859-2"


def test_a_few_broken_bytes_do_not_cost_the_text() -> None:
    data = (FRENCH * 10).encode() + b"\xff end"
    document = from_bytes(data, "a.txt")
    assert document.text == FRENCH * 10 + "\ufffd end"
    assert document.metadata["encoding"] == "utf-8, 1 broken"


def test_broken_bytes_are_few_among_accents_that_come_late() -> None:
    document = from_bytes((LEDGER + FRENCH).encode() + b"\xff end", "a.txt")
    assert document.text == LEDGER + FRENCH + "\ufffd end"
    assert document.metadata["encoding"] == "utf-8, 1 broken"


def test_a_stray_control_character_is_blanked_and_nothing_else_is_lost() -> None:
    text = "The keeper wrote.\x00 " + "A line of the ledger. " * 20
    assert from_bytes(text.encode(), "a.txt").text == text.replace("\x00", " ")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "is empty"),
        (b" \r\n\t ", "is empty"),
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8, "is binary"),
        (b"\x7fELF" + bytes(400), "is binary"),
        (b"ab\x00\x01\x02\x03" * 50, "is binary"),
        (b"\xef\xbb\xbf", "no text|is empty"),
    ],
)
def test_a_value_that_is_not_text_is_refused_in_one_line(data: bytes, reason: str) -> None:
    with pytest.raises(BadDocument, match=reason) as caught:
        from_bytes(data, "thing.txt")
    assert "\n" not in str(caught.value)
    assert "thing.txt" in str(caught.value)


def outcome(data: bytes, name: str) -> Document | str:
    """The document, or the words with which it is refused."""
    try:
        return from_bytes(data, name)
    except BadDocument as refusal:
        return str(refusal)


@given(st.binary(max_size=300), st.sampled_from(["a.txt", "a.md", "a.html", "a", "a.pdf"]))
def test_any_bytes_give_a_document_or_one_line(data: bytes, name: str) -> None:
    found = outcome(data, name)
    if isinstance(found, str):
        assert "\n" not in found
    else:
        assert found.text.strip()
        assert normalise(found.text) == found.text
        assert all(0 <= part.start < len(found.text) for part in found.parts)


def test_line_ends_are_unified_before_offsets_are_taken() -> None:
    document = from_bytes(b"\xef\xbb\xbfOne.\r\n\r\nChapter 2\r\n\r\nTwo.\r", "a.txt")
    assert document.text == "One.\n\nChapter 2\n\nTwo.\n"
    assert document.text[document.parts[0].start :].startswith("Chapter 2")


@pytest.mark.parametrize(
    ("name", "text", "title"),
    [
        ("a/The Sea.txt", "# no title\n", "The Sea"),
        ("a.md", "intro\n\n# The *Sea* #\n\ntext", "The *Sea*"),
        ("a.md", "no heading", "a"),
        ("84.txt", "The Project Gutenberg eBook\n\nTitle: Salt Water\n\nAuthor: X\n", "Salt Water"),
        ("84.txt", "Title: of a letter\n", "84"),
        ("a.html", "<title> The\n Sea </title><h1>Other</h1><p>x", "The Sea"),
        ("a.html", "<h1>The <i>Sea</i></h1><p>x", "The Sea"),
        ("b.html", "<p>x", "b"),
        ("standard input", "text", "standard input"),
    ],
)
def test_titles(name: str, text: str, title: str) -> None:
    assert from_bytes(text.encode(), name).title == title


def test_html_is_read_as_a_reader_sees_it() -> None:
    page = """<!DOCTYPE html><html><head><title>T</title><style>p {x}</style></head><body>
    <script>var a = "<p>no</p>";</script><h1>Salt &amp; Tide</h1>
    <p>It was <b>late</b>;<br>the caf&eacute; was&nbsp;shut.<!-- no --></p>
    <ul><li>bread<li><p>milk</p></ul>
    <table><tr><th>Ship</th><td> Marigold </td></tr><tr><td>Cargo<td>salt</table>
    <pre>one
      two</pre><div>end<noscript>no</noscript></div><h2>The Flood</h2><p>It rose.
    """
    document = from_bytes(page.encode(), "a.html")
    assert document.text == (
        "Salt & Tide\n\nIt was late;\nthe café was\u00a0shut.\n\n- bread\n\nmilk\n\n"
        "Ship\tMarigold\nCargo\tsalt\n\none\n      two\n\nend\n\nThe Flood\n\nIt rose."
    )
    labels = [
        (part.label, document.text[part.start :][: len(part.label)]) for part in document.parts
    ]
    assert labels == [("Salt & Tide", "Salt & Tide"), ("The Flood", "The Flood")]


def test_html_without_a_suffix_is_known_by_its_beginning() -> None:
    assert (
        from_bytes(b"<!doctype html><p>Hello <b>there</b>", "standard input").text == "Hello there"
    )


TAGS = ["<p>", "</p>", "<pre>", "</div>", "<li>", "<script>", "<h1>", "a", "&amp;", "<", "</x"]


@given(st.lists(st.sampled_from(TAGS)))
def test_any_html_is_read(tags: list[str]) -> None:
    found = outcome(" ".join(["text", *tags]).encode(), "a.html")
    assert isinstance(found, Document)
    assert "text" in found.text


def test_markdown_headings_are_parts() -> None:
    document = from_bytes(b"# One\n\na\n\n## Two\n\nb\n\n### Three\n\nc", "a.md")
    assert [part.label for part in document.parts] == ["One", "Two"]


@pytest.mark.parametrize("name", ["a.pdf", "standard input"])
def test_pdf_pages_are_parts(name: str) -> None:
    document = from_bytes(pdf("First page.", "", "Third page.", title="The Ledger"), name)
    assert document.text == "First page.\n\nThird page."
    assert document.title == "The Ledger"
    assert [(p.label, document.text[p.start :][:5]) for p in document.parts] == [
        ("page 1", "First"),
        ("page 3", "Third"),
    ]


def test_a_pdf_locked_for_its_owner_only_is_read() -> None:
    assert from_bytes(encrypted_pdf("", "owner"), "a.pdf").text == "Secret harbour."


@pytest.mark.parametrize("name", ["a.docx", "a"])
def test_docx_headings_are_parts_and_tables_are_read(name: str) -> None:
    document = from_bytes(docx_file(), name)
    assert document.text == (
        "The Arrival\n\nMiss Tolliver came at noon.\n\nShip\tCargo\nMarigold\tsalt\n\n"
        "A remark\n\nThe Storm\n\nIt blew."
    )
    assert document.title == "The Ledger"
    assert [p.label for p in document.parts] == ["The Arrival", "The Storm"]


def test_a_chapter_that_is_missing_does_not_cost_the_book() -> None:
    document = from_bytes(epub_file(without="OPS/text/c1.xhtml"), "a.epub")
    assert "Gulls cried." in document.text
    assert document.metadata["left_out"] == "OPS/text/c1.xhtml (missing)"


@pytest.mark.parametrize(
    ("changed", "left_out"),
    [
        ({"c1": ""}, "OPS/text/c1.xhtml (no text)"),
        ({"c1": bytes(range(256)) * 40}, "OPS/text/c1.xhtml (no text)"),
        ({"toc": ""}, ""),
        ({"toc": "<nav><a href='text/c1.xhtml'>One &nbsp; <b></nav>"}, ""),
        ({"without": "OPS/toc"}, "OPS/toc (missing)"),
        ({"book": PACKAGE.format(toc='href="toc"').replace("Salt and", "Salt&nbsp;and <b>")}, ""),
    ],
)
def test_one_broken_part_does_not_cost_the_book(changed: dict[str, Any], left_out: str) -> None:
    document = from_bytes(epub_file(**changed), "a.epub")
    assert "Gulls cried." in document.text
    assert str(document.metadata.get("left_out", "")) == left_out


def test_a_chapter_whose_bytes_are_damaged_does_not_cost_the_book() -> None:
    data = bytearray(epub_file(c1="<p>" + "".join(f"Wave {n} rose. " for n in range(900))))
    at = data.index(b"OPS/text/c1.xhtml") + 200
    data[at : at + 50] = bytes(50)
    document = from_bytes(bytes(data), "a.epub")
    assert "Gulls cried." in document.text
    assert document.metadata["left_out"] == "OPS/text/c1.xhtml (broken)"


def test_a_page_whose_stream_is_broken_does_not_cost_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_page = PageObject.extract_text

    def stumble(page: PageObject, **options: Any) -> str:
        if page.page_number == 1:
            raise KeyError("/Font")
        return read_page(page, **options)

    monkeypatch.setattr(PageObject, "extract_text", stumble)
    document = from_bytes(pdf("One.", "Two.", "Three."), "a.pdf")
    assert document.text == "One.\n\nThree."
    assert document.metadata["left_out"] == "page 2 (broken)"


def test_a_chapter_that_is_listed_often_is_read_once() -> None:
    many = '<itemref idref="b"/>' * 50_000
    package = PACKAGE.format(toc='href="toc"').replace('<itemref idref="b"/>', many)
    long = "<p>It rose and rose.</p>" * 5_000
    tracemalloc.start()
    document = from_bytes(epub_file(book=package, c1=long), "a.epub")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert document.text.count("It rose and rose.") == 5_000
    assert peak < 60_000_000


@pytest.mark.parametrize("name", ["a.epub", "a.docx"])
def test_a_file_that_unpacks_to_more_than_a_document_may_hold_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qrmem.text.decoding.ByteBudget.__init__.__defaults__", (1_000_000,))
    zeros = "0" * 3_000_000
    data = epub_file(c1=zeros)
    if name == "a.docx":
        out = io.BytesIO(docx_file())
        with zipfile.ZipFile(out, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("word/zeros.xml", zeros)
        data = out.getvalue()
    assert len(data) < 100_000
    with pytest.raises(BadDocument, match="split it into several files"):
        from_bytes(data, name)


def test_front_matter_gives_title_and_metadata_and_is_no_text() -> None:
    page = b'---\ntitle: "The Quay"\nauthor: Zed Yates\ntags:\n- sea\n---\n# Gulls\nThey cried.\n'
    document = from_bytes(page, "note.md")
    assert (document.title, document.metadata["author"]) == ("The Quay", "Zed Yates")
    assert document.text.startswith("# Gulls")
    assert [part.label for part in document.parts] == ["Gulls"]


def test_front_matter_does_not_say_whose_a_document_is() -> None:
    page = b"---\nuser: ann\nchat: trip\nturn: 5\nrole: user\nnoted_of: x\n---\nA text.\n"
    metadata = from_bytes(page, "note.md").metadata
    assert not metadata.keys() & {"user", "chat", "turn", "role", "noted_of"}
    assert (metadata["file_user"], metadata["file_chat"]) == ("ann", "trip")


@pytest.mark.parametrize("page", ["---\nOnce upon a time\n---\nthe end", "text\n---\na: b\n---\n"])
def test_other_marks_at_the_start_stay_in_the_text(page: str) -> None:
    assert from_bytes(page.encode(), "note.md").text.rstrip() == page.rstrip()


@pytest.mark.parametrize("tag", ["object", "select", "svg", "template", "iframe"])
def test_an_element_without_its_end_does_not_swallow_the_page(tag: str) -> None:
    page = f"<html><body><p>Before.</p><{tag}><p>After.</p></body></html>"
    assert from_bytes(page.encode(), "a.html").text == "Before.\n\nAfter."


@pytest.mark.parametrize(("name", "version"), [("a.epub", 2), ("a.epub", 3), ("a", 3)])
def test_epub_chapters_are_parts_in_reading_order(name: str, version: int) -> None:
    document = from_bytes(epub_file(version), name)
    assert document.text == "The Quay\n\nGulls cried.\n\nThe Flood\n\nIt rose."
    assert document.title == "Salt and Tide"
    assert [p.label for p in document.parts] == ["The Quay", "The Flood"]


SECTIONS = """<html><body><h2 id="ch7">Seven</h2><p>It begins.</p>
<h3><a id="s 1"></a>Calm</h3><p>No wind.</p><p>Still none.</p>
<div id="s8"><h3>Storm</h3><p>It blew.</p></div></body></html>"""
LINKS = [
    ("c%200.xhtml", "Six"),
    ("c1.xhtml#ch7", "Chapter 7"),
    ("c1.xhtml#s%201", "7.1"),
    ("c1.xhtml#s8", "7.8"),
]
PAGES = "".join(f'<a href="text/c1.xhtml#{at}">{n}</a>' for n, at in enumerate(["ch7", "s8"]))


def contents(version: int, links: list[tuple[str, str]]) -> str:
    """A table of contents with a list of pages."""
    if version == 2:
        point = (
            '<navPoint><navLabel><text>{1}</text></navLabel><content src="text/{0}"/></navPoint>'
        )
        rows = "".join(point.format(*link) for link in links)
        page = '<pageTarget><navLabel><text>9</text></navLabel><content src="text/c1.xhtml#s8"/>'
        pages = f"<pageList>{page}</pageTarget></pageList>"
        return f"<ncx><navMap>{rows}</navMap>{pages}</ncx>"
    rows = "".join(f'<li><a href="text/{link}">{title}</a></li>' for link, title in links)
    ops = 'xmlns:epub="http://www.idpf.org/2007/ops"'
    pages = f'<nav epub:type="page-list">{PAGES}</nav><nav epub:type="landmarks">{PAGES}</nav>'
    return f'<html {ops}><nav epub:type="toc"><ol>{rows}</ol></nav>{pages}</html>'


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize(
    ("links", "labels"),
    [
        (LINKS, ["Six", "Chapter 7", "7.1", "7.8"]),
        (LINKS[2:], ["The Quay", "Seven", "7.1", "7.8"]),
        ([LINKS[0], ("c1.xhtml", "Part II"), ("c1.xhtml#ch7", "Chapter 7")], ["Six", "Chapter 7"]),
        ([LINKS[0], ("c1.xhtml#gone", "7"), ("c1.xhtml#lost", "8")], ["Six", "7"]),
        ([], ["The Quay", "Seven"]),
    ],
)
def test_each_place_of_an_epubs_contents_begins_a_part(
    version: int, links: list[tuple[str, str]], labels: list[str]
) -> None:
    book = epub_file(version, toc=contents(version, links), c1=SECTIONS)
    document = from_bytes(book, "a.epub")
    assert document.text.endswith(
        "Seven\n\nIt begins.\n\nCalm\n\nNo wind.\n\nStill none.\n\nStorm\n\nIt blew."
    )
    assert [part.label for part in document.parts] == labels
    starts = {part.label: document.text[part.start :] for part in document.parts}
    assert starts.get("7.1", "Calm").startswith("Calm")
    assert starts.get("7.8", "Storm").startswith("Storm")


def test_what_is_before_the_first_place_belongs_to_the_section_before() -> None:
    page = "<html><body><p>Still six.</p><h3 id='s'>Calm</h3><p>No wind.</p></body></html>"
    links = [LINKS[0], ("c1.xhtml#s", "7")]
    document = from_bytes(epub_file(3, toc=contents(3, links), c1=page), "a.epub")
    assert [part.label for part in document.parts] == ["Six", "7"]
    assert document.text[document.parts[1].start :] == "Calm\n\nNo wind."


@pytest.mark.parametrize(
    ("name", "data", "reason"),
    [
        ("a.pdf", pdf("text")[:200], "not a complete PDF"),
        ("a.pdf", b"%PDF-1.4\n" + b"\x00\xff" * 500, "not a complete PDF"),
        ("a.pdf", pdf("", ""), "OCR"),
        ("a.pdf", encrypted_pdf("user", "owner"), "encrypted"),
        ("a.docx", docx_file()[:900], "not a complete DOCX"),
        ("a.docx", b"PK\x03\x04 nothing", "not a complete DOCX"),
        ("a.docx", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(500), "encrypted or an old Office"),
        ("a.docx", epub_file(), "not a complete DOCX"),
        ("a.xlsx", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(500), "save it as .xlsx without"),
        ("a.xlsx", docx_file(), "not a complete XLSX"),
        ("a.pptx", docx_file(), "not a complete PPTX"),
        ("a.csv", b'a,b\n"' + b"x" * 200_000, "not a complete CSV"),
        ("a.epub", epub_file()[:700], "not a complete EPUB"),
        ("a.epub", docx_file(), "not a complete EPUB"),
    ],
)
def test_broken_and_locked_files_are_refused_in_one_line(
    name: str, data: bytes, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(BadDocument, match=reason) as caught:
        from_bytes(data, name)
    assert "\n" not in str(caught.value)
    assert capfd.readouterr() == ("", "")


def test_the_libraries_may_log_again_afterwards() -> None:
    with pytest.raises(BadDocument):
        from_bytes(b"%PDF-1.4 broken", "a.pdf")
    assert not logging.getLogger("pypdf").disabled


def test_an_archive_that_unpacks_to_gigabytes_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipfile.ZipInfo("word/document.xml")
    bomb.file_size = 2**40
    monkeypatch.setattr(zipfile.ZipFile, "infolist", lambda self: [bomb])
    with pytest.raises(BadDocument, match="contains more than 100 MB"):
        from_bytes(docx_file(), "a.docx")


@pytest.mark.parametrize(
    ("name", "module"),
    [("a.pdf", "pypdf"), ("a.docx", "docx"), ("a.xlsx", "openpyxl"), ("a.pptx", "pptx")],
)
def test_without_the_extra_the_message_says_how_to_get_it(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingError, match=r'-m pip install "qrmem\[files\]"'):
        from_bytes(b"data", name)


NELL = "name: Nell; built: 1902; note: a brig"


@pytest.mark.parametrize(
    ("name", "data"), [("a.csv", csv_file()), ("b.csv", csv_file(";")), ("a.tsv", csv_file("\t"))]
)
def test_a_row_of_a_table_says_what_its_cells_are(name: str, data: bytes) -> None:
    assert from_bytes(data, name).text == f"name: Marigold; built: 1851\n\n{NELL}"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"Ann,1851\nBen,1860\n", "Ann\t1851\n\nBen\t1860"),  # figures are no names of columns
        (b"name,name\nAnn,Lee\n", "name\tname\n\nAnn\tLee"),
        (b"name\nAnn\n", "name\n\nAnn"),
        (b"name,built\nNell,1902,Oslo\n", "name: Nell; built: 1902; Oslo"),
        (b'name,note\nNell,"first\n second"\n', "name: Nell; note: first second"),
    ],
)
def test_columns_without_names_are_separated_by_tabs(data: bytes, text: str) -> None:
    assert from_bytes(data, "a.csv").text == text


def test_each_sheet_of_a_workbook_is_a_part() -> None:
    document = from_bytes(xlsx_file(), "boats")
    crew = "who: Miss Tolliver; since: 1860-05-01"
    boats = f"Boats of the harbour\n\nname: Marigold; built: 1851\n\n{NELL}"
    assert document.text == f"{boats}\n\n{crew}"
    assert [part.label for part in document.parts] == ["sheet Boats", "sheet Crew"]


def test_slides_have_tables_groups_and_notes() -> None:
    document = from_bytes(pptx_file(), "show")
    first = "The Harbour\n\nShip: Marigold; Cargo: salt\n\nSay that it is old."
    assert document.text == f"{first}\n\nMiss Tolliver came at noon."
    assert document.title == "The Harbour"
    assert [part.label for part in document.parts] == ["slide 1: The Harbour", "slide 2"]


def test_entities_of_xml_are_not_unpacked() -> None:
    laughs = "".join(f'<!ENTITY a{n + 1} "{f"&a{n};" * 10}">' for n in range(9))
    bomb = f'<!DOCTYPE x [<!ENTITY a0 "ha">{laughs}]><worksheet>&a9;</worksheet>'
    with pytest.raises(BadDocument):
        from_bytes(repacked(xlsx_file(), sheet1=bomb, sheet2=bomb), "a.xlsx")
    local = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
    read = sheet_of('<row r="1"><c t="inlineStr"><is><t>&e;</t></is></c></row>')
    with zipfile.ZipFile(io.BytesIO(read)) as archive:
        sheet = local + archive.read("xl/worksheets/sheet1.xml").decode()
    with suppress(BadDocument):
        assert "root" not in from_bytes(repacked(read, sheet1=sheet), "a.xlsx").text


def test_reading_a_path(tmp_path: Path) -> None:
    path = tmp_path / "The Sea.txt"
    path.write_text("It rose.", encoding="utf-8")
    document = read(path)
    assert (document.text, document.title, document.id) == ("It rose.", "The Sea", None)
    assert document.metadata["source"] == str(path)


@pytest.mark.parametrize(
    ("name", "reason"),
    [("none.txt", "no such file"), ("", "is a folder"), ("a\0b", "cannot be read")],
)
def test_a_path_that_is_no_file_is_refused(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(BadDocument, match=reason) as caught:
        read(f"{tmp_path}/{name}")
    assert "\0" not in str(caught.value)


def test_folders_are_searched_to_the_bottom_in_order(tmp_path: Path) -> None:
    for name in [
        "b.txt",
        "a/z.md",
        "a/b/c.HTML",
        "a.txt",
        "x.png",
        ".hidden.txt",
        ".git/d.txt",
        "n",
    ]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("text", encoding="utf-8")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = discover(tmp_path)
    assert [p.relative_to(tmp_path).as_posix() for p in found] == [
        "a.txt",
        "a/b/c.HTML",
        "a/z.md",
        "b.txt",
    ]
    assert found.passed_over == {"of an unsupported kind (n, .png)": 2}
    for glob, names in [
        ("*.txt", ["a.txt", "b.txt"]),
        ("**/*.txt", ["a.txt", "b.txt"]),
        ("a/*", ["a/b/c.HTML", "a/z.md"]),
        ("n", ["n"]),
        ("*.pdf", []),
    ]:
        assert [p.relative_to(tmp_path).as_posix() for p in discover(tmp_path, glob)] == names


def test_links_that_leave_the_folder_are_passed_over_and_counted(tmp_path: Path) -> None:
    folder, outside = tmp_path / "notes", tmp_path / "private"
    for place in (folder / "sub", outside):
        place.mkdir(parents=True)
        (place / "a.txt").write_text("text", encoding="utf-8")
    (folder / "secret.txt").symlink_to(outside / "a.txt")
    (folder / "secrets").symlink_to(outside)
    (folder / "same.txt").symlink_to(folder / "sub" / "a.txt")
    (folder / "nowhere.txt").symlink_to(tmp_path / "none")
    (folder / "sub" / "up").symlink_to(folder)

    def names(*, follow_links: bool) -> list[str]:
        found = discover(folder, follow_links=follow_links)
        return [path.relative_to(folder).as_posix() for path in found]

    assert names(follow_links=False) == ["same.txt", "sub/a.txt"]
    os.mkfifo(folder / "pipe.txt")
    odd = {"behind a broken link": 1, "not a file but a pipe or a device": 1}
    outside_of_it = "outside of the folder, through a link (--follow-links reads them)"
    assert discover(folder).passed_over == {outside_of_it: 2, **odd}
    assert discover(folder, follow_links=True).passed_over == odd
    followed = ["same.txt", "secret.txt", "secrets/a.txt", "sub/a.txt"]
    assert names(follow_links=True) == followed


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(BadDocument, match="is a pipe or a device"):
        read(tmp_path / "pipe.txt")
    with pytest.raises(BadImport, match="a pipe or a device"):
        read_openie(tmp_path / "pipe.txt")
    with pytest.raises(UsageError, match="a pipe or a device"):
        Replayer(tmp_path / "pipe.txt")
    with pytest.raises(OSError, match="a pipe or a device"):
        open_file(tmp_path / "pipe.txt")


def test_a_pipe_named_gitignore_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n", encoding="utf-8")
    os.mkfifo(tmp_path / ".gitignore")
    assert [path.name for path in discover(tmp_path)] == ["a.py"]


def test_a_file_given_by_itself_is_kept_whatever_its_name(tmp_path: Path) -> None:
    path = tmp_path / ".notes.log"
    path.write_text("text", encoding="utf-8")
    with qrmem.sync.open("memory://", embedder="none") as memory:
        assert memory.add(path, glob="*.txt").added == (".notes.log",)
        with pytest.raises(BadDocument, match="no such file or folder"):
            memory.add(tmp_path / "none")

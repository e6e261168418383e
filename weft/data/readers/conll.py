"""CoNLL columns: one word a line, a blank line after each sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from weft.core.errors import ConfigError
from weft.data.readers.registry import Files, Reader, readers
from weft.data.rows import Row, counted

_UD = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
_WORD_ID = re.compile(r"[0-9]+")
_OTHER_ID = re.compile(r"[0-9]+[-.][0-9]+")

Token = tuple[int, list[str]]  # line number, columns


def read_conll(files: Files) -> Iterator[Row]:
    """Yield (words, labels) of each sentence of a file of columns."""
    files.need_kinds("conll", ("words", "text", "labels"))
    return _rows(files, _plain_tokens(files), _columns(files, (), ("1", "-1")))


def read_conllu(files: Files) -> Iterator[Row]:
    """Yield (words, labels) of each sentence of a CoNLL-U file; ids 1-2 and 8.1 are skipped."""
    files.need_kinds("conllu", ("words", "text", "labels"))
    return _rows(files, _ud_tokens(files), _columns(files, _UD, ("form", "upos")))


def _columns(files: Files, names: tuple[str, ...], default: tuple[str, str]) -> tuple[int, ...]:
    """Return the places of the word column and the label column."""
    columns = files.options.columns or default
    return tuple(_column(column, names) for column in columns)


def _column(column: str, names: tuple[str, ...]) -> int:
    if column.lower() in names:
        return names.index(column.lower())
    if column == "-1":
        return -1
    if not column.isdecimal() or column == "0":
        known = f"one of {', '.join(names)} or " if names else ""
        raise ConfigError(f"`data.columns` cannot be `{column}` here. Give {known}a number from 1.")
    return int(column) - 1


def _rows(files: Files, tokens: Iterator[Token | None], columns: tuple[int, ...]) -> Iterator[Row]:
    sentence: list[Token] = []
    for token in tokens:
        if token:
            sentence.append(token)
        elif sentence:
            yield from _row(files, sentence, columns)
            sentence = []


def _row(files: Files, sentence: list[Token], columns: tuple[int, ...]) -> Iterator[Row]:
    words = [cells[columns[0]] for _, cells in sentence]
    labels = [cells[columns[-1]] for _, cells in sentence]
    joined = " ".join(words) if "text" in files.kinds else words
    yield from files.row(sentence[0][0], files.place(joined, labels))


def _plain_tokens(files: Files) -> Iterator[Token | None]:
    """Yield tokens, None at a sentence's end; comments begin a sentence and have another width."""
    width, first, fresh = 0, 0, True
    for line, text in files.lines():
        cells = text.split("\t") if "\t" in text else text.split()
        if not text.strip() or cells[0] == "-DOCSTART-":
            fresh = True
            yield None
        elif fresh and text.startswith("#") and len(cells) != width:
            continue
        else:
            width, first, fresh = width or len(cells), first or line, False
            if _right_width(files, line, len(cells), width, first):
                yield line, cells
    yield None


def _ud_tokens(files: Files) -> Iterator[Token | None]:
    for line, text in files.lines():
        cells = text.split("\t")
        if not text.strip():
            yield None
        elif _OTHER_ID.fullmatch(cells[0]) or text.startswith("#"):
            continue
        elif not _WORD_ID.fullmatch(cells[0]):
            files.refuse(
                files.path, line, f"begins with {cells[0][:20]!r}, not a word's number. Mend the line."
            )
        elif _right_width(files, line, len(cells), len(_UD), 0):
            yield line, cells
    yield None


def _right_width(files: Files, line: int, count: int, width: int, first: int) -> bool:
    columns = [_column(column, _UD) for column in files.options.columns]
    if count == width and max(columns, default=0) < width and (width > 1 or len(files.kinds) == 1):
        return True
    rule = f"line {first} has {width}" if first else f"CoNLL-U has {width}"
    if count == width:
        rule = f"column {max(columns, default=1) + 1} is wanted"
    has = counted(count, "column")
    files.refuse(files.path, line, f"has {has}, but {rule}. Mend the line, or name data.columns=.")
    return False


def describe_conll(files: Files) -> str:
    """Say which column gives what."""
    columns = [f"column {name}" for name in files.options.columns] or ["the first column", "the last column"]
    return f"a word a line: words from {columns[0]}, labels from {columns[-1]}"


def describe_conllu(files: Files) -> str:
    """Say which column gives what."""
    columns = files.options.columns or ("form", "upos")
    columns = f"words from column {columns[0]}, labels from column {columns[-1]}"
    return f"a word a line: {columns}; ids 1-2 and 8.1 skipped"


readers.register("conll")(Reader(read_conll, describe_conll))
readers.register("conllu")(Reader(read_conllu, describe_conllu))

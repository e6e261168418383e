import io

import numpy as np
import pytest
from tiny_runs import train_classes

import weft
from weft.cli.inputs import read_inputs
from weft.core.errors import DataError


@pytest.fixture(scope="module")
def series_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("series")
    lines = [f'{{"y": {i}, "x": [[{i}, 1], [2, {i}]]}}' for i in range(40)]
    (folder / "x.jsonl").write_text("\n".join(lines))
    return weft.train(
        folder / "x.jsonl",
        task={"name": "regress", "input": "values"},
        model={"family": "gru", "width": 4},
        data={"columns": ["x", "y"]},
        train={"steps": 1},
        threads=1,
        run=folder / "run",
    )


def test_numbers_are_json_or_an_object_as_in_training(series_run):
    lines = b'[[1, 2], [3, 4]]\n\n{"x": [[5, 6]], "y": 1}\n'
    first, blank, last = read_inputs(io.BytesIO(lines), series_run)
    assert blank is None
    np.testing.assert_array_equal(first, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(last, [[5, 6]])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (b"[[1, 2]\n", "line 1: This is not JSON"),
        (b"[[1, 2]]\n[[1]]\n", r"line 2: A series must have shape \(steps, 2\), but has \(1, 1\)"),
        (b'{"z": 1}\n', "line 1: The object has no key `x`. It has: z."),
        (b"one two\n", "line 1: `one two` is not a list of numbers. Give one JSON list a line"),
    ],
)
def test_a_line_that_is_no_input_is_refused_by_number(series_run, line, words):
    with pytest.raises(DataError, match=f"^stdin, {words}"):
        list(read_inputs(io.BytesIO(line), series_run))


def test_a_tab_is_content_where_training_saw_no_table(tmp_path):
    run = train_classes(tmp_path)
    assert list(read_inputs(io.BytesIO(b"x\t1\n"), run)) == ["x\t1"]

"""The timed quality runs: `python scripts/results.py [ROW …]` trains, tests and writes results/ROW.json.

Each row is a shipped recipe on standard data, beside trivial baselines. Rows whose data are absent are
named and counted. `--table` only writes README's table anew from the result files.
"""

from __future__ import annotations

import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "results"
BEGIN, END = "<!-- results -->", "<!-- /results -->"

Baselines = Callable[[Any, Any], dict[str, float]]  # (run, test evaluation) -> name -> value


@dataclass(frozen=True)
class Row:
    """One line of the table: what is trained, and what it should reach."""

    name: str
    data: str
    setting: str
    recipe: str
    metric: str
    must: str
    stretch: str
    seeds: int = 3
    changes: dict[str, Any] = field(default_factory=dict)
    baselines: Baselines = lambda run, evaluation: {}
    beside: tuple[str, ...] = ()
    made: str | None = None  # a synthetic set that is written first
    gpu: bool = False  # its budget is meant for a GPU; elsewhere the row is left out
    asked: bool = False  # it takes an hour, so it runs only when it is named


def no_label_model(run: Any, evaluation: Any) -> dict[str, float]:
    """Majority class, and logistic regression on n-grams (characters for names, words for sentences)."""
    from weft.metrics import accuracy
    from weft.tasks.baselines import Grams, logistic_on_grams, majority_label

    train = [row.values for row in run.session.parts.train]
    test = [row.values for row in run.session.parts.test]
    wanted = [label for _, label in test]
    chars = run.settings.data.tokens == "char"
    grams = Grams("char", 3) if chars else Grams("word", 2)
    told = logistic_on_grams([x for x, _ in train], [y for _, y in train], [x for x, _ in test], grams)
    return {
        "majority class": accuracy(majority_label((y for _, y in train), len(test)), wanted).value,
        "linear on n-grams": accuracy(told, wanted).value,
    }


def tag_baseline(run: Any, evaluation: Any) -> dict[str, float]:
    """Each word's most frequent tag."""
    from weft.metrics import token_accuracy
    from weft.tasks.baselines import frequent_tags

    train = [row.values for row in run.session.parts.train]
    test = [row.values for row in run.session.parts.test]
    told = frequent_tags(train, [words for words, _ in test])
    return {"most frequent tag": token_accuracy(told, [tags for _, tags in test]).value}


def protein_baseline(run: Any, evaluation: Any) -> dict[str, float]:
    """Ridge regression on residue shares."""
    from weft.metrics import spearman
    from weft.tasks.baselines import ridge_on_counts

    train = [row.values for row in run.session.parts.train]
    test = [row.values for row in run.session.parts.test]
    values = [float(value) for _, value in train]
    told = ridge_on_counts([text for text, _ in train], _array(values), [text for text, _ in test])
    return {"ridge on residue counts": spearman(told, [float(value) for _, value in test]).value}


def unigram_baseline(run: Any, evaluation: Any) -> dict[str, float]:
    """Character frequencies."""
    from weft.tasks.baselines import unigram_bits

    tokens = run.session.fields["text"]
    train, test = ([tokens.encode(row.values[0]) for row in part] for part in _parts(run))
    sizes = _array([len(row) for row in test]) + 1
    return {"character frequencies": unigram_bits(train, test, sizes, tokens.size).value}


def music_baseline(run: Any, evaluation: Any) -> dict[str, float]:
    """Key frequencies."""
    from weft.tasks.baselines import key_frequency_nll

    train, test = ([row.values[0] for row in part] for part in _parts(run))
    return {"key frequencies": key_frequency_nll(train, test).value}


def series_baseline(run: Any, evaluation: Any) -> dict[str, float]:
    """Seasonal naive, and one linear map from history to horizon."""
    import numpy as np

    from weft.tasks.baselines import linear_forecast, seasonal_naive, tell_linear

    session = run.session
    horizon, season = run.settings.task_config.horizon, run.settings.data.season
    windows = [_windows(session, part) for part in ("train", "test")]
    (history, future), (known, wanted) = windows
    linear = tell_linear(linear_forecast(history[::4], future[::4]), known)
    naive = seasonal_naive(known, horizon, season)
    return {
        "seasonal naive": float(np.mean((naive - wanted) ** 2)),
        "linear": float(np.mean((linear - wanted) ** 2)),
    }


def mean_baseline(run: Any, evaluation: Any) -> dict[str, float]:
    """Always the mean."""
    import numpy as np

    train, test = ([float(row.values[1]) for row in part] for part in _parts(run))
    return {"training mean": float(np.mean((np.array(test) - np.mean(train)) ** 2))}


def translation_baseline(run: Any, evaluation: Any) -> dict[str, float]:
    """The source itself, and the translation of the training sentence that is nearest."""
    from weft.metrics import bleu
    from weft.tasks.baselines import nearest_targets

    train, test = ([row.values for row in part] for part in _parts(run))
    sources, wanted = [source for source, _ in test], [target for _, target in test]
    return {
        "source copied": bleu(sources, wanted).value,
        "nearest sentence": bleu(nearest_targets(train, sources), wanted).value,
    }


def _windows(session: Any, part: str) -> tuple[Any, Any]:
    import numpy as np

    from weft.data import WindowFeed

    data = session.dataset(getattr(session.parts, part))
    c = session.settings.task_config
    feed = WindowFeed(data.columns["series"], c.history, c.horizon, 1, 256, shuffle=False)
    batches = [feed.batch(0, i) for i in range(feed.batches(0))]
    history, future = (np.concatenate([b[name].numpy() for b in batches]) for name in ("history", "future"))
    return history, future


def _parts(run: Any) -> tuple[Any, Any]:
    return run.session.parts.train, run.session.parts.test


def _array(values: Any) -> Any:
    import numpy as np

    return np.array(values)


ROWS = [
    Row(
        "names",
        "names_18lang",
        "language of a surname, deduplicated, 80/10/10 by hash",
        "classify/names_18lang",
        "accuracy",
        "≥ 83 %",
        "85 %",
        baselines=no_label_model,
        beside=("macro_f1",),
    ),
    Row(
        "ud_ewt",
        "ud_english_ewt",
        "UPOS, standard split, words and characters",
        "tag/ud_english_ewt",
        "accuracy",
        "≥ 93.5 %",
        "95 %",
        seeds=1,
        baselines=tag_baseline,
    ),
    Row(
        "tiny_shakespeare",
        "tiny_shakespeare",
        "every character of the last 10 %, state carried",
        "language/tiny_shakespeare",
        "bits_per_character",
        "≤ 2.2",
        "2.05",
        seeds=1,
        baselines=unigram_baseline,
        beside=("bits_without_cache",),
    ),
    Row(
        "jsb",
        "JSB chorales",
        "standard split",
        "music/jsb",
        "frame_nll",
        "≤ 8.45",
        "8.1",
        baselines=music_baseline,
    ),
    Row(
        "etth1",
        "ETTh1",
        "336 → 96 hours, 7 channels, standard split",
        "forecast/etth1",
        "mse",
        "< .47",
        "< .40",
        seeds=1,
        baselines=series_baseline,
    ),
    *(
        Row(
            f"adding_{family}",
            f"adding T=200, {family}",
            "50,000 generated, 1,000 tested",
            f"regress/adding_{family}",
            "mse",
            "< 1e-3" if family != "rnn" else "shown beside",
            "1e-4" if family != "rnn" else "–",
            seeds=1,
            baselines=mean_baseline,
            made="adding",
        )
        for family in ("lstm", "gru", "tcn", "transformer", "rnn")
    ),
    Row(
        "sst",
        "sst (binary)",
        "sentence level, no outside vectors",
        "classify/sst",
        "accuracy",
        "≥ 80 %",
        "83 %",
        baselines=no_label_model,
    ),
    Row(
        "protein_tm50",
        "protein_tm50",
        "given split, validation 10 % by hash",
        "regress/protein_tm50",
        "spearman",
        "≥ .65",
        ".72",
        seeds=1,
        baselines=protein_baseline,
    ),
    *(
        Row(
            f"multi30k_{name}",
            f"multi30k en→de, {model}",
            f"flickr 2016 test, cased 13a sacreBLEU, beam 5; {hardware}",
            f"translate/{recipe}",
            "bleu",
            must,
            stretch,
            seeds=1,
            changes=changes,
            baselines=translation_baseline,
            beside=("chrf",),
            gpu=not changes,
            asked=bool(changes),
        )
        for model, recipe, must, stretch, names in (
            ("transformer", "multi30k", "≥ 33", "38", ("transformer", "transformer_cpu")),
            ("lstm+additive", "multi30k_lstm", "≥ 30", "34", ("lstm", "lstm_cpu")),
        )
        for name, hardware, changes in (
            (names[0], "3 min of a GPU", {}),
            (names[1], "50 min of one CPU core", {"threads": 1, "train": {"minutes": 50}}),
        )
    ),
]


def run_row(row: Row) -> dict[str, Any]:
    """Train a row with its seeds and return what the result file holds."""
    from weft.bench.records import commit_of_sources

    seeds = [_run_seed(row, seed + 1) for seed in range(row.seeds)]
    values = [seed["metrics"][row.metric]["value"] for seed in seeds]
    return {
        "row": row.name,
        "data": row.data,
        "setting": row.setting,
        "recipe": row.recipe,
        "metric": row.metric,
        "must": row.must,
        "stretch": row.stretch,
        "value": statistics.fmean(values),
        "values": values,
        "share": seeds[0]["metrics"][row.metric]["share"],
        "beside": {name: statistics.fmean(s["metrics"][name]["value"] for s in seeds) for name in row.beside},
        "baselines": seeds[0]["baselines"],
        "parameters": seeds[0]["parameters"],
        "seconds": statistics.fmean(seed["seconds"] for seed in seeds),
        "seeds": seeds,
        "hardware": hardware(),
        "commit": commit_of_sources(),
        "date": time.strftime("%Y-%m-%d"),
    }


def measure_padding() -> dict[str, Any]:
    """Measure the share of padding in the batches that multi30k is trained with, over three epochs."""
    import numpy as np

    from weft.api.session import open_session
    from weft.api.settings import parse_settings
    from weft.bench.records import commit_of_sources
    from weft.cli.recipes import load
    from weft.core.config import merge
    from weft.data import padding_waste, plan_batches

    changes = {"batch": {"tokens": 4096}, "model": {"width": 8, "feedforward": 8, "layers": 1}}
    begin = time.perf_counter()
    session = open_session(parse_settings(merge(load("translate/multi30k"), changes)))
    data = session.dataset(session.parts.train)
    lengths = np.stack([data.lengths("source"), data.lengths("target")], 1)
    values = [padding_waste(lengths, plan_batches(lengths, 4096, 1, epoch)) for epoch in range(3)]
    return {
        "row": "padding",
        "data": "multi30k",
        "setting": "4,096 padded source + target tokens a batch, three epochs",
        "metric": "padding",
        "must": "≤ 5 %",
        "stretch": "3 %",
        "value": statistics.fmean(values),
        "values": values,
        "share": True,
        "beside": {},
        "baselines": {},
        "parameters": 0,
        "seconds": time.perf_counter() - begin,
        "hardware": hardware(),
        "commit": commit_of_sources(),
        "date": time.strftime("%Y-%m-%d"),
    }


def _run_seed(row: Row, seed: int) -> dict[str, Any]:
    """Train and test once."""
    from weft.api.settings import parse_settings
    from weft.api.training import start
    from weft.cli.recipes import load
    from weft.core.config import merge
    from weft.evaluation import summarise

    with tempfile.TemporaryDirectory() as folder:
        changes = {"seed": seed, "run": f"{folder}/run", **row.changes, **_made(row, folder)}
        run, outcome = start(parse_settings(merge(load(row.recipe), changes)))
        evaluation = run.evaluate()
        return {
            "seed": seed,
            "metrics": summarise(evaluation)["metrics"],
            "baselines": row.baselines(run, evaluation) if seed == 1 else {},
            "parameters": run.parameters,
            "steps": outcome.step,
            "seconds": outcome.seconds,
        }


def _made(row: Row, folder: str) -> dict[str, Any]:
    """Write the synthetic set a row is about, and return where its parts are."""
    if row.made is None:
        return {}
    from weft.data.synthetic import make

    paths = make(row.made, 50_000, 1, f"{folder}/{row.made}", held_out=1_000)
    return {"data": {part: str(path) for part, path in paths.items()}}


def hardware() -> str:
    """Say what this was run on."""
    import torch

    if torch.cuda.is_available():
        return f"{torch.cuda.get_device_name()}, torch {torch.__version__}"
    return f"{platform.machine()} CPU, {torch.get_num_threads()} threads, torch {torch.__version__}"


def table() -> str:
    """Return the README's table of the result files."""
    head = "| data | setting | metric | must | stretch | reached | baselines | parameters | training |"
    lines = [head, "|---|---|---|---|---|---|---|---|---|"]
    order = [row.name for row in ROWS]
    files = sorted(
        RESULTS.glob("*.json"), key=lambda p: order.index(p.stem) if p.stem in order else len(order)
    )
    lines += [_line(json.loads(path.read_text(encoding="utf-8"))) for path in files]
    return "\n".join(lines)


def _line(result: dict[str, Any]) -> str:
    def show(value: float) -> str:
        if result["share"]:
            return f"{100 * value:.1f} %"
        return f"{value:.3g}" if value < 0.1 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"

    reached = f"**{show(result['value'])}**"
    if len(result["values"]) > 1:
        reached += f" ({', '.join(map(show, result['values']))})"
    reached += "".join(
        f"; {name.replace('_', '-')} {show(value)}" for name, value in result["beside"].items()
    )
    baselines = ", ".join(f"{name} {show(value)}" for name, value in result["baselines"].items())
    minutes = f"{result['seconds'] / 60:.1f} min"
    cells = [
        result["data"],
        result["setting"],
        _words(result["metric"]),
        result["must"],
        result["stretch"],
    ]
    parameters = f"{result['parameters']:,}" if result["parameters"] else "–"
    minutes = minutes if result["parameters"] else "–"
    return f"| {' | '.join([*cells, reached, baselines, parameters, minutes])} |"


def _words(name: str) -> str:
    return name.replace("_", " ")


def write_table() -> None:
    """Put the table between its marks in README.md."""
    page = ROOT / "README.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}", encoding="utf-8")


def main(words: list[str]) -> None:
    """Run the rows named (all without names), write their files, and the table."""
    runs = {row.name: partial(run_row, row) for row in ROWS} | {"padding": measure_padding}
    asked = {row.name for row in ROWS if row.asked}
    names = [word for word in words if not word.startswith("-")] or [
        name for name in runs if name not in asked
    ]
    unknown = [name for name in names if name not in runs]
    if unknown:
        sys.exit(f"There is no row `{unknown[0]}`. Known: {', '.join(runs)}.")
    skipped = [] if "--table" in words else [line for name in names if (line := _run(name, runs[name]))]
    for line in skipped:
        print(f"skipped: {line}", file=sys.stderr)
    write_table()


def _run(name: str, measure: Callable[[], dict[str, Any]]) -> str | None:
    """Run a row and write its file; return why it was left out, if it was."""
    import torch

    from weft.data.locate import DataMissing

    if any(row.name == name and row.gpu for row in ROWS) and not torch.cuda.is_available():
        return f"{name}: its budget is meant for a GPU, and there is none"
    try:
        result = measure()
    except DataMissing as error:
        return f"{name}: absent data: {error}"
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(result, indent=1, ensure_ascii=False)
    (RESULTS / f"{name}.json").write_text(text + "\n", encoding="utf-8")
    print(f"{name}: {result['metric']} {result['value']:.4g} (must {result['must']})", flush=True)
    return None


if __name__ == "__main__":
    main(sys.argv[1:])

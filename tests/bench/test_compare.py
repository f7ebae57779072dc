"""Results beside each other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bough.bench.compare import comparison, differences, figures_of
from bough.cli import main


def result(ttft: float, *, with_details: bool = True) -> dict[str, Any]:
    requests = [
        {"ttft": ttft / 1e3, "latency": 0.5, "itl": [0.01, 0.02], "error": None},
        {"ttft": None, "latency": 0.0, "itl": [], "error": "refused"},
    ]
    figures = {"backend": "native", "completed": 1, "mean_ttft_ms": ttft, "p99_tpot_ms": None}
    return {**figures, "requests": requests} if with_details else figures


def write(path: Path, value: Any) -> str:
    path.write_text(json.dumps(value))
    return str(path)


def test_ratios_are_to_the_first() -> None:
    lines = comparison(["old", "new"], [result(10.0), result(8.0)]).splitlines()
    assert lines[0].split() == ["old", "new", "ratio"]
    assert lines[1].split() == ["completed", "1.00", "1.00", "1.000"]
    assert lines[2].split() == ["mean_ttft_ms", "10.00", "8.00", "0.800"]
    assert len(lines) == 3


def test_nothing_is_divided_by_zero() -> None:
    assert comparison(["a", "b"], [{"failed": 0}, {"failed": 2}]).splitlines()[1].split() == [
        "failed",
        "0.00",
        "2.00",
        "-",
    ]


def test_small_figures_keep_their_digits() -> None:
    lines = comparison(["a", "b"], [{"x": 0.00312}, {"x": 0.5}]).splitlines()
    assert lines[1].split() == ["x", "0.00312", "0.5", "160.256"]


def test_batches_are_compared_with_those_of_their_size() -> None:
    figures = figures_of({"batches": [{"batch_size": 8, "tpot_ms": 2.5}, {"batch_size": 1, "tpot_ms": 1.0}]})
    assert figures == {"batch 8: tpot_ms": 2.5, "batch 1: tpot_ms": 1.0}


def test_batches_of_one_size_are_all_compared() -> None:
    batches = [{"batch_size": size, "tpot_ms": tpot} for size, tpot in ((8, 2.5), (1, 1.0), (8, 3.5))]
    assert figures_of({"batches": batches}) == {
        "batch 8: tpot_ms": 2.5,
        "batch 1: tpot_ms": 1.0,
        "batch 8 #2: tpot_ms": 3.5,
    }


@pytest.mark.parametrize(("suffix", "begins"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_distributions_are_drawn(tmp_path: Path, suffix: str, begins: bytes) -> None:
    picture = tmp_path / f"latencies.{suffix}"
    files = [write(tmp_path / f"{name}.json", result(ttft)) for name, ttft in (("old", 10.0), ("new", 8.0))]
    assert main(["bench", "compare", *files, "--plot", str(picture)]) == 0
    assert picture.read_bytes().startswith(begins)
    if suffix == "svg":
        assert all(f"<!-- {text} -->" in picture.read_text() for text in ("old", "new", "Time to first token"))


BATCH = {"batch_size": 8, "ttft_ms": 1.0, "tpot_ms": 2.0, "decode_throughput": 3.0}
OFFLINE = {"request_throughput": 1.0, "output_throughput": 2.0, "total_throughput": 3.0}


@pytest.mark.parametrize(
    ("figures", "title"),
    [({"batches": [{**BATCH, "batch_size": 32}, BATCH]}, "requests of a batch"), (OFFLINE, "Output tokens")],
    ids=["latency", "offline"],
)
def test_batches_and_throughputs_are_drawn(tmp_path: Path, figures: dict[str, Any], title: str) -> None:
    picture = tmp_path / "picture.svg"
    files = [write(tmp_path / f"{name}.json", figures) for name in ("old", "new")]
    assert main(["bench", "compare", *files, "--plot", str(picture)]) == 0
    assert all(f"<!-- {text} -->" in picture.read_text() for text in ("old", "new", title))


@pytest.mark.parametrize(
    ("contents", "flags", "message"),
    [
        (["{"], [], "line 1 column 2 (char 1)); give files that bough bench serve, offline or latency has written"),
        (["[" * 200_000], [], "nested too deeply"),
        (["[1]"], [], "holds no figures of a benchmark"),
        (['{"batches": [1]}'], [], "holds no figures"),
        (['{"batches": 5}'], [], "holds no figures"),
        (['{"batches": [{"tpot_ms": 1}]}'], [], "holds no figures"),
        (['{"completed": 1, "requests": 5}'], [], "holds no figures"),
        (['{"completed": 1, "requests": [{"latency": 1, "error": null}]}'], ["--plot", "a.png"], "holds no figures"),
        (
            ['{"completed": 1, "requests": [{"ttft": 1, "itl": ["a"], "latency": 1, "error": null}]}'],
            ["--plot", "a.png"],
            "holds no figures",
        ),
        (['{"completed": 1}', '{"duration": 1}'], [], "no figures in common"),
        (['{"completed": 1}'], ["--plot", "a.png"], "--output-details"),
        (['{"completed": 1}'], ["--plot", "a.gif"], "must end with"),
        ([json.dumps({**OFFLINE, "total_throughput": "fast"})], ["--plot", "a.png"], "have nothing to draw"),
        ([json.dumps({"a": 1, "batches": [{**BATCH, "ttft_ms": None}]})], ["--plot", "a.png"], "have nothing to draw"),
    ],
)
def test_what_cannot_be_compared_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], contents: list[str], flags: list[str], message: str
) -> None:
    files = []
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.json").write_text(content)
        files.append(str(tmp_path / f"{number}.json"))
    assert main(["bench", "compare", *files, *flags]) == 2
    assert message in capsys.readouterr().err


def test_a_missing_matplotlib_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["bench", "compare", write(tmp_path / "a.json", result(1.0)), "--plot", str(tmp_path / "a.png")]) == 1
    shown = capsys.readouterr()
    assert "needs matplotlib" in shown.err
    assert not shown.out


def test_settings_that_differ_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = result(10.0) | {"request_rate": "inf", "dataset": {"seed": 1, "num_prompts": 8}, "errors": {}, "url": "a"}
    new = old | {"request_rate": 8.0, "dataset": {"seed": 2, "new": 1}, "errors": {"503": 2}, "url": "b"}
    files = [write(tmp_path / "old.json", old), write(tmp_path / "new.json", new | {"backend": "oai"})]
    assert main(["bench", "compare", *files]) == 0
    *_, title, backend, rate, seed = capsys.readouterr().out.splitlines()
    assert title == "Not measured alike:"
    assert [backend, rate, seed] == [
        '  backend: "native", "oai"',
        '  request_rate: "inf", 8.0',
        "  dataset.seed: 1, 2",
    ]
    assert main(["bench", "compare", files[0], files[0]]) == 0
    assert "alike" not in capsys.readouterr().out


def test_options_of_engines_are_settings() -> None:
    plain, quantised = ({"tpot_ms": 1.0, "options": {"quantization": form, "tp": 1}} for form in ("none", "int8"))
    assert differences([plain, quantised]) == ['options.quantization: "none", "int8"']


def test_one_request_has_a_line_in_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[Any, Any]] = []
    monkeypatch.setattr("matplotlib.axes.Axes.step", lambda self, x, y, **_: drawn.append(([*x], [*y])))
    one = result(10.0)
    file = write(tmp_path / "one.json", one | {"requests": one["requests"][:1]})
    assert main(["bench", "compare", file, "--plot", str(tmp_path / "one.png")]) == 0
    assert drawn[0] == ([drawn[0][0][0]] * 2, [0.0, 1.0])


def test_a_curve_ends_where_the_rest_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []
    monkeypatch.setattr("matplotlib.axes.Axes.step", lambda self, x, y, **_: drawn.append([*y]))
    one = result(10.0)
    failed = {**one["requests"][0], "error": "HTTP 503", "ttft": None, "itl": []}
    file = write(tmp_path / "one.json", one | {"requests": [one["requests"][0], *[failed] * 3]})
    assert main(["bench", "compare", file, "--plot", str(tmp_path / "one.png")]) == 0
    assert [max(shares) for shares in drawn] == [0.25] * 3


def test_lengths_of_batches_are_settings() -> None:
    short, long = ({"batches": [{"batch_size": 1, "input_len": length, "tpot_ms": 1.0}]} for length in (128, 1024))
    assert differences([short, long]) == ["batches: input_len: 128, 1024"]

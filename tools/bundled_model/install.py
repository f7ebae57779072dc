"""Put a finished model into the package, with a card whose numbers were measured.

``python tools/bundled_model/install.py --model FINISHED`` measures the model, copies it to
``src/bough/assets/sapling``, or to ``--out``, and writes its card there from ``card.md`` and from
what the header of its weights says.
"""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

from companions import shape_of
from learn import fall_of
from measure import TEMPERATURES, ServedAnswers, measure, table, write_failures
from modes import measure_modes
from outside import NAMED, by_words
from outside import measure as measure_outside
from safetensors import safe_open

from bough import Runtime

HERE = Path(__file__).parent
PACKAGED = HERE.parents[1] / "src" / "bough" / "assets" / "sapling"
MOST_BYTES = 16 * 2**20
FILES = ("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


def card(model: Path, results: str, outside: str, modes: str) -> str:
    """The text of the card."""
    shape = shape_of(model)
    with safe_open(model / "model.safetensors", "pt") as file:
        parameters = sum(file.get_tensor(name).numel() for name in file.keys())  # noqa: SIM118 (not a mapping)
        told = file.metadata()
    size = sum((model / name).stat().st_size for name in FILES)
    words = by_words()
    return (
        (HERE / "card.md")
        .read_text(encoding="utf-8")
        .format(
            parameters=f"{parameters:,}",
            layers=shape.num_hidden_layers,
            hidden=shape.hidden_size,
            heads=shape.num_attention_heads,
            kv_heads=shape.num_key_value_heads,
            head_dim=shape.head_dim,
            inner=shape.intermediate_size,
            vocabulary=f"{shape.vocab_size:,}",
            size=f"{size / 2**20:.1f}",
            tokens=f"{int(told['seen']) / 1e6:.1f}",
            steps=f"{int(told['step']):,}",
            commands="\n".join(commands(told)),
            table=results,
            outside=outside,
            words=f"{words.right} of {words.cases}",
            modes=modes,
        )
    )


def commands(told: Mapping[str, str]) -> Iterator[str]:
    """How the model was trained, from what the header of its weights says."""
    falls = [*told["falls"].split(), fall_of(told)]
    for number, fall in enumerate(falls):
        match = re.fullmatch(r"(\d+)-(\d+)(?:@(.+))?", fall)
        if match is None:
            raise ValueError(f"the header of the weights tells of a fall {fall!r}")
        first, last = int(match[1]), int(match[2])
        run = f"python tools/bundled_model/learn.py --run RUN{number} --compile --seed {told['seed']}"
        run += f" --tokens {told['tokens']} --small-steps {told['small_steps']}"
        start = f" --start MODEL{number - 1}" if number else ""
        yield f"{run}{start} --steps {first}"
        scale = f" --scale {match[3]}" if match[3] else ""
        yield f"{run} --finish {last - first}{scale} --out MODEL{number}"
    yield f"python tools/bundled_model/install.py --model MODEL{len(falls) - 1}"


def main() -> None:
    """Measure, write the card and copy."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="what learn.py --finish has written")
    parser.add_argument("--out", type=Path, default=PACKAGED)
    parser.add_argument("--cases", type=int, default=200, help="about this many of each module of skills")
    parser.add_argument("--failures", type=Path, help="write the wrong answers to this file, one JSON object per line")
    arguments = parser.parse_args()
    size = sum((arguments.model / name).stat().st_size for name in FILES)
    if size > MOST_BYTES:
        raise SystemExit(f"{size:,} bytes are more than the {MOST_BYTES:,} that the package has room for")
    card(arguments.model, "", "", "")  # what the card cannot be written from shows before minutes of measuring
    failures: list[dict[str, object]] = []
    with Runtime(model_path=str(arguments.model), served_model_name="sapling") as runtime:
        answers = ServedAnswers(runtime.url)
        columns = {f"temperature {t:g}": measure(answers, arguments.cases, t, failures) for t in TEMPERATURES}
        columns["temperature 0.7, top-p 1"] = measure(answers, arguments.cases, 0.7, failures, top_p=1.0)
        results = table(columns)
        columns = {f"temperature {t:g}": measure_outside(answers, t, failures) for t in TEMPERATURES}
        outside = table(columns, [NAMED])
    print(results, outside, sep="\n\n", flush=True)
    if arguments.failures:
        write_failures(arguments.failures, failures)
    modes = measure_modes(arguments.model, arguments.cases)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        shutil.copyfile(arguments.model / name, arguments.out / name)
    (arguments.out / "README.md").write_text(card(arguments.model, results, outside, modes), encoding="utf-8")


if __name__ == "__main__":
    main()

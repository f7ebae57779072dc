"""Stop strings end the answer, and never the thoughts in front of it."""

from __future__ import annotations

from bough.managers.reasoning_span import ReasoningMarkers
from bough.parsers.reasoning import REASONING_FORMATS
from bough.sampling.sampling_params import SamplingParams
from bough.scheduler.answer_start import AnswerStart
from bough.scheduler.text_stops import TextStops
from tests.entrypoints.http.tiny_tokenizer import tiny_tokenizer

TOKENIZER = tiny_tokenizer()
STOPS = ("STOP", "\n\n")
PLAIN = [name for name, each in REASONING_FORMATS.items() if not each.on_channels]
CHANNELS = ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant", "<|channel|>final<|message|>")


def stopped(name: str, text: str, *, begun: bool = False, step: int = 0, **params: object) -> tuple[str, str | None]:
    """The text of an output, and what has ended it; with ``step`` its tokens are of so many characters."""
    markers = ReasoningMarkers(REASONING_FORMATS[name], TOKENIZER).bounded(
        begun=begun, triggers=() if name == "gpt-oss" else ("<tool_call>",), hide_stops=True
    )
    given = SamplingParams.from_dict({"stop": list(STOPS), "skip_special_tokens": False, **params})
    stops = TextStops(TOKENIZER, (), given, AnswerStart(markers, TOKENIZER.id_to_piece_bytes))
    pieces = [text[at : at + step] for at in range(0, len(text), step)] if step else [text]
    matched, shown, num_tokens = None, [], 0
    for token in [token for piece in pieces for token in TOKENIZER.encode(piece, add_special_tokens=False).tolist()]:
        num_tokens += 1
        matched = stops.push(token)
        shown.append(stops.take_text()[0])
        if matched is not None:
            break
    matched = stops.finish() or matched
    rest, released = stops.take_text()
    assert released == num_tokens
    return "".join([*shown, rest]), matched


def test_stops_count_behind_the_thoughts() -> None:
    for name in PLAIN:
        for begun in [True, False]:
            for step in [0, 1, 3]:
                marks = REASONING_FORMATS[name]
                thoughts = ("" if begun else marks.start) + "One STOP\n\ntwo.\n" + marks.end
                for gap in ("", "\n\n", f"\n{marks.end}\n\n"):
                    before = f"{thoughts}{gap}"
                    for answer, shown, matched in (
                        ("Yes. STOP no", "Yes. ", "STOP"),
                        ("STOP", "", "STOP"),
                        ("<b>\n\nso", "<b>", "\n\n"),
                        ("Yes.", "Yes.", None),
                        ("Yes. ST", "Yes. ST", None),
                    ):
                        assert stopped(name, before + answer, begun=begun, step=step) == (before + shown, matched)
                assert stopped(name, thoughts[:-2], begun=begun, step=step) == (thoughts[:-2], None)


def test_stops_count_in_a_call_that_ends_the_thoughts() -> None:
    for step in [0, 1, 3]:
        before = "<think>One STOP two. <tool_call>f</tool_call>"
        assert stopped("qwen3", f"{before} STOP no", step=step) == (f"{before} ", "STOP")


def test_an_answer_without_thoughts_is_judged_from_its_beginning() -> None:
    for step in [0, 1, 3]:
        for text, shown, matched in (
            ("STOP", "", "STOP"),
            ("<thSTOP", "<th", "STOP"),
            ("\n\nSo", "", "\n\n"),
            ("<", "<", None),
            ("So <think>STOP", "So <think>", "STOP"),
        ):
            assert stopped("qwen3", text, step=step) == (shown, matched)
            assert stopped("gpt-oss", text, step=step) == (shown, matched)


def test_on_channels_stops_count_in_the_answer() -> None:
    for step in [0, 1, 3]:
        analysis, end, final = CHANNELS
        before = f"{analysis}One STOP\n\ntwo.{end}{analysis}STOP{end}<|channel|>commentary<|message|>STOP{end}{final}"
        assert stopped("gpt-oss", f"{before}Yes.\n\nno", step=step) == (f"{before}Yes.", "\n\n")
        assert stopped("gpt-oss", before, step=step) == (before, None)


def test_patterns_count_behind_the_thoughts() -> None:
    found = stopped("qwen3", "<think>a1</think>\n\nb2 c", stop=[], stop_regex=["[0-9]"])
    assert found == ("<think>a1</think>\n\nb", "[0-9]")

from __future__ import annotations

from typing import Any

import pytest
from benchmarks.peers.cells import Cell, all_cells
from benchmarks.peers.table import judge, render, render_remarks


def figures(**rates: list[float]) -> dict[str, Any]:
    named = {name.replace("llama", "llama.cpp"): each for name, each in rates.items()}
    return {"rates": named, "facts": {}, "refusals": {}}


def test_ratio_is_the_median_of_the_pairs_against_the_faster_peer() -> None:
    row = judge(
        "qwen/int8/decode-8",
        figures(bough=[600.0, 300.0, 500.0], llama=[100.0, 50.0, 110.0], openvino=[300.0, 100.0, 250.0]),
    )
    assert row.ratio == 2.0
    assert row.better == "openvino"
    assert row.medians == {"bough": 500.0, "llama.cpp": 100.0, "openvino": 250.0}
    assert row.met is True


def test_a_goal_of_parity_is_met_a_little_below_it() -> None:
    at_parity = "qwen/bf16/decode-1"
    assert judge(at_parity, figures(bough=[43.65], openvino=[45.0])).met is True
    assert judge(at_parity, figures(bough=[43.6], openvino=[45.0])).met is False


def test_other_goals_are_met_at_the_goal_itself() -> None:
    assert judge("qwen/bf16/prefill", figures(bough=[1049.0], openvino=[1000.0])).met is False
    assert judge("qwen/bf16/prefill", figures(bough=[1050.0], openvino=[1000.0])).met is True


def test_peers_below_their_reference_are_told() -> None:
    slow = judge("qwen/bf16/prefill", figures(bough=[2000.0], llama=[530.0], openvino=[800.0]))
    assert slow.reference_shares == pytest.approx({"llama.cpp": 530 / 542, "openvino": 800 / 1053})
    assert not slow.peers_at_reference
    assert judge("qwen/bf16/prefill", figures(bough=[2000.0], llama=[530.0], openvino=[900.0])).peers_at_reference


def test_share_of_bandwidth_counts_the_weights_once_a_token_in_each_turn() -> None:
    measured = figures(bough=[45.0, 80.0, 46.0]) | {"bandwidth": [50e9, 100e9, 50e9]}
    measured["facts"] = {"bough": {"weight_bytes": 10**9}}
    assert judge("qwen/bf16/decode-1", measured).bandwidth_share == pytest.approx(0.9)


def test_an_engine_without_the_format_leaves_no_ratio_and_says_so() -> None:
    measured = figures(llama=[90.0], openvino=[80.0])
    measured["rates"] = {"bough": [], **measured["rates"]}
    measured["refusals"] = {"bough": "quantization must be one of none, int8"}
    row = judge("qwen/int4/decode-1", measured)
    assert row.ratio is None
    assert row.met is None
    assert "not supported" in render({row.cell: measured})


def test_table_has_a_line_per_cell_and_shows_shares_of_the_references() -> None:
    lines = render(
        {
            "qwen/bf16/prefill": figures(bough=[1200.0], llama=[271.0], openvino=[1053.0]),
            "qwen/bf16/decode-1": figures(bough=[42.0], llama=[40.0], openvino=[44.0], transformers=[19.0]),
        }
    ).splitlines()
    assert lines[0].startswith("| cell | bough | llama.cpp | openvino | transformers | ratio")
    assert lines[2].startswith(
        "| qwen/bf16/prefill | 1,200 | 271 (50%) | 1,053 (100%) |  | 1.14 (openvino) | 1.05 | met, peers"
    )
    assert lines[3].startswith(
        "| qwen/bf16/decode-1 | 42.0 | 40.0 (95%) | 44.0 (116%) | 19.0 | 0.95 (openvino) | 1.00 (met at 0.97) | missed"
    )


def test_a_verdict_names_the_peers_that_it_was_made_without() -> None:
    line = render({"llama/int8/decode-8": figures(bough=[600.0], llama=[100.0])}).splitlines()[-1]
    assert "| 1.50 | met, without openvino |" in line


def test_servers_are_compared_with_the_engine_alone() -> None:
    results = [{"seconds": 10.0, "cpu_seconds": 0.5, "computed_prompt_tokens": 1536}]
    measured = figures(bough=[100.0]) | {
        "jobs": {"bough": results, "bough offline": [{"seconds": 9.0, "cpu_seconds": 9.0}]}
    }
    remarks = render_remarks({"qwen/int8/shared": measured})
    assert "bough: 10.00 s, the client's processor time 0.50 s, 1,536 prompt tokens computed" in remarks
    assert "the server loses 10.0%" in remarks


def test_how_much_faster_than_a_server_of_python_is_told_with_the_goal_where_there_is_one() -> None:
    measured = figures(bough=[80.0, 100.0], sglang=[20.0, 20.0])
    jobs = {"bough": (2.0, 1.0), "sglang": (6.0, 5.0), "vllm": (4.0, 4.0)}
    measured["jobs"] = {
        name: [{"seconds": each, "cpu_seconds": 0.1} for each in seconds] for name, seconds in jobs.items()
    }
    remarks = render_remarks({"qwen/bf16/server": measured})
    assert "qwen/bf16/server, Bough is 4.00 times as fast as sglang (goal: 4.00)" in remarks
    assert "qwen/bf16/server, Bough is 3.00 times as fast as vllm\n" in remarks + "\n"
    assert "times as fast as sglang\n" in render_remarks({"qwen/bf16/server-1": measured})


def test_waits_are_those_of_all_repetitions_and_a_peers_are_what_ours_are_compared_with() -> None:
    ours = [{"first_token": [0.1, 0.2], "gaps": [0.01]}, {"first_token": [0.3], "gaps": [0.01, 0.01]}]
    theirs = [{"first_token": [0.6] * 3, "gaps": [0.02] * 3}]
    measured = figures() | {"waits": {"bough": ours, "llama.cpp": theirs}}
    measured |= {"arrivals_per_second": 0.8, "capacities": {"bough": 3.2, "llama.cpp": 1.0}}
    ours_line, theirs_line = render_remarks({"qwen/int8/fairness-80": measured}).splitlines()
    assert "bough: first token p50 200 ms, p99 298 ms; gap p50 10 ms, p99 10 ms; 0.80 arrivals/s are 25%" in ours_line
    assert "Bough's p99 to these: 0.50 and 0.50; 0.80 arrivals/s are 80% of what it gets done" in theirs_line


def test_short_contexts_stay_around_160_tokens_whatever_the_number_of_pairs() -> None:
    for pairs in (7, 11, 15):
        for cell in all_cells("qwen", "bf16", pairs):
            if cell.kind == "decode":
                middle = cell.prompt_tokens + cell.all_steps / 2
                assert middle == pytest.approx(160, abs=4)


def test_cells_are_named_after_model_precision_and_column() -> None:
    names = [cell.id for cell in all_cells("llama", "int8", 7)]
    assert {"llama/int8/prefill", "llama/int8/decode-32", "llama/int8/4k", "llama/int8/first-token"} < set(names)
    assert len(names) == len(set(names))
    assert Cell("qwen", "bf16", "32k", 1, 7).prompt_tokens == 32768

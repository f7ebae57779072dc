from __future__ import annotations

import json
import os
from itertools import groupby

import pytest

from bough.bench.datasets import DatasetArgs, custom_requests, how_many, make_requests, vocab_size_from
from bough.errors import ConfigError, StartupError


def test_random_ids_are_within_the_vocabulary_and_lengths_within_the_range():
    args = DatasetArgs(num_prompts=50, random_input_len=40, random_output_len=20, random_range_ratio=0.5)
    requests = make_requests(args, vocab_size=7)
    assert len(requests) == 50
    assert {len(request.input_ids) for request in requests} <= set(range(20, 41))
    assert {request.output_len for request in requests} <= set(range(10, 21))
    assert {token for request in requests for token in request.input_ids} == set(range(7))


def test_a_ratio_of_one_makes_all_lengths_equal():
    args = DatasetArgs(num_prompts=5, random_input_len=8, random_output_len=3, random_range_ratio=1)
    assert {(len(r.input_ids), r.output_len) for r in make_requests(args, vocab_size=100)} == {(8, 3)}


def test_a_seed_fixes_the_requests() -> None:
    for name in ["random-ids", "generated-shared-prefix"]:

        def requests(seed):
            return make_requests(DatasetArgs(dataset_name=name, seed=seed, num_prompts=3), vocab_size=1000)

        assert requests(1) == requests(1)
        assert requests(1) != requests(2)


def test_groups_share_a_prefix_and_nothing_more():
    args = DatasetArgs(
        dataset_name="generated-shared-prefix",
        gsp_num_groups=3,
        gsp_prompts_per_group=4,
        gsp_system_prompt_len=30,
        gsp_question_len=5,
        gsp_output_len=2,
    )
    prompts = [tuple(request.input_ids) for request in make_requests(args, vocab_size=10_000)]
    assert {len(prompt) for prompt in prompts} == {35}
    groups = [list(group) for _, group in groupby(sorted(prompts), key=lambda prompt: prompt[:30])]
    assert [len(group) for group in groups] == [4, 4, 4]
    assert len({prompt[30:] for prompt in prompts}) == 12


def write(tmp_path, *lines) -> str:
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return str(path)


def test_a_file_gives_text_ids_or_messages(tmp_path):
    messages = [{"role": "user", "content": "hello"}]
    path = write(tmp_path, {"prompt": "a", "output_len": 5}, "", {"input_ids": [1, 2]}, {"messages": messages})
    args = DatasetArgs(dataset_name="custom", dataset_path=path, random_output_len=9)
    first, second, third = make_requests(args, vocab_size=1)
    assert (first.text, first.output_len) == ("a", 5)
    assert (second.input_ids, second.output_len) == ([1, 2], 9)
    assert (third.messages, third.as_text()) == (messages, "hello")


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_only_ends_of_lines_separate_requests(tmp_path, separator):
    path = tmp_path / "data.jsonl"
    path.write_bytes(f'{{"prompt": "a{separator}b"}}\r\n{{"prompt": "c"}}\n'.encode())
    args = DatasetArgs(dataset_name="custom", dataset_path=str(path))
    assert [request.text for request in make_requests(args, vocab_size=1)] == [f"a{separator}b", "c"]


def test_a_file_is_read_up_to_the_number_of_prompts(tmp_path):
    path = write(tmp_path, *({"prompt": str(i)} for i in range(10)))
    args = DatasetArgs(dataset_name="custom", dataset_path=path, num_prompts=4)
    assert [request.text for request in make_requests(args, vocab_size=1)] == ["0", "1", "2", "3"]


def said(args):
    return how_many(args, custom_requests(args))


def test_requests_may_come_from_a_pipe():
    reading, writing = os.pipe()
    with open(writing, "w") as file:
        file.write('{"prompt": "a"}\n')
    try:
        args = DatasetArgs(dataset_name="custom", dataset_path=f"/dev/fd/{reading}")
        custom = custom_requests(args)
        assert how_many(args, custom).startswith("1 request, all that")
        assert [request.text for request in make_requests(args, vocab_size=1, custom=custom)] == ["a"]
    finally:
        os.close(reading)


def test_how_many_requests_there_are_is_said_with_the_flags_that_say_so(tmp_path):
    path = write(tmp_path, *({"prompt": str(i)} for i in range(3)))
    custom = {"dataset_name": "custom", "dataset_path": path}
    groups = DatasetArgs(dataset_name="generated-shared-prefix", gsp_num_groups=2, gsp_prompts_per_group=3)
    assert how_many(DatasetArgs(), None) == "1000 requests (--num-prompts says how many)"
    assert how_many(groups, None) == "6 requests: 2 groups (--gsp-num-groups) of 3 (--gsp-prompts-per-group)"
    assert said(DatasetArgs(**custom)) == f"3 requests, all that {path} holds; --num-prompts allows 1000"
    assert said(DatasetArgs(**custom, num_prompts=2)) == "2 requests (--num-prompts says how many)"
    assert said(DatasetArgs(**custom, num_prompts=1)) == "1 request (--num-prompts says how many)"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1: Input data was truncated"),
        ('{"messages": [{"a": ' + "[" * 200_000, "line 1: nested too deeply"),
        ("3", "line 1: Expected `object`"),
        ({"prompt": "a", "input_ids": [1]}, "exactly one of"),
        ({}, "exactly one of"),
        ({"prompt": 3}, "line 1: .*prompt"),
        ({"input_ids": "a"}, "line 1: .*input_ids"),
        ({"input_ids": ["a"]}, "line 1: .*input_ids"),
        ({"messages": ["hi"]}, "line 1: .*messages"),
        ({"prompt": "a", "output_len": True}, "line 1: .*output_len"),
        ({"prompt": "a", "output_len": 0}, "line 1: .*output_len"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, line, message):
    args = DatasetArgs(dataset_name="custom", dataset_path=write(tmp_path, line))
    with pytest.raises(ConfigError, match=message):
        make_requests(args, vocab_size=1)


def test_a_file_and_the_custom_dataset_go_together() -> None:
    for keywords in [{"dataset_name": "custom"}, {"dataset_path": "x"}]:
        with pytest.raises(ConfigError, match="go together"):
            DatasetArgs(**keywords)


def test_ids_become_about_as_many_words():
    (request,) = make_requests(DatasetArgs(num_prompts=1, random_input_len=12, random_range_ratio=1), vocab_size=99)
    assert len(request.as_text().split()) == 12


def test_the_vocabulary_is_told_or_read_from_the_model(tmp_path):
    (tmp_path / "config.json").write_text('{"vocab_size": 77}')
    assert vocab_size_from({"vocab_size": 5}) == 5
    assert vocab_size_from({"model_path": str(tmp_path)}) == 77
    with pytest.raises(StartupError, match="--vocab-size"):
        vocab_size_from({"model_path": "org/model"})

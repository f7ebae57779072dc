"""Profiles that a program takes of its own engine."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from bough import Engine
from bough.errors import BadRequest


def test_an_engine_records_all_its_schedulers(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "not" / "made"
    with Engine(max_total_tokens=2048, skip_tokenizer_init=True, dp_size=2, profile_dir=str(own)) as engine:
        with pytest.raises(BadRequest, match="no profile"):
            engine.stop_profile()
        engine.start_profile(activities=[], profile_by_stage=False)
        with pytest.raises(BadRequest, match="already"):
            engine.start_profile()
        engine.generate(input_ids=[[300], [301]], sampling_params={"max_new_tokens": 4})
        paths = [Path(path) for path in engine.stop_profile()]
        assert len(paths) == 2
        for path in paths:
            assert path.parent == own
            names = {event["name"] for event in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]}
            assert {"prefill", "decode"} <= names
        engine.start_profile(output_dir=str(other), profile_id="mine", activities=["CPU"], num_steps=1)
        engine.generate(input_ids=[[300], [301]], sampling_params={"max_new_tokens": 4})
        found = [Path(path) for path in engine.stop_profile()]
        assert len(found) == 4
        assert all(path.is_file() and path.parent == other and path.name.startswith("mine-") for path in found)
        (own / "file").touch()
        with pytest.raises(BadRequest, match="cannot be made"):
            engine.start_profile(output_dir=str(own / "file"))

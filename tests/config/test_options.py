from __future__ import annotations

import contextlib
import datetime
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bough.config.options import OptionTable, groups_of, option, options_by_key, options_of
from bough.config.server_args import ServerArgs
from bough.errors import ConfigError


def _even(value: int) -> str | None:
    return None if value % 2 == 0 else "must be even"


@dataclass(frozen=True, kw_only=True, slots=True)
class Table(OptionTable):
    count: int = option(4, help="How many.", group="First", unit="things", minimum=2, maximum=10, rule=_even)
    size: int = option(2**20, help="How big.", group="Second", unit="bytes", scaled=True)
    share: float | None = option(None, help="A share.", group="First", default_text="what is left", minimum=0.0)
    rate: float = option(1.0, help="A rate.", group="First", infinite=True)
    colour: Literal["red", "green"] = option("red", help="Which one.", group="First")
    place: str | None = option(None, help="Where.", group="Second", aliases=("location",))
    loud: bool = option(False, help="Be loud.", group="Second")
    extra: dict[str, Any] | None = option(None, help="More.", group="Second")
    names: tuple[str, ...] = option((), help="Names.", group="Second")

    def check_together(self) -> None:
        if self.loud and self.colour == "green":
            raise ConfigError("green is never loud")


CYCLE: dict[str, Any] = {}
CYCLE["a"] = CYCLE


def test_kind_choices_and_optionality_come_from_the_annotation():
    by_name = {each.name: each for each in options_of(Table)}
    kinds = [each.kind for each in options_of(Table)]
    assert kinds == ["int", "int", "float", "float", "str", "str", "bool", "json", "str"]
    assert by_name["colour"].choices == ("red", "green")
    assert by_name["share"].optional
    assert not by_name["count"].optional
    assert [each.name for each in options_of(Table) if each.repeated] == ["names"]


def test_only_text_may_be_given_several_times():
    @dataclass(frozen=True, kw_only=True, slots=True)
    class Numbers(OptionTable):
        counts: tuple[int, ...] = option((), help="Counts.", group="First")

    with pytest.raises(TypeError, match="counts: only text"):
        options_of(Numbers)


def test_groups_keep_the_order_of_declaration():
    groups = {title: [each.name for each in options] for title, options in groups_of(Table).items()}
    assert groups == {
        "First": ["count", "share", "rate", "colour"],
        "Second": ["size", "place", "loud", "extra", "names"],
    }


def test_aliases_lead_to_the_same_option():
    assert options_by_key(Table)["location"].name == "place"


def test_wrong_keywords_are_refused_by_name() -> None:
    cases = [
        ({"count": 1}, "count must be at least 2 things, got 1"),
        ({"count": 12}, "count must be at most 10 things, got 12"),
        ({"count": 3}, "count must be even, got 3"),
        ({"count": 4.0}, "count must be a whole number, got 4.0"),
        ({"count": True}, "count must be a whole number, got True"),
        ({"size": "4x"}, "size must be a whole number such as 4096 or 32k, got '4x'"),
        ({"size": "9" * 5000}, "size must be a whole number"),
        ({"size": 2**63}, "size must be at most 9223372036854775807 bytes, got 9223372036854775808"),
        ({"size": "99999999999g"}, "size must be at most 9223372036854775807 bytes"),
        ({"size": -(2**63) - 1}, "size must be at least -9223372036854775808, got -9223372036854775809"),
        ({"share": 10**400}, "share must be a number"),
        ({"share": -0.5}, "share must be at least 0, got -0.5"),
        ({"share": "1"}, "share must be a number, got '1'"),
        ({"share": float("nan")}, "share must be a number, got nan"),
        ({"share": float("inf")}, "share must be a number, got inf"),
        ({"colour": "gren"}, "colour must be one of red, green, got 'gren'; did you mean 'green'?"),
        ({"place": ""}, "place must not be empty"),
        ({"place": "a\udcff"}, "place must be text that UTF-8 can hold, got 'a\\udcff'"),
        ({"place": 3}, "place must be text, got 3"),
        ({"names": ["a", ""]}, "names must not be empty"),
        ({"names": {"a": 1}}, "names must be text, got {'a': 1}"),
        ({"loud": 1}, "loud must be true or false, got 1"),
        ({"extra": "[1]"}, "extra must be a JSON object"),
        ({"extra": "{"}, "extra must be a JSON object"),
        ({"extra": {"a": datetime.date(2026, 1, 2)}}, "extra must be a JSON object: Object of type date is not JSON"),
        ({"extra": {"a": {"b"}}}, "extra must be a JSON object: Object of type set is not JSON serializable"),
        ({"extra": {"a": b"b"}}, "extra must be a JSON object: Object of type bytes is not JSON serializable"),
        ({"extra": {("a",): 1}}, "extra must be a JSON object: keys must be str"),
        ({"extra": '{"a": NaN}'}, "extra must be a JSON object: Out of range float values are not JSON compliant"),
        ({"extra": {"a": [10**20]}}, "extra must be a JSON object: 100000000000000000000 is not between -92"),
        ({"extra": '{"a": "\\ud800"}'}, "extra must be a JSON object: 'utf-8' codec can't encode"),
        ({"extra": CYCLE}, "extra must be a JSON object: Circular reference detected"),
        ({"extra": '{"a":' * 100_000}, "extra must be a JSON object: maximum recursion depth exceeded"),
        ({"cuont": 3}, "unknown option 'cuont'; did you mean 'count'?"),
        ({"location": "x"}, "unknown option 'location'; did you mean 'place'?"),
        ({"zzz": 3}, "unknown option 'zzz'"),
        ({"loud": True, "colour": "green"}, "green is never loud"),
    ]
    for keywords, message in cases:
        with pytest.raises(ConfigError) as caught:
            Table(**keywords)
        assert str(caught.value).startswith(message)


def test_values_come_out_in_the_type_of_their_field():
    table = Table(size="1.5MiB", share=1, rate=float("inf"), place=Path("/somewhere"), extra='{"a": 1}', names="a")
    assert (table.size, table.share, table.rate) == (3 * 2**19, 1.0, float("inf"))
    assert (table.place, table.extra, table.names) == ("/somewhere", {"a": 1}, ("a",))
    assert isinstance(table.share, float)


def test_keys_that_are_numbers_are_the_text_that_json_has_for_them():
    assert Table(extra={"logit_bias": {7: 1.5}}).extra == {"logit_bias": {"7": 1.5}}


def test_sizes_are_in_powers_of_1024() -> None:
    for text, value in [("32k", 32768), ("32K", 32768), ("32KiB", 32768), ("2 MB", 2**21), ("1g", 2**30), ("7", 7)]:
        assert Table(size=text).size == value


@given(
    count=st.sampled_from([2, 4, 6, 8, 10]),
    size=st.integers(0, 2**60),
    share=st.none() | st.floats(0, 1e9),
    loud=st.booleans(),
    place=st.none() | st.text(min_size=1),
)
def test_a_dictionary_holds_everything(count, size, share, loud, place):
    table = Table(count=count, size=size, share=share, loud=loud, place=place)
    assert Table(**table.to_dict()) == table


@given(st.text())
def test_any_text_is_a_value_or_a_config_error(text):
    for each in options_of(Table):
        if each.kind == "bool":
            continue
        with contextlib.suppress(ConfigError):
            value = each.parse(text, shown=each.flag)
            assert each.check(value, shown=each.flag) == value


def test_defaults_are_shown_as_a_reader_wants_them():
    shown = {each.name: each.default_text for each in options_of(Table)}
    assert shown["size"] == "1 MiB"
    assert shown["share"] == "what is left"
    assert shown["place"] == "none"
    assert shown["loud"] == "off"
    assert shown["count"] == "4"
    assert shown["rate"] == "1"


def test_a_unit_is_shown_with_the_form_that_a_number_may_have():
    shown = {each.name: each.measure for each in options_of(Table)}
    assert shown["size"] == "bytes, or like 16MiB"
    assert shown["count"] == "things"
    assert shown["loud"] == ""


def test_paths_need_not_be_utf8_and_other_texts_do() -> None:
    path = os.fsdecode(b"/models/caf\xe9")
    args = ServerArgs(model_path=path, api_key_file=path, served_model_name="x")
    assert (args.model_path, args.to_public_dict()["model_path"]) == (path, "/models/caf\ufffd")
    carried = msgspec.msgpack.decode(msgspec.msgpack.encode(args.to_dict()))
    assert ServerArgs(**carried) == args
    msgspec.json.encode([args.to_public_dict(), args.to_flags()])
    for wrong in ({"model_path": "a\ud800"}, {"served_model_name": path}, {"weight_version": path}, {"host": b"x"}):
        with pytest.raises(ConfigError):
            ServerArgs(**wrong)

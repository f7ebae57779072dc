"""What a config.json says of a model, read with what its family knows. No torch here, nor in the readers below this.

The reader of the models in ``llama.py`` is in ``llama_config.py``, and so on.
"""

from __future__ import annotations

from typing import Any, ClassVar

from bough.config.checked_values import CheckedValues
from bough.config.model_facts import ModelFacts
from bough.config.pooling import PoolingMethod
from bough.config.rope import RopeParameters, read_rope

_MOST_LAYERS = 10_000
"""Some things are made for each layer before a file says that it has none."""
_LARGEST_MATRIX = 2**48
"""Numbers: far more than any machine has room for, and few enough for their bytes to be counted in 64 bits."""
_WIDEST_HEAD = 2**24
"""The frequencies of its pairs are computed before it is known whether the model has room."""


class FamilyReader:
    """Reads a language model whose entries are called as Llama's.

    As it is, it reads models of other packages that bring no reader. Families override what they do otherwise; one
    that has more than others extends :meth:`read`.

    Args:
        values: the content of config.json.
        architecture: the model's class.
    """

    defaults: ClassVar[dict[str, Any]] = {}
    """What the family's own configuration class supplies where config.json has no such entry."""
    activations: ClassVar[tuple[str, ...]] = ("silu", "swish")
    """What ``hidden_act`` may be; the first one if it is not there."""
    usual_pooling: ClassVar[PoolingMethod] = "last"
    """Whose state stands for a sequence where neither files nor users say otherwise; classes are always read there."""

    def __init__(self, values: CheckedValues, architecture: str) -> None:
        self.values = values.of({**self.defaults, **values.entries})
        self.architecture = architecture

    def read(self) -> ModelFacts:
        """The model's facts.

        Raises:
            ConfigError: naming the entry that is wrong, or cannot be served.
        """
        values = self.values
        hidden_act = values.choice("hidden_act", self.activations, self.activations[0])
        self.check_direction()
        vocab_size = values.integer("vocab_size")
        num_layers = values.integer("num_hidden_layers", maximum=_MOST_LAYERS)
        num_heads = values.integer("num_attention_heads")
        num_kv_heads = values.integer("num_key_value_heads", num_heads)
        if num_heads % num_kv_heads:
            raise values.error(
                "num_attention_heads", f"must be a multiple of num_key_value_heads {num_kv_heads}", num_heads
            )
        hidden_size = values.integer("hidden_size")
        head_dim = self.head_dim(hidden_size, num_heads)
        intermediate_size = values.integer("intermediate_size")
        self.check_matrix("vocab_size", vocab_size, hidden_size)
        self.check_matrix("intermediate_size", intermediate_size, hidden_size)
        self.check_matrix("num_attention_heads", num_heads * head_dim, hidden_size, times="head_dim and hidden_size")
        attention_bias, mlp_bias = self.biases()
        rope = self.rope(head_dim)
        return ModelFacts(
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            intermediate_size=intermediate_size,
            num_layers=num_layers,
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            hidden_act=hidden_act,
            attention_bias=attention_bias,
            mlp_bias=mlp_bias,
            rms_norm_eps=values.number("rms_norm_eps", 1e-6),
            tie_word_embeddings=values.flag("tie_word_embeddings"),
            rope=rope,
            layer_windows=self.layer_windows(num_layers),
            derived_context_len=rope.positions,
        )

    def check_direction(self) -> None:
        """Refuse attention to later tokens, whatever else the family's classes could do."""
        if not self.values.flag("is_causal", True):
            raise self.values.refusal(
                f"{self.architecture} with is_causal false attends to later tokens as well, which is not supported"
            )

    def biases(self) -> tuple[bool, bool]:
        """Whether there are biases in attention and in the feed-forward network, as far as the file decides it."""
        return self.values.flag("attention_bias"), self.values.flag("mlp_bias")

    def head_dim(self, hidden_size: int, num_heads: int) -> int:
        """Width of a head, which is rotated in pairs."""
        if self.values.get("head_dim") is None:
            width = self.share_of_head(hidden_size, num_heads)
        else:
            width = self.values.integer("head_dim", maximum=_WIDEST_HEAD)
        if width % 2:
            raise self.values.error("head_dim", "must be even", width)
        return width

    def share_of_head(self, hidden_size: int, num_heads: int) -> int:
        """Width of a head where they share the states out among them."""
        if hidden_size % num_heads:
            raise self.values.error(
                "hidden_size", f"must be a multiple of num_attention_heads {num_heads}", hidden_size
            )
        return hidden_size // num_heads

    def rope(self, head_dim: int) -> RopeParameters:
        """How positions are told apart."""
        return read_rope(self.values, head_dim)

    def layer_windows(self, num_layers: int) -> tuple[int | None, ...]:
        """Per layer, how many positions a token sees; here, where the file asks for windows, in the layers it says."""
        values = self.values
        if values.get("sliding_window") is None or not values.flag("use_sliding_window"):
            return (None,) * num_layers
        window = values.integer("sliding_window")
        if values.get("layer_types") is None:
            first = values.integer("max_window_layers", minimum=0)
            return tuple(window if layer >= first else None for layer in range(num_layers))
        known = {"sliding_attention": window, "full_attention": None}
        return tuple(known[word] for word in values.words("layer_types", known, num_layers))

    def check_matrix(self, key: str, rows: int, hidden_size: int, *, times: str = "hidden_size") -> None:
        """Refuse a matrix of a size that nothing can have: what would be made of it says less of why."""
        if rows * hidden_size > _LARGEST_MATRIX:
            raise self.values.error(key, f"times {times} must be at most {_LARGEST_MATRIX}", self.values.get(key))

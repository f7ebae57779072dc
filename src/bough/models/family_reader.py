"""What a config.json says of a model, read with what its family knows. No torch here, nor in the readers below this.

The reader of the models in ``llama.py`` is in ``llama_config.py``, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from bough.config.checked_values import CheckedValues
from bough.config.model_facts import AttentionFacts, DenseFacts, FeedForwardFacts, LayerFacts, ModelFacts
from bough.config.pooling import PoolingMethod
from bough.config.rope import DEFAULT_POSITIONS, RopeParameters, read_rope

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
    activation_key: ClassVar[str] = "hidden_act"
    """Entry with the name of the activation."""
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
        self.check_direction()
        vocab_size, hidden_size = values.integer("vocab_size"), values.integer("hidden_size")
        self.check_matrix("vocab_size", vocab_size, hidden_size)
        layers = self.layers(hidden_size)
        if len({(layer.mixer.num_kv_heads, layer.mixer.head_dim) for layer in layers}) > 1:
            raise values.refusal(f"{self.architecture} has layers that differ in the number or the width of KV heads")
        return ModelFacts(
            vocab_size=vocab_size,
            hidden_size=hidden_size,
            layers=layers,
            rms_norm_eps=values.number("rms_norm_eps", 1e-6),
            tie_word_embeddings=values.flag("tie_word_embeddings"),
            derived_context_len=self.context_len(layers),
        )

    def layers(self, hidden_size: int) -> tuple[LayerFacts, ...]:
        """All blocks."""
        num_layers = self.values.integer("num_hidden_layers", maximum=_MOST_LAYERS)
        mixers = self.mixers(self.attention(hidden_size), num_layers)
        networks = self.feed_forwards(hidden_size, num_layers)
        return tuple(
            LayerFacts(mixer=mixer, feed_forward=network) for mixer, network in zip(mixers, networks, strict=True)
        )

    def mixers(self, attention: AttentionFacts, num_layers: int) -> Sequence[AttentionFacts]:
        """Attention of each layer, made of what the layers have in common; here, they differ in their windows."""
        windows = self.layer_windows(num_layers)
        kinds = {window: replace(attention, window=window) for window in windows}
        return [kinds[window] for window in windows]

    def attention(self, hidden_size: int) -> AttentionFacts:
        """What the attention of all layers has in common."""
        values = self.values
        num_heads = values.integer("num_attention_heads")
        num_kv_heads = values.integer("num_key_value_heads", num_heads)
        if num_heads % num_kv_heads:
            raise values.error(
                "num_attention_heads", f"must be a multiple of num_key_value_heads {num_kv_heads}", num_heads
            )
        head_dim = self.head_dim(hidden_size, num_heads)
        self.check_matrix("num_attention_heads", num_heads * head_dim, hidden_size, times="head_dim and hidden_size")
        qkv_bias, output_bias = self.attention_biases()
        return AttentionFacts(
            num_heads=num_heads,
            num_kv_heads=num_kv_heads,
            head_dim=head_dim,
            rope=self.rope(head_dim),
            qkv_bias=qkv_bias,
            output_bias=output_bias,
        )

    def feed_forwards(self, hidden_size: int, num_layers: int) -> Sequence[FeedForwardFacts]:
        """Feed-forward network of each layer; here, all have the same."""
        return [self.feed_forward(hidden_size)] * num_layers

    def feed_forward(self, hidden_size: int) -> DenseFacts:
        """A feed-forward network without experts."""
        width = self.values.integer("intermediate_size")
        self.check_matrix("intermediate_size", width, hidden_size)
        activation = self.values.choice(self.activation_key, self.activations, self.activations[0])
        return DenseFacts(width=width, activation=activation, bias=self.mlp_bias())

    def check_direction(self) -> None:
        """Refuse attention to later tokens, whatever else the family's classes could do."""
        if not self.values.flag("is_causal", True):
            raise self.values.refusal(
                f"{self.architecture} with is_causal false attends to later tokens as well, which is not supported"
            )

    def attention_biases(self) -> tuple[bool, bool]:
        """Presence of biases on queries, keys and values, and on attention's output."""
        has_biases = self.values.flag("attention_bias")
        return has_biases, has_biases

    def mlp_bias(self) -> bool:
        """Presence of biases in the feed-forward network."""
        return self.values.flag("mlp_bias")

    def context_len(self, layers: Sequence[LayerFacts]) -> int:
        """Longest sequence that the model was made for, in tokens."""
        ropes = [layer.mixer.rope for layer in layers]
        usual = self.values.integer("max_position_embeddings", DEFAULT_POSITIONS)
        return max((rope.positions for rope in ropes if rope is not None), default=usual)

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

    def rope(self, head_dim: int) -> RopeParameters | None:
        """Rotation of queries and keys that layers have in common."""
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

"""Sizes that the nested configs of multimodal models leave out, as the classes of Transformers have them.

Older versions of Transformers write of a nested config only what differs from the defaults of its class, so that a
nested config may give no width or depth at all (LLaVA 1.5, Pixtral). A config of its own gives them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LLAMA = {
    "hidden_size": 4096,
    "intermediate_size": 11_008,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "vocab_size": 32_000,
    "hidden_act": "silu",
}
_MISTRAL = {**_LLAMA, "intermediate_size": 14_336, "num_key_value_heads": 8}
_DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "llama": _LLAMA,
    "mistral": _MISTRAL,
    "mixtral": {**_MISTRAL, "num_local_experts": 8, "num_experts_per_tok": 2},
    "qwen2": {**_LLAMA, "intermediate_size": 22_016, "num_key_value_heads": 32, "vocab_size": 151_936},
    "phi3": {**_LLAMA, "hidden_size": 3072, "intermediate_size": 8192, "vocab_size": 32_064},
    "gemma": {
        "hidden_size": 3072,
        "intermediate_size": 24_576,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 16,
        "vocab_size": 256_000,
    },
    "gemma2": {
        "hidden_size": 2304,
        "intermediate_size": 9216,
        "num_hidden_layers": 26,
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "vocab_size": 256_000,
    },
}


def class_defaults(model_type: object) -> Mapping[str, Any]:
    """The sizes that a nested config of `model_type` may leave out; nothing where none are known."""
    return _DEFAULTS.get(model_type, {}) if isinstance(model_type, str) else {}

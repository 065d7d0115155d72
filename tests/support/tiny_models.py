"""Tiny random checkpoints with real tokenizers, built in seconds, without a network, and read by their path.

The weights are random, and scaled, so that scores differ between texts: with a model's own small initial weights each
score is nearly a constant, and parity with an oracle would prove nothing. `build(name, folder)` makes one of
`BUILDERS`; the same name gives the same bytes. `tiny_hostile.hostile` derives broken copies.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tiny_heads
import tiny_texts

WIDTH = 32
"""The width of each model's hidden states; two layers, four attention heads."""

POSITIONS = {
    "bert_masked": 128,
    "bert_qa": 128,
    "bert_factcc": 64,
    "mbert": 128,
    "distilbert": 64,
    "modernbert": 128,
    "roberta": 64,
    "roberta_sentiment": 64,
    "roberta_toxicity": 128,
    "lens": 64,
    "lens_salsa": 64,
    "bart": 64,
    "t5_unieval": 96,
    "gpt2": 64,
    "llama_reward": 512,
    "llama_inform": 512,
    "gemma2_ldl": 512,
    "qwen2_prm": 512,
    "bleurt": 128,
}
"""The tokens a text may have, the special ones counted: `model_max_length` of the tokenizer. T5 has no position
limit, its tokenizer has one; RoBERTa's table of positions has two rows more, which no text reaches."""

LLAMA_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|start_header_id|>{{ message['role'] }}<|end_header_id|>\n\n"
    "{{ message['content'] | trim }}<|eot_id|>{% endfor %}"
    "{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
)
GEMMA_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<start_of_turn>"
    "{{ 'model' if message['role'] == 'assistant' else message['role'] }}\n"
    "{{ message['content'] | trim }}<end_of_turn>\n{% endfor %}"
)
QWEN_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def build(name: str, folder: Path) -> Path:
    """Build the checkpoint `name` of `BUILDERS` in `folder / name`, unless it is there, and return that path."""
    import torch

    path = folder / name
    if not path.exists():
        path.mkdir(parents=True)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(zlib.crc32(name.encode()))
            BUILDERS[name](path)
    return path


def _bert_tokenizer(path: Path, limit: int, *, lower: bool = True) -> Any:
    from transformers import BertTokenizerFast

    tokenizer = BertTokenizerFast(
        tokenizer_object=tiny_texts.word_pieces(lower=lower), do_lower_case=lower, model_max_length=limit
    )
    tokenizer.save_pretrained(path)
    return tokenizer


def _bert(name: str, model: str, *, lower: bool = True, **options: Any) -> Callable[[Path], None]:
    def builder(path: Path) -> None:
        import transformers

        tokenizer = _bert_tokenizer(path, POSITIONS[name], lower=lower)
        config = transformers.BertConfig(
            vocab_size=len(tokenizer), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=4,
            intermediate_size=2 * WIDTH, max_position_embeddings=POSITIONS[name], initializer_range=0.3, **options,
        )  # fmt: skip
        getattr(transformers, model)(config).save_pretrained(path)

    return builder


def _distilbert(path: Path) -> None:
    from transformers import DistilBertConfig, DistilBertModel, DistilBertTokenizerFast

    tokenizer = DistilBertTokenizerFast(
        tokenizer_object=tiny_texts.word_pieces(), do_lower_case=True, model_max_length=POSITIONS["distilbert"]
    )
    tokenizer.save_pretrained(path)
    config = DistilBertConfig(
        vocab_size=len(tokenizer), dim=WIDTH, n_layers=2, n_heads=4, hidden_dim=2 * WIDTH,
        max_position_embeddings=POSITIONS["distilbert"], initializer_range=0.3,
    )  # fmt: skip
    DistilBertModel(config).save_pretrained(path)


def _modernbert(path: Path) -> None:
    """Save a masked language model, as the published one is: its prediction head lies beside five layers."""
    from transformers import ModernBertConfig, ModernBertForMaskedLM, PreTrainedTokenizerFast

    limit = POSITIONS["modernbert"]
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tiny_texts.word_pieces(lower=False), unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        pad_token="[PAD]", mask_token="[MASK]", model_input_names=["input_ids", "attention_mask"],
        model_max_length=limit,
    )  # fmt: skip
    tokenizer.save_pretrained(path)
    config = ModernBertConfig(
        vocab_size=len(tokenizer), hidden_size=WIDTH, num_hidden_layers=5, num_attention_heads=4,
        intermediate_size=2 * WIDTH, max_position_embeddings=limit, local_attention=16, initializer_range=0.3,
        initializer_cutoff_factor=2.0, pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3,
        classifier_pooling="mean",
    )  # fmt: skip
    ModernBertForMaskedLM(config).save_pretrained(path)


def _roberta_options(path: Path, limit: int) -> dict[str, Any]:
    from transformers import RobertaTokenizerFast

    tokenizer = RobertaTokenizerFast(tokenizer_object=tiny_texts.roberta_pairs(), model_max_length=limit)
    tokenizer.save_pretrained(path)
    return {
        "vocab_size": len(tokenizer), "hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 2 * WIDTH, "max_position_embeddings": limit + 2, "type_vocab_size": 1,
        "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "initializer_range": 0.3,
    }  # fmt: skip


def _roberta(name: str, labels: list[str] | None = None) -> Callable[[Path], None]:
    def builder(path: Path) -> None:
        from transformers import RobertaConfig, RobertaForSequenceClassification, RobertaModel

        options = _roberta_options(path, POSITIONS[name])
        if labels is None:
            RobertaModel(RobertaConfig(**options)).save_pretrained(path)
        else:
            config = RobertaConfig(**options, **_labels(labels))
            RobertaForSequenceClassification(config).save_pretrained(path)

    return builder


def _lens(name: str, features: int) -> Callable[[Path], None]:
    def builder(path: Path) -> None:
        from transformers import RobertaConfig, RobertaModel

        config = RobertaConfig(**_roberta_options(path, POSITIONS[name]))
        tiny_heads.save_lens(path, RobertaModel(config, add_pooling_layer=False), WIDTH, features)

    return builder


def _labels(names: list[str]) -> dict[str, Any]:
    return {"id2label": dict(enumerate(names)), "label2id": {name: index for index, name in enumerate(names)}}


def _bart(path: Path) -> None:
    from transformers import BartConfig, BartForConditionalGeneration, BartTokenizerFast

    tokenizer = BartTokenizerFast(tokenizer_object=tiny_texts.roberta_pairs(), model_max_length=POSITIONS["bart"])
    tokenizer.save_pretrained(path)
    config = BartConfig(
        vocab_size=len(tokenizer), d_model=WIDTH, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=2 * WIDTH, decoder_ffn_dim=2 * WIDTH,
        max_position_embeddings=POSITIONS["bart"], init_std=0.3, bos_token_id=0, pad_token_id=1, eos_token_id=2,
        decoder_start_token_id=2, forced_eos_token_id=2,
    )  # fmt: skip
    BartForConditionalGeneration(config).save_pretrained(path)


def _t5_unieval(path: Path) -> None:
    from transformers import T5Config, T5ForConditionalGeneration, T5TokenizerFast

    tokenizer = T5TokenizerFast(
        tokenizer_object=tiny_texts.unigram(["<pad>", "</s>", "<unk>"], ["▁Yes", "▁No"]),
        extra_ids=0, model_max_length=POSITIONS["t5_unieval"],
    )  # fmt: skip
    tokenizer.save_pretrained(path)
    config = T5Config(
        vocab_size=len(tokenizer), d_model=WIDTH, d_kv=8, num_heads=4, num_layers=2, d_ff=2 * WIDTH,
        initializer_factor=2.0, pad_token_id=0, eos_token_id=1, decoder_start_token_id=0,
    )  # fmt: skip
    T5ForConditionalGeneration(config).save_pretrained(path)


def _gpt2(path: Path) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel, GPT2TokenizerFast

    tokenizer = GPT2TokenizerFast(
        tokenizer_object=tiny_texts.byte_pairs(["<|endoftext|>"]), model_max_length=POSITIONS["gpt2"]
    )
    tokenizer.save_pretrained(path)
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=POSITIONS["gpt2"], n_embd=WIDTH, n_layer=2, n_head=4,
        initializer_range=0.3, bos_token_id=0, eos_token_id=0,
    )  # fmt: skip
    GPT2LMHeadModel(config).save_pretrained(path)


def _decoder_options(tokenizer: Any, limit: int) -> dict[str, Any]:
    return {
        "vocab_size": len(tokenizer), "hidden_size": WIDTH, "intermediate_size": 2 * WIDTH, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": limit,
        "initializer_range": 0.3, "pad_token_id": tokenizer.pad_token_id, "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }  # fmt: skip


def _llama_tokenizer(path: Path, limit: int) -> Any:
    """Save a tokenizer whose pad token ends each turn as well: its number occurs inside the texts."""
    from tokenizers import processors
    from transformers import PreTrainedTokenizerFast

    pairs = tiny_texts.byte_pairs(["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"])
    pairs.post_processor = processors.TemplateProcessing(
        single="<|begin_of_text|> $A",
        pair="<|begin_of_text|> $A <|begin_of_text|> $B",
        special_tokens=[("<|begin_of_text|>", 0)],
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=pairs, bos_token="<|begin_of_text|>", eos_token="<|eot_id|>", pad_token="<|eot_id|>",
        additional_special_tokens=["<|start_header_id|>", "<|end_header_id|>"],
        model_input_names=["input_ids", "attention_mask"], model_max_length=limit,
    )  # fmt: skip
    tokenizer.chat_template = LLAMA_TEMPLATE
    tokenizer.save_pretrained(path)
    return tokenizer


def _llama_reward(path: Path) -> None:
    from transformers import LlamaConfig, LlamaForSequenceClassification

    tokenizer = _llama_tokenizer(path, POSITIONS["llama_reward"])
    config = LlamaConfig(**_decoder_options(tokenizer, POSITIONS["llama_reward"]), num_labels=1)
    LlamaForSequenceClassification(config).save_pretrained(path)


def _llama_inform(path: Path) -> None:
    from transformers import LlamaConfig, LlamaModel

    tokenizer = _llama_tokenizer(path, POSITIONS["llama_inform"])
    model = LlamaModel(LlamaConfig(**_decoder_options(tokenizer, POSITIONS["llama_inform"]), num_labels=1))
    head = tiny_heads.layers("score", [(0, WIDTH, WIDTH), (2, WIDTH, 1)])
    tiny_heads.save(path, model, "INFORMForSequenceClassification", head)


def _gemma2_ldl(path: Path) -> None:
    from transformers import Gemma2Config, Gemma2Model, GemmaTokenizerFast

    limit = POSITIONS["gemma2_ldl"]
    tokenizer = GemmaTokenizerFast(
        tokenizer_object=tiny_texts.spaced_pairs(["<pad>", "<eos>", "<bos>", "<unk>"]),
        additional_special_tokens=["<start_of_turn>", "<end_of_turn>"], padding_side="left", model_max_length=limit,
    )  # fmt: skip
    tokenizer.chat_template = GEMMA_TEMPLATE
    tokenizer.save_pretrained(path)
    config = Gemma2Config(
        **_decoder_options(tokenizer, limit), head_dim=8, query_pre_attn_scalar=8, sliding_window=16,
        num_objectives=40, temperature=1.0, softmax=True,
    )  # fmt: skip
    tiny_heads.save_ldl(path, Gemma2Model(config), width=WIDTH, objectives=40)


def _qwen2_prm(path: Path) -> None:
    from transformers import Qwen2Config, Qwen2Model, Qwen2TokenizerFast

    limit = POSITIONS["qwen2_prm"]
    tokenizer = Qwen2TokenizerFast(
        tokenizer_object=tiny_texts.byte_pairs(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<extra_0>"]),
        eos_token="<|im_end|>", additional_special_tokens=["<|im_start|>", "<|im_end|>", "<extra_0>"],
        model_max_length=limit,
    )  # fmt: skip
    tokenizer.chat_template = QWEN_TEMPLATE
    tokenizer.save_pretrained(path)
    model = Qwen2Model(Qwen2Config(**_decoder_options(tokenizer, limit), num_labels=2))
    head = tiny_heads.layers("score", [(0, WIDTH, WIDTH), (2, WIDTH, 2)])
    tiny_heads.save(path, model, "Qwen2ForProcessRewardModel", head)


BUILDERS: dict[str, Callable[[Path], None]] = {
    "bert_masked": _bert("bert_masked", "BertForMaskedLM"),
    "bert_qa": _bert("bert_qa", "BertForQuestionAnswering"),
    "bert_factcc": _bert("bert_factcc", "BertForSequenceClassification", **_labels(["CORRECT", "INCORRECT"])),
    "mbert": _bert("mbert", "BertModel", lower=False),
    "distilbert": _distilbert,
    "modernbert": _modernbert,
    "roberta": _roberta("roberta"),
    "roberta_sentiment": _roberta("roberta_sentiment", ["negative", "neutral", "positive"]),
    "roberta_toxicity": _roberta("roberta_toxicity", ["nothate", "hate"]),
    "lens": _lens("lens", 7),
    "lens_salsa": _lens("lens_salsa", 1),
    "bart": _bart,
    "t5_unieval": _t5_unieval,
    "gpt2": _gpt2,
    "llama_reward": _llama_reward,
    "llama_inform": _llama_inform,
    "gemma2_ldl": _gemma2_ldl,
    "qwen2_prm": _qwen2_prm,
    "bleurt": lambda path: tiny_heads.save_bleurt(path, WIDTH, POSITIONS["bleurt"]),
}

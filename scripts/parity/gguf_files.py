"""GGUF files of `hearth export --gguf`, read with the `gguf` package of llama.cpp: every tensor equals
the checkpoint's bits after the conversion, q8_0 equals the package's own quantize, and the metadata are
those of the configuration and of the tokenizer. With the package `llama-cpp-py-sync`, llama.cpp itself
continues a prompt, and its greedy tokens are compared with `hearth generate`.

    gguf_files.py HEARTH WORK_DIRECTORY [FAMILY...]
"""
import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType as Type
from gguf import GGUFReader, dequantize, quantize

from hearth import Failed, Hearth

GOLDEN = Path(__file__).parents[2] / "tests/golden/tokenizer"
SIZES = dict(vocab_size=900, hidden_size=64, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, rms_norm_eps=1e-5,
             rope_theta=10000.0, hidden_act="silu", num_experts_per_tok=2, initializer_range=0.2)
EXPERTS = dict(num_experts=4, moe_intermediate_size=32, intermediate_size=96)
FAMILIES = {
    "mixtral": ("llama", "qwen", dict(num_local_experts=4, intermediate_size=96)),
    "olmoe": ("olmoe", "gpt2", dict(num_experts=4, intermediate_size=96, norm_topk_prob=False)),
    "qwen2_moe": ("qwen2moe", "qwen", dict(EXPERTS, shared_expert_intermediate_size=48,
                                           norm_topk_prob=False)),
    "qwen3_moe": ("qwen3moe", "qwen", dict(EXPERTS, norm_topk_prob=True, head_dim=32,
                                           tie_word_embeddings=True)),
}
TYPES = {"f32": Type.F32, "f16": Type.F16, "bf16": Type.BF16, "q8_0": Type.Q8_0}
FILE_TYPES = {"f32": 0, "f16": 1, "q8_0": 7, "bf16": 32}
NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
         "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
         "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "mlp.gate": "ffn_gate_inp",
         "block_sparse_moe.gate": "ffn_gate_inp", "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
         "mlp.shared_expert.gate_proj": "ffn_gate_shexp",
         "mlp.shared_expert.up_proj": "ffn_up_shexp",
         "mlp.shared_expert.down_proj": "ffn_down_shexp"}
EXPERT_NAMES = {"w1": "gate", "w2": "down", "w3": "up", "gate_proj": "gate", "down_proj": "down",
                "up_proj": "up"}
PROMPT = "The row number"


def read_checkpoint(directory):
    """Tensors by name as f32, which holds every stored type exactly."""
    tensors = {}
    for path in sorted(Path(directory).glob("*.safetensors")):
        raw = path.read_bytes()
        length = struct.unpack("<Q", raw[:8])[0]
        for name, entry in json.loads(raw[8:8 + length]).items():
            if name == "__metadata__":
                continue
            begin, end = (8 + length + at for at in entry["data_offsets"])
            if entry["dtype"] == "BF16":
                data = (np.frombuffer(raw[begin:end], "<u2").astype("<u4") << 16).view("<f4")
            else:
                data = np.frombuffer(raw[begin:end], {"F16": "<f2", "F32": "<f4"}[entry["dtype"]])
            tensors[name] = data.astype(np.float32).reshape(entry["shape"])
    return tensors


def paired(weight, heads):
    """Rows of each head, from halves to pairs, as the architecture llama rotates them."""
    rows = weight.shape[0] // heads
    order = [h * rows + j * (rows // 2) + i for h in range(heads) for i in range(rows // 2)
             for j in range(2)]
    return weight[order]


def expected_tensors(tensors, config):
    """By the names of llama.cpp."""
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    whole = {"model.embed_tokens.weight": "token_embd.weight", "lm_head.weight": "output.weight",
             "model.norm.weight": "output_norm.weight"}
    out, experts = {}, {}
    for name, value in tensors.items():
        if name in whole:
            out[whole[name]] = value
            continue
        _, _, layer, rest = name.split(".", 3)
        part, suffix = rest.rsplit(".", 1)
        if ".experts." in rest:
            _, expert, matrix = part.rsplit(".", 2)
            stack = f"blk.{layer}.ffn_{EXPERT_NAMES[matrix]}_exps.weight"
            experts.setdefault(stack, {})[int(expert)] = value
            continue
        matrix = part.split(".")[-1]
        if config["model_type"] == "mixtral" and matrix in heads:
            value = paired(value, heads[matrix])
        out[f"blk.{layer}.{NAMES[part]}.{suffix}"] = value
    for stack, of in experts.items():
        out[stack] = np.stack([of[i] for i in range(len(of))])
    return out


def type_of(name, value, kind):
    if value.ndim == 1 or "norm" in name or "gate_inp" in name:
        return Type.F32
    if kind == "q8_0" and value.shape[-1] % 32 != 0:
        return Type.F16
    return TYPES[kind]


def check_tensors(reader, tensors, kind):
    found = {tensor.name: tensor for tensor in reader.tensors}
    if set(found) != set(tensors):
        raise Failed(f"other tensors: {sorted(set(found) ^ set(tensors))}")
    for name, value in tensors.items():
        tensor, wanted = found[name], type_of(name, value, kind)
        if tensor.tensor_type != wanted:
            raise Failed(f"{name} is {tensor.tensor_type.name}, not {wanted.name}")
        if list(tensor.shape) != list(reversed(value.shape)):
            raise Failed(f"{name} has the shape {list(tensor.shape)}")
        if tensor.data_offset % 32 != 0:
            raise Failed(f"{name} is not aligned")
        if tensor.data.tobytes() != quantize(value, wanted).tobytes():
            raise Failed(f"{name}: other bits than the checkpoint's as {wanted.name}")
        back = dequantize(tensor.data, wanted).reshape(value.shape)
        if np.abs(back - value).max() > np.abs(value).max() / 100:
            raise Failed(f"{name}: far from the checkpoint's")


def value_of(reader, key):
    field = reader.get_field(key)
    return None if field is None else field.contents()


def check_metadata(reader, architecture, config, kind, model):
    of = config.get
    own = architecture in ("llama", "olmoe")
    wanted = {
        "general.architecture": architecture, "general.type": "model",
        "general.file_type": FILE_TYPES[kind], "general.quantization_version": 2,
        "block_count": of("num_hidden_layers"), "context_length": of("max_position_embeddings"),
        "embedding_length": of("hidden_size"), "feed_forward_length": of("intermediate_size"),
        "attention.head_count": of("num_attention_heads"),
        "attention.head_count_kv": of("num_key_value_heads"),
        "attention.layer_norm_rms_epsilon": np.float32(of("rms_norm_eps")),
        "rope.freq_base": of("rope_theta"), "expert_count": of("num_experts") or 4,
        "expert_used_count": of("num_experts_per_tok"),
        "attention.key_length": of("head_dim") or 16,
        "expert_feed_forward_length": None if own else of("moe_intermediate_size"),
        "expert_shared_feed_forward_length": of("shared_expert_intermediate_size"),
        "rope.dimension_count": 16 if architecture == "llama" else None,
    }
    for key, value in wanted.items():
        name = key if key.startswith("general.") else f"{architecture}.{key}"
        if value_of(reader, name) != value:
            raise Failed(f"{name} is {value_of(reader, name)}, not {value}")
    tokenizer = json.loads((model / "tokenizer.json").read_text())
    settings = json.loads((model / "tokenizer_config.json").read_text())
    tokens = value_of(reader, "tokenizer.ggml.tokens")
    ids = {**tokenizer["model"]["vocab"],
           **{token["content"]: token["id"] for token in tokenizer["added_tokens"]}}
    if len(tokens) != config["vocab_size"]:
        raise Failed(f"{len(tokens)} tokens")
    for text, number in ids.items():
        if tokens[number] != text:
            raise Failed(f"token {number} is {tokens[number]!r}, not {text!r}")
    types = value_of(reader, "tokenizer.ggml.token_type")
    special = {token["id"]: token["special"] for token in tokenizer["added_tokens"]}
    for number, kind_of in enumerate(types):
        wanted_type = 5 if number not in ids.values() else 1
        if number in special:
            wanted_type = 3 if special[number] else 4
        if kind_of != wanted_type:
            raise Failed(f"token {number} has the type {kind_of}, not {wanted_type}")
    merges = [m if isinstance(m, str) else " ".join(m) for m in tokenizer["model"]["merges"]]
    if value_of(reader, "tokenizer.ggml.merges") != merges:
        raise Failed("other merges")
    if value_of(reader, "tokenizer.ggml.eos_token_id") != ids[settings["eos_token"]]:
        raise Failed("another eos_token_id")
    template = settings.get("chat_template")
    if template is not None and value_of(reader, "tokenizer.chat_template") != template:
        raise Failed("another chat template")


def next_token(model, ids):
    """llama.cpp's likeliest token after these ids."""
    from llama_cpp_py_sync._cffi_bindings import get_ffi, get_lib
    ffi, lib = get_ffi(), get_lib()
    lib.llama_memory_clear(lib.llama_get_memory(model._ctx), True)
    tokens = ffi.new("llama_token[]", ids)
    if lib.llama_decode(model._ctx, lib.llama_batch_get_one(tokens, len(ids))) != 0:
        raise Failed("llama.cpp does not decode")
    size = lib.llama_vocab_n_tokens(lib.llama_model_get_vocab(model._model))
    logits = ffi.buffer(lib.llama_get_logits_ith(model._ctx, -1), 4 * size)
    return int(np.argmax(np.frombuffer(logits, "<f4")))


def check_llama(hearth, model, path):
    """llama.cpp loads the file, reads a prompt as the same ids, and continues it with the same text."""
    from llama_cpp_py_sync import Llama
    (path.parent / "prompt.txt").write_text(PROMPT + "\n")
    ids = json.loads(hearth.call("tokenize", "--model", model, path.parent / "prompt.txt"))
    answer = json.loads(hearth.call("generate", "--model", model, "--prompt", PROMPT, "--json",
                                    "--max-new-tokens", 12, "--compute-dtype", "f32"))
    with Llama(str(path), n_ctx=64, n_gpu_layers=0, verbose=False) as other:
        found = list(other.tokenize(PROMPT, add_special=False))
        if found != ids:
            raise Failed(f"llama.cpp reads the prompt as {found}, not {ids}")
        new = []
        while len(new) < answer["tokens"]:
            new.append(next_token(other, ids + new))
        text = other.detokenize(new)
    if text != answer["text"]:
        raise Failed(f"llama.cpp continues with {text!r}, hearth with {answer['text']!r}")


def make_model(hearth, work, family, dtype):
    architecture, tokenizer, more = FAMILIES[family]
    config = {**SIZES, **more, "model_type": family, "torch_dtype": dtype}
    (work / "config.json").write_text(json.dumps(config))
    model = work / "model"
    hearth.call("init", "--config", work / "config.json", "--out", model, "--seed", 3,
                "--tokenizer", GOLDEN / tokenizer)
    return architecture, config, model


def check_file(hearth, work, name, words, checkpoint, architecture, config, kind):
    path = work / f"{name}-{kind}.gguf"
    hearth.call("export", *words, "--gguf", kind, "--out", path)
    reader = GGUFReader(path)
    check_tensors(reader, expected_tensors(read_checkpoint(checkpoint), config), kind)
    check_metadata(reader, architecture, config, kind, checkpoint)
    return path


def run_family(hearth, work, family):
    for dtype in ("float32", "bfloat16", "float16"):
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        architecture, config, model = make_model(hearth, work, family, dtype)
        for kind in TYPES:
            check_file(hearth, work, "model", ["--model", model], model, architecture, config, kind)
    rows = work / "rows.jsonl"
    rows.write_text("".join(json.dumps({"text": f"row number {i} " + "x" * i}) + "\n"
                            for i in range(12)))
    for method in ("full", "lora"):
        run = work / method
        hearth.call("train", "--model", model, "--data", rows, "--out", run, "--steps", 2,
                    "--seq-len", 32, "--method", method, "--lr", 1e-2, "--quiet")
        result = run / "model"
        if method == "lora":
            result = work / "merged"
            hearth.call("export", "--model", model, "--adapter", run / "adapter", "--out", result)
            check_file(hearth, work, "merged", ["--model", model, "--adapter", run / "adapter"],
                       result, architecture, config, "bf16")
        check_file(hearth, work, method, ["--model", run], result, architecture, config, "q8_0")
        check_file(hearth, work, method + "-state", ["--from-state", run], result, architecture,
                   config, "f16")
    return model, config


def loads_llama():
    try:
        from llama_cpp_py_sync._cffi_bindings import get_lib
        get_lib()
    except (ImportError, RuntimeError):
        return False
    return True


def main():
    hearth, work = Hearth(sys.argv[1]), Path(sys.argv[2])
    has_llama = loads_llama()
    failed = 0
    for family in sys.argv[3:] or FAMILIES:
        try:
            run_family(hearth, work / family, family)
            note = "llama.cpp: cannot be loaded, not run"
            if has_llama:
                shutil.rmtree(work / family)
                (work / family).mkdir()
                _, _, model = make_model(hearth, work / family, family, "float32")
                hearth.call("export", "--model", model, "--gguf", "f32", "--out",
                            work / family / "f32.gguf")
                check_llama(hearth, model, work / family / "f32.gguf")
                note = "llama.cpp: the same greedy tokens"
            print(f"ok    {family}: tensors and metadata; {note}")
        except Failed as error:
            failed += 1
            print(f"FAIL  {family}: {error}")
    print(f"{len(sys.argv[3:] or FAMILIES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

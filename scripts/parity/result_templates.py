"""Results carry the chat template that they were trained with, as transformers reads it.

    result_templates.py HEARTH_PROGRAM WORK_DIRECTORY
"""
import itertools
import json
import shutil
import sys
from pathlib import Path

from transformers import AutoTokenizer

from hearth import Failed, Hearth

CONFIG = {
    "model_type": "qwen3_moe", "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 300,
    "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "hidden_act": "silu", "max_position_embeddings": 128,
    "rms_norm_eps": 1e-6, "rope_theta": 10000.0, "tie_word_embeddings": False,
    "attention_bias": False, "num_experts": 4, "num_experts_per_tok": 2,
    "moe_intermediate_size": 16, "norm_topk_prob": True, "decoder_sparse_step": 1,
    "mlp_only_layers": [], "router_aux_loss_coef": 0.001, "use_sliding_window": False,
    "torch_dtype": "bfloat16"}
MINE = ("{% for m in messages %}[{{ m.role }}] {{ m.content }}\r\n{% endfor %}"
        "{% if tools %}{{ tools | length }}{% endif %}"
        "{% if add_generation_prompt %}[assistant] {% endif %}\n")
CHAT = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
TOOLS = [{"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}]
LIST = [{"name": "default", "template": "old"}, {"name": "tool_use", "template": "old tools"}]
BASES = {"none": None, "text": "old", "list": LIST, "files": None}


def make_base(hearth, directory, kind):
    hearth.call("init", "--config", directory.parent / "config.json", "--out", directory)
    path = directory / "tokenizer_config.json"
    config = json.loads(path.read_text())
    config.pop("chat_template")
    config["model_max_length"] = int(1e30)
    if BASES[kind] is not None:
        config["chat_template"] = BASES[kind]
    if kind == "files":
        (directory / "chat_template.jinja").write_text("old")
        (directory / "additional_chat_templates").mkdir()
        (directory / "additional_chat_templates/tool_use.jinja").write_text("old tools")
    path.write_text(json.dumps(config))


def texts(tokenizer, template=None):
    return [tokenizer.apply_chat_template(CHAT[:n], tools=tools, chat_template=template,
                                          add_generation_prompt=n == 1, tokenize=False)
            for n, tools in itertools.product((1, 2), (None, TOOLS))]


def check(hearth, work, kind, method, choice):
    run = work / f"{kind}-{method}-{Path(choice).stem}"
    base = work / kind
    hearth.call("train", "--model", base, "--data", work / "chats.jsonl", "--out", run, "--steps", 2,
                "--seq-len", 64, "--grad-accum", 1, "--method", method, "--train-on", "all",
                "--chat-template", choice)
    results = [run / ("model" if method == "full" else "adapter"), work / f"{run.name}-exported"]
    hearth.call("export", "--from-state", run, "--out", results[1])
    if method == "lora":
        results.append(work / f"{run.name}-merged")
        hearth.call("export", "--model", base, "--adapter", results[0], "--out", results[2])
    for result in results:
        tokenizer = AutoTokenizer.from_pretrained(result)
        template = MINE if choice.endswith(".jinja") else tokenizer.chat_template
        if not isinstance(template, str) or template.startswith("old"):
            return f"{result}: not the template of the run"
        if texts(tokenizer) != texts(tokenizer, template):
            return f"{result}: renders other texts"
        if tokenizer.model_max_length != int(1e30):
            return f"{result}: tokenizer_config.json was changed beside its template"
    return ""


def main():
    hearth, work = Hearth(sys.argv[1]), Path(sys.argv[2])
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    (work / "config.json").write_text(json.dumps(CONFIG))
    (work / "chats.jsonl").write_text(json.dumps({"messages": CHAT}) + "\n")
    (work / "mine.jinja").write_text(MINE, newline="")
    passed = failed = 0
    for kind in BASES:
        make_base(hearth, work / kind, kind)
        for method, choice in itertools.product(("full", "lora"), (str(work / "mine.jinja"), "chatml")):
            try:
                wrong = check(hearth, work, kind, method, choice)
            except Failed as error:
                wrong = str(error)
            passed, failed = passed + (not wrong), failed + bool(wrong)
            print(f"{'ok' if not wrong else 'FAILED'}  {kind}, {method}, {Path(choice).stem}  {wrong}")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

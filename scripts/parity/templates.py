"""Chat templates: what transformers' apply_chat_template and jinja2 give, against hearth.

    templates.py TEST_PROGRAM WORK_DIRECTORY     compares: TEST_PROGRAM is test_data of a build
    templates.py --record GOLDEN_DIRECTORY       writes the recorded cases of tests/golden/chat anew

The templates are those of tests/golden/chat/templates, written in the styles of published families.
"""
import datetime
import json
import os
import subprocess
import sys
from pathlib import Path

import transformers.utils.chat_template_utils as chat_template_utils
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

from chats import chats
from snippets import VARIABLES, snippets

DATE = "2026-01-31"
SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
TEMPLATES = Path(__file__).resolve().parents[2] / "tests/golden/chat/templates"


class Fixed(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromisoformat(DATE)


def encodes(text):
    try:
        text.encode()
        return True
    except UnicodeEncodeError:
        return False


def render_snippets():
    """[template, text or null]; what differs from run to run (addresses) is left out."""
    for source in snippets():
        try:
            compiled = chat_template_utils._cached_compile_jinja_template(source)
            text = compiled.render(**json.loads(json.dumps(VARIABLES)))
        except Exception:
            text = None
        if text is None or (" at 0x" not in text and encodes(text)):
            yield [source, text]


def render_chat(tokenizer, source, messages, tools, prompt):
    case = {"prompt": prompt, "text": None}
    try:
        case["text"] = tokenizer.apply_chat_template(
            messages, tools=tools, chat_template=source, add_generation_prompt=prompt, tokenize=False)
    except Exception:
        return case
    if "generation" in source and not prompt:
        clean = [{k: v for k, v in m.items() if v is not None} for m in messages]
        text, spans = chat_template_utils.render_jinja_template(
            [clean], tools=tools, chat_template=source, return_assistant_tokens_mask=True,
            **SPECIAL_TOKENS)
        case["generated"] = "".join(text[0][a:b] + "\n" for a, b in spans[0] if b > a)
    return case


def render_chats():
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.BPE()), **SPECIAL_TOKENS)
    conversations = chats()
    templates = {p.stem: p.read_bytes().decode() for p in sorted(TEMPLATES.glob("*.jinja"))}
    cases = {}
    for name, source in templates.items():
        cases[name] = [
            {"chat": i, **render_chat(tokenizer, source, messages, tools, prompt)}
            for i, (messages, tools) in enumerate(conversations) for prompt in (False, True)]
    return {"date": DATE, "special_tokens": SPECIAL_TOKENS, "templates": templates,
            "chats": [{"messages": m, "tools": t} for m, t in conversations], "cases": cases}


def write(directory):
    with open(directory / "snippets.jsonl", "w") as out:
        out.write(json.dumps({"date": DATE, "variables": VARIABLES}, ensure_ascii=False) + "\n")
        for snippet in render_snippets():
            out.write(json.dumps(snippet, ensure_ascii=False) + "\n")
    golden = render_chats()
    with open(directory / "templates.json", "w") as out:
        json.dump(golden, out, ensure_ascii=False, separators=(",", ":"))
        out.write("\n")
    texts = [c["text"] for of in golden["cases"].values() for c in of]
    print(f"{len(golden['templates'])} templates, {len(golden['chats'])} chats, {len(texts)} cases, "
          f"{sum(t is None for t in texts)} refused by transformers")


def main():
    chat_template_utils.datetime = Fixed
    if sys.argv[1] == "--record":
        write(Path(sys.argv[2]))
        return 0
    work = Path(sys.argv[2])
    work.mkdir(parents=True, exist_ok=True)
    write(work)
    environment = {**os.environ, "HEARTH_SNIPPETS": str(work / "snippets.jsonl"),
                   "HEARTH_CHAT_CASES": str(work / "templates.json")}
    tests = "snippets as jinja2 renders them,chats as transformers renders them"
    return subprocess.run([sys.argv[1], tests], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())

"""Rows as transformers and TRL read them: ids and what is trained, of every format.

    rows.py PROGRAM WORK_DIRECTORY

The tokenizer is that of tests/golden/tokenizer/qwen. Templates with generation tags are compared
with return_assistant_tokens_mask; others with the span rule, from prompts rendered by transformers;
prompt and completion with TRL's rule: one text, the end token behind it, the prompt masked.
"""
import gzip
import json
import random
import shutil
import sys
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from hearth import Failed, Hearth

GOLDEN = Path(__file__).resolve().parent.parent.parent / "tests/golden/tokenizer/qwen"

CHATML = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + "
          "message['content'] + '<|im_end|>' + '\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
GENERATION = ("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' }}"
              "{% if message['role'] == 'assistant' %}{% generation %}"
              "{{ message['content'] + '<|im_end|>' }}{% endgeneration %}{{ '\\n' }}"
              "{% else %}{{ message['content'] + '<|im_end|>' + '\\n' }}{% endif %}{% endfor %}"
              "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
WORDS = ["Hello", " world", "\n", "\n\n", "  ", "def f(x):", "\u4e2d\u6587", "\u00e9", "1234", ".",
         "'s", " the", "\U0001f600", "\t"]


def load(directory, template):
    """By tokenizer.json alone: transformers does not read all that old configurations say."""
    end = json.loads((directory / "tokenizer_config.json").read_text())["eos_token"]
    return PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"),
                                   eos_token=end if isinstance(end, str) else end["content"],
                                   chat_template=template)


def text(draw, most=8):
    return "".join(draw.choice(WORDS) for _ in range(draw.randint(1, most)))


def chat(draw):
    messages = [{"role": "system", "content": text(draw)}] if draw.random() < 0.3 else []
    for _ in range(draw.randint(1, 3)):
        messages += [{"role": "user", "content": text(draw)},
                     {"role": "assistant", "content": text(draw)}]
    return messages


def mask(offsets, spans):
    """A token is a target if it covers a character of a span; the first token never is."""
    covers = [any(a < end and b > begin for begin, end in spans) for a, b in offsets]
    return [int(c and i > 0) for i, c in enumerate(covers)]


def expect_chat(tokenizer, messages, tagged):
    if tagged:
        done = tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True,
                                             return_assistant_tokens_mask=True)
        return done["input_ids"], [0] + done["assistant_masks"][1:]
    whole = tokenizer.apply_chat_template(messages, tokenize=False)
    spans = []
    for i, message in enumerate(messages):
        if message["role"] == "assistant":
            prompt = tokenizer.apply_chat_template(messages[:i], tokenize=False,
                                                   add_generation_prompt=True)
            until = tokenizer.apply_chat_template(messages[:i + 1], tokenize=False)
            assert whole.startswith(prompt) and whole.startswith(until)
            spans.append((len(prompt), len(until)))
    done = tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)
    return done["input_ids"], mask(done["offset_mapping"], spans)


def expect_completion(tokenizer, prompt, completion):
    whole = prompt + completion
    done = tokenizer(whole, return_offsets_mapping=True)
    trained = mask(done["offset_mapping"], [(len(prompt), len(whole))])
    if whole.endswith(tokenizer.eos_token):
        return done["input_ids"], trained
    return done["input_ids"] + [tokenizer.eos_token_id], trained + [1]


def last_span(trained):
    """Of a mask what the last answer has: alpaca rows train their output, not their history."""
    end = max(i for i, is_trained in enumerate(trained) if is_trained) + 1
    begin = end
    while trained[begin - 1]:
        begin -= 1
    return [0] * begin + trained[begin:]


def rows_of(draw, tokenizer, tagged):
    """Rows, and of each ids and mask."""
    for _ in range(60):
        messages = chat(draw)
        expected = expect_chat(tokenizer, messages, tagged)
        yield {"messages": messages}, expected
        names = {"system": "system", "user": "human", "assistant": "gpt"}
        yield {"conversations": [{"from": names[m["role"]], "value": m["content"]}
                                 for m in messages]}, expected
        if messages[0]["role"] == "user":
            said = messages[-2]["content"]
            cut = draw.randint(0, len(said))
            pairs = [[messages[i]["content"], messages[i + 1]["content"]]
                     for i in range(0, len(messages) - 2, 2)]
            alpaca = {"instruction": said, "output": messages[-1]["content"], "history": pairs}
            if said[cut:cut + 1] == "\n" and said[:cut] and said[cut + 1:]:
                alpaca |= {"instruction": said[:cut], "input": said[cut + 1:]}
            yield alpaca, (expected[0], last_span(expected[1]))
        prompt, completion = text(draw), text(draw)
        yield ({"prompt": prompt, "completion": completion},
               expect_completion(tokenizer, prompt, completion))
        ids, _ = expect_completion(tokenizer, "", completion)
        yield {"text": completion}, (ids, [0] + [1] * (len(ids) - 1))


def compare(hearth, directory, data, expected):
    out = hearth.call("tokenize", "--model", directory, "--data", data, "--json")
    lines = [json.loads(line) for line in out.splitlines()]
    if len(lines) != len(expected):
        raise Failed(f"{len(lines)} samples of {len(expected)} rows")
    for line, (row, (ids, trained)) in zip(lines, expected):
        for name, want in (("ids", ids), ("trained", trained)):
            if line[name] != want:
                raise Failed(f"{name} of {json.dumps(row)}: {line[name]}, expected {want}")


def main(program, work):
    hearth, failures = Hearth(program), 0
    for name, template in (("chatml", CHATML), ("generation", GENERATION)):
        directory = work / name
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(GOLDEN, directory)
        (directory / "chat_template.jinja").write_text(template)
        tokenizer = load(directory, template)
        draw = random.Random(name)
        expected = list(rows_of(draw, tokenizer, name == "generation"))
        rows = [row for row, _ in expected]
        lines = "".join(json.dumps(row, ensure_ascii=draw.random() < 0.5) + "\n" for row in rows)
        (directory / "rows.jsonl").write_text(lines)
        (directory / "rows.json").write_text(json.dumps(rows, indent=1))
        (directory / "rows.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
        for data in ("rows.jsonl", "rows.json", "rows.jsonl.gz"):
            try:
                compare(hearth, directory, directory / data, expected)
                print(f"pass {name} {data}: {len(rows)} rows")
            except Failed as error:
                failures += 1
                print(f"FAIL {name} {data}: {error}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))

// Values and configurations at the edges: what each is told, or what it means.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>

#include "base/numbers.h"
#include "commands/commands.h"
#include "commands/directory_kind.h"
#include "options/option_lookup.h"
#include "options/option_table.h"
#include "support/has.h"
#include "support/raises.h"
#include "tools/foreign_fixture.h"

using namespace hearth;
using namespace hearth::test;

namespace {

using Words = std::vector<std::string>;

/// What is told about a command; empty if nothing.
std::string told(const Words& words) {
  try {
    parse_command_line(words);
  } catch (const ConfigurationError& e) {
    std::string all;
    for (const std::string& problem : e.problems()) all += problem + "\n";
    return all;
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

Words train(const Words& more) {
  Words words = {"train", "--model", "m", "--data", "d.jsonl", "--out", "o"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TEST_CASE("odd values of options") {
  struct Case {
    Words words;
    std::string part;  // of what is told; empty: nothing is
  };
  for (const Case& c : std::vector<Case>{
           {train({}), ""},
           {train({"--logical-shards", "0"}), "at least 1"},
           {train({"--logical-shards", "2"}), ""},
           {train({"--parallel", "chunked"}), "'chunked' is not in this version"},
           {train({"--parallel", "hybrid-ep", "--domains", "auto"}), ""},
           {train({"--levels", "2,4", "--domains", "1,2"}), ""},
           {train({"--parallel", "hybrid-ep", "--wire", "auto", "--wire-consistent"}), ""},
           {train({"--parallel", "hybrid-ep", "--kept-layers", "0"}), ""},
           {train({"--kept-layers", "-1"}), "--kept-layers: expected auto"},
           {train({"--kept-layers", "2.5"}), "--kept-layers: expected auto"},
           {train({"--kept-layers", "1,2"}), "--kept-layers: expected auto"},
           {train({"--wire", "residual:1.5", "--wire-threshold", "1"}), ""},
           {train({"--wire", "residual"}), "residual:R, with R above 1"},
           {train({"--wire", "residual:"}), "residual:R, with R above 1"},
           {train({"--wire", "residual:1"}), "residual:R, with R above 1"},
           {train({"--wire", "residual:-50"}), "residual:R, with R above 1"},
           {train({"--wire", "residual:nan"}), "residual:R, with R above 1"},
           {train({"--wire", "residual:50x"}), "residual:R, with R above 1"},
           {train({"--wire", "residual:1e9"}), "residual:R, with R above 1"},
           {train({"--wire", "dense:2"}), "residual:R, with R above 1"},
           {train({"--wire-threshold", "0"}), ""},
           {train({"--wire-threshold", "-0.1"}), "--wire-threshold"},
           {train({"--wire-threshold", "nan"}), "--wire-threshold"},
           {train({"--levels", "2,0"}), "numbers such as 2,4"},
           {train({"--domains", "2,"}), "numbers such as 2,1"},
           {train({"--logical-shards", "1", "--parallel", "single", "--deterministic"}), ""},
           {train({"--parallel", "zebra", "--attention-ranks", "2"}), ""},
           {train({"--expert-shift", "auto"}), ""},
           {train({"--expert-shift", "0,2,1"}), ""},
           {train({"--expert-shift", "0,"}), "numbers such as 0,1,1"},
           {train({"--expert-shift", "-1"}), "numbers such as 0,1,1"},
           {train({"--expert-shift", "on"}), "numbers such as 0,1,1"},
           {train({"--policy", "roundpipe"}), ""},
           {train({"--thread-ranks", "2", "--parallel", "dp"}), ""},
           {train({"--thread-ranks", "0"}), "--thread-ranks"},
           {train({"--rank-limit", "30s"}), ""},
           {train({"--rank-limit", "0s"}), "--rank-limit"},
           {train({"--rank-links", "1G"}), ""},
           {train({"--rank-links", "1.5Mi:2ms"}), ""},
           {train({"--rank-links", "0"}), "BYTES/S[:LATENCY]"},
           {train({"--rank-links", "1G:"}), "BYTES/S[:LATENCY]"},
           {train({"--rank-links", "1G:-1"}), "BYTES/S[:LATENCY]"},
           {train({"--rank-links", "fast"}), "BYTES/S[:LATENCY]"},
           {train({"--rank-devices", "0=host"}), ""},
           {train({"--rank-devices", ""}), "--rank-devices"},
           {train({"--rank-devices", "host"}), "expected RANK=LIST"},
           {train({"--rank-devices", "0=host;"}), "expected RANK=LIST"},
           {train({"--rank-devices", "0="}), "--rank-devices"},
           {train({"--rank-devices", "0=cuda"}), "--rank-devices"},
           {train({"--rank-devices", "-1=host"}), "ranks from 0 to 1023"},
           {train({"--rank-devices", "0-=host"}), "ranks from 0 to 1023"},
           {train({"--rank-devices", "0-99999999999999999999=host"}), "ranks from 0 to 1023"},
           {train({"--rank-devices", "2-1=host"}), "the last rank is before the first"},
           {train({"--rank-devices", "0-1=host;1=host"}), "rank 1 is named twice"},
           {train({"--max-time", "2h"}), ""},
           {train({"--max-time", "0s"}), "a time such as 90s, 30m or 1h"},
           {train({"--save-every", "epochs"}), "or epoch"},
           {train({"--partial-sums", "on"}), ""},
           {train({"--partial-sums", "maybe"}), "--partial-sums"},
           {train({"--divide-experts", "on"}), ""},
           {train({"--divide-experts", "on", "--policy", "aptmoe"}), "--divide-experts"},
           {train({"--divide-experts", "on", "--partial-sums", "on"}), "--divide-experts"},
           {train({"--divide-experts", "maybe"}), "--divide-experts"},
           {train({"--warmup", "1.5"}), "--warmup"},
           {train({"--warmup", "0"}), ""},
           {train({"--warmup", "-0.5"}), "--warmup"},
           {train({"--warmup", "0.5"}), "--warmup-ratio 0.5"},
           {train({"--warmup", "few"}), "expected a whole number"},
           {train({"--warmup", "0.5", "--warmup", "0.5"}), "expected one value, found 2"},
           {train({"--method", "lora", "--experts", "top:25"}), "expected all or top:P%"},
           {train({"--method", "lora", "--experts", "25%"}), "expected all or top:P%"},
           {train({"--method", "lora", "--experts", "top:x%"}), "expected all or top:P%"},
           {train({"--method", "lora", "--experts", "top:0%"}), "P above 0"},
           {train({"--method", "lora", "--experts", "top:101%"}), "at most 100"},
           {train({"--method", "lora", "--experts", "top:100%"}), ""},
           {train({"--template-date", "2026-02-30"}), "YYYY-MM-DD"},
           {train({"--template-date", "2026/02-03"}), "YYYY-MM-DD"},
           {train({"--template-date", "2026-02/03"}), "YYYY-MM-DD"},
           {train({"--template-date", "-026-02-03"}), "YYYY-MM-DD"},
           {train({"--template-date", "2026-02-03"}), ""},
           {train({"--resume", "never"}), ""},
           {train({"--resume", "dir"}), ""},
           {train({"--resume="}), "--resume"},
           {train({"--devices", "2xhost"}), "--devices"},
           {train({"--devices", "2"}), "--devices"},
           {train({"--devices", "3xvirtual:mem=8G"}), ""},
           {train({"--devices", "virtual, host"}), ""},
           {train({"--devices", "virtual ,host"}), "'virtual ': expected auto"},
           {train({"--devices", "auto,host"}), "auto stands alone"},
           {train({"--save-every", "-5m"}), "--save-every"},
           {train({"--save-every", "1e308h"}), "--save-every"},
           {train({"--save-every", "5m"}), ""},
           {train({"--=x"}), "unknown option"},
           {train({"--="}), "unknown option"},
           {train({"--eval-data", "-", "--data", "-:text"}), "standard input"},
           {train({"--lr-schedule", "zzz"}), "--lr-schedule"},
           {train({"--grad-accum", "3", "--batch-tokens", "x"}), "--batch-tokens"},
           {{"report", "--compare", "a", ""}, "an empty text"},
           {{"report", "--compare", "", "b"}, "an empty text"},
           {{"report", "--compare", "a"}, "--compare"},
           {train({"--allow-change", "frobnicate"}), "is not an option of train"},
           {train({"--allow-change", "prompt"}), "is not an option of train"},
           {train({"--batch-tokens", "1000000000000", "--seq-len", "1", "--micro-batch", "1"}),
            "micro-batches per step"},
           {{"tokenize", "--model", "m", "x", "--seq-len", "5"}, "--seq-len needs --data"},
           {{"tokenize", "--model", "m", "x", "--overflow", "drop"}, "--overflow needs --data"},
           {{"tokenize", "--model", "m", "x", "--data", "y"}, "found both"},
           {{"tokenize", "--model", "m", "--data", "y", "--no-special"}, "does not go with"},
           {train({"--chat-template", "{{ bos_token }}"}), "found the text of a template"},
           {train({"--chat-template", "{% for m in messages %}"}), "write it to a file"},
           {{"export", "--gguf", "f16", "--out", "o"}, "found none"},
           {{"export", "--adapter", "a", "--from-state", "s", "--out", "o"}, "found both"},
           {{"export", "--from-state", "run//", "--model", "m", "--out", "run/x"}, "lies in"},
           {{"export", "--from-state", "run", "--model", "m", "--out", "m"}, "lies in"},
           {{"export", "--from-state", "/", "--model", "m", "--out", "/x"}, "lies in"},
           {{"generate", "--model", "m", "--prompt", "a", "--top-p", "0.5", "--temperature", "1"},
            ""},
           {{"generate", "--model", "m", "--prompt", "a", "--top-p", "0.5", "--temperature", "0"},
            "--top-p needs"},
           {{"zzzzzzzzzzzzzzzz"}, "see 'hearth --help'"}}) {
    std::string words;
    for (const std::string& word : c.words) words += word + " ";
    const std::string message = told(c.words);
    INFO(words << "-> " << message);
    CHECK((c.part.empty() ? message.empty() : has(message, c.part)));
  }
  Options options;
  const OptionValue& pair = find_option("compare")->value;
  CHECK(has(pair.set(options, {"a"}).value_or(""), "found 1 of two"));
  CHECK_FALSE(pair.set(options, {"a", "b"}));
  CHECK(has(pair.get(options), "\"b\""));
  CHECK(parse_command_line({"-h"}).action == CommandLine::Action::help);
  CHECK_FALSE(parse_duration("1e306h"));
  CHECK_FALSE(parse_size("-1k"));
}

TEST_CASE("odd values of other trainers' configurations") {
  const std::string head = "base_model: m\noutput_dir: o\n";
  const auto with = [&](const std::string& yaml) {
    std::string all;
    for (const std::string& problem : problems_of(head + yaml)) all += problem + "\n";
    return all;
  };
  const std::string rows = "datasets:\n  - path: rows.jsonl\n    type: ";
  CHECK(with(rows + "chat_template\n").empty());
  CHECK(has(with("datasets:\n  - type: alpaca\n"), "an entry without path"));
  CHECK(has(with("datasets:\n  - path: ''\n    type: alpaca\n"), "an entry without path"));
  CHECK(has(with("datasets:\n  - path: json\n    data_files: []\n    type: alpaca\n"), "datasets"));
  CHECK(has(with(rows + "x\n"), "expected chat_template"));
  CHECK(has(with(rows + "[a, b]\n"), "expected chat_template"));
  CHECK(has(with(rows + "chat_template\n    frobnicate: 1\n"), "has no counterpart"));
  CHECK(has(with(rows + "chat_template\n    message_property_mappings: 5\n"), "expected a map"));
  CHECK(has(with(rows + "chat_template\n    message_property_mappings: {role: [a, b]}\n"),
            "expected 'role'"));
  CHECK(has(with(rows + "chat_template\n    message_property_mappings: {role: who}\n"),
            "expected 'role'"));
  CHECK(with(rows + "chat_template\n    message_property_mappings: {role: from}\n").empty());

  const Options folder =
      parsed_yaml(head +
                  "datasets:\n  - path: folder\n    data_files: [a.jsonl, b.jsonl]\n"
                  "    type: alpaca\n")
          .options;
  CHECK(folder.data == Words{"folder/a.jsonl", "folder/b.jsonl"});
  const Options loader = parsed_yaml(head +
                                     "datasets:\n  - path: json\n    data_files: a.jsonl\n"
                                     "    type: chat_template\n    field_messages: conversations\n")
                             .options;
  CHECK(loader.data == Words{"a.jsonl"});
  // The same format said twice, and another one.
  const std::string more = "test_datasets:\n  - path: eval.jsonl\n    type: ";
  CHECK(with(rows + "alpaca\n" + more + "alpaca\n").empty());
  CHECK_FALSE(with(rows + "alpaca\n" + more + "completion\n").empty());
  // A name of a data set is looked up nowhere.
  CHECK(has(with("dataset: alpaca_en_demo\n"), "no such file"));
  CHECK(has(with("dataset: ' , '\n"), "--data is missing"));
  // Maps and lists where a value belongs.
  CHECK(has(with("learning_rate: {a: 1}\n"), "expected a value"));
  CHECK(has(with("learning_rate: [[1]]\n"), "expected a value"));
  CHECK(has(with("lr: {a: 1}\n"), "expected a value"));
}

TEST_CASE("odd values of other trainers' keys") {
  const TemporaryDirectory directory;
  std::ofstream(directory / "rows") << "{}";
  const std::string head = "model: m\nout: o\n";
  const auto with = [&](const std::string& yaml) {
    std::string all;
    for (const std::string& problem : problems_of(head + yaml)) all += problem + "\n";
    return all;
  };
  const std::string rows = "data: d.jsonl\n";
  struct Case {
    std::string yaml, part;  // of what is told; empty: nothing is
  };
  for (const Case& c : std::vector<Case>{
           {"dataset: '-'\n", ""},
           {"dataset: rows.jsonl\n", ""},
           {"dataset: " + (directory / "rows") + "\n", ""},
           {"dataset: " + (directory / "none") + "\n", "no such file"},
           {"data:\n  - path: d.jsonl\n    type: alpaca\n", ""},
           {rows + "eval_data:\n  - path: d.jsonl\n    type: alpaca\n", ""},
           {rows + "val_size: 1e16\n", "val_size"},
           {rows + "val_size: -1\n", "val_size"},
           {rows + "warmup: [1, 2]\n", "expected one value"},
           {rows + "resume: ''\n", "auto, never or a directory"},
           {rows + "resume: never\n", ""},
           // Null asks for nothing, whoever knows the key.
           {rows + "policy:\nlearning_rate:\ngptq:\n", ""},
           {rows + "frobnicate:\n", "frobnicate"},
           {rows + "gptq: ''\n", ""},
           {rows + "gptq: [true, true]\n", "quantized"},
           {rows + "gptq: true\n", "'true': "},
           // Maps: ignored with a note or without, refused with advice or without.
           {rows + "fsdp_config: {a: 1}\n", ""},
           {rows + "bnb_config: {a: 1}\n", ""},
           {rows + "bnb_config: [[1]]\n", ""},
           {rows + "model_config: {output_router_logits: true}\n", ""},
           {rows + "model_config: {output_router_logits: true, a: 1, b: 1}\n", "config.json"},
           {rows + "model_config: [[1]]\n", "config.json"},
           {rows + "max_steps: {a: 1}\n", "expected a value"},
           // Lists: of values of their own, too, and with a null in them.
           {rows + "max_steps: [5]\n", "expected one value, found a list"},
           {rows + "max_steps: [-1, 5]\n", "expected one value, found a list"},
           {rows + "devices: virtual, host\n", ""},
           {rows + "devices: [virtual, host]\n",
            "expected one value, found a list; write its items with commas: 'virtual,host'"},
           {rows + "devices: virtual,\n", ":"},
           {rows + "lora_target_modules: [null]\n", "expected values in the list, found null"},
           {rows + "frobnicate: [null]\n", "unknown key"},
           {rows + "max_steps: [[1]]\n", "expected a value"}}) {
    const std::string message = with(c.yaml);
    INFO(c.yaml << "-> " << message);
    CHECK((c.part.empty() ? message.empty() : has(message, c.part)));
  }
  const auto files = [&](const std::string& entry) {
    const auto options = parsed_yaml(head + "datasets:\n  - " + entry + "\n").options;
    return options.data;
  };
  CHECK(files("{data_files: [a.jsonl], type: alpaca}") == Words{"a.jsonl"});
  CHECK(files("{path: a.jsonl, data_files: [a.jsonl], type: alpaca}") == Words{"a.jsonl"});
  CHECK(files("{path: a.jsonl, split: null, type: alpaca}") == Words{"a.jsonl"});
  CHECK(files("{path: a.jsonl, name: any, type: alpaca}") == Words{"a.jsonl"});
  CHECK(files("{path: a.jsonl, field_messages: conversations, type: alpaca}") == Words{"a.jsonl"});
  CHECK(told({"train", "--model", "m", "--out", "o", "--data", "-", "--eval-data", "e.jsonl"})
            .empty());
  const std::string tokens = head + rows + "seq_len: 1024\ngrad_accum: 4\nbatch_tokens: 4096\n";
  CHECK(parsed_yaml(tokens).options.grad_accum == 4);
  CHECK(parsed_yaml(tokens, {"--grad-accum", "3"}).options.grad_accum == 3);
  CHECK(has(told(train({"--grad-accum", "3", "--batch-tokens", "4096", "--seq-len", "1024"})),
            "contradict each other"));
}

TEST_CASE("a second operand: rows that the shell split off, or anything else") {
  const auto with = [](const std::string& operand) {
    try {
      parsed_yaml("model: m\ndata: d.jsonl\nout: o\n", {operand});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(has(with("more.jsonl"), "unexpected argument 'more.jsonl': expected a configuration"));
  CHECK(has(with("more.jsonl:2"), "name files of rows behind --data"));
  CHECK(has(with("more.yaml"), "unexpected argument 'more.yaml'"));
  CHECK_FALSE(has(with("more.yaml"), "behind --data"));
}

TEST_CASE("adapter: lora names a directory where there is one") {
  const TemporaryDirectory directory;
  const std::string yaml = "base_model: m\ndata: d.jsonl\noutput_dir: o\nadapter: lora\n";
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  CHECK(parsed_yaml(yaml).options.adapter.empty());
  CHECK(parsed_yaml(yaml).options.method == Method::lora);
  std::filesystem::create_directory(directory / "lora");
  CHECK(parsed_yaml(yaml, {"--method", "lora"}).options.adapter == "lora");
  std::filesystem::current_path(before);
}

TEST_CASE("a configuration's maps are kept to a bound, and none below lists of lists") {
  std::string deep;
  for (int i = 0; i < 12; ++i) deep += "{a: ";
  const auto problems = problems_of("a: " + deep + "1" + std::string(12, '}') + "\n");
  CHECK_FALSE(problems.empty());
  CHECK_FALSE(problems_of("a:\n  - [[{b: 1}], {c: [{d: 1}]}]\n").empty());
  CHECK(one_says(problems_of("a: !!str 1\n"), "tags"));
  CHECK(one_says(problems_of("a: !x 1\n"), "tags"));
}

TEST_CASE("what a directory is for verify and others") {
  const TemporaryDirectory directory;
  const auto made = [&](const std::string& name, const std::string& inside) {
    std::filesystem::create_directories(directory / (name + "/" + inside));
    return directory / name;
  };
  CHECK(directory_kind(made("step-00000001", "") + "//") == DirectoryKind::saved_state);
  CHECK(directory_kind(made("a", "state")) == DirectoryKind::run);
  CHECK(directory_kind(made("b", "model")) == DirectoryKind::run);
  CHECK(directory_kind(made("c", ".lock")) == DirectoryKind::run);
  CHECK(directory_kind(made("d", "config.json")) == DirectoryKind::checkpoint);
  CHECK(directory_kind(made("result", "adapter")) == DirectoryKind::run);
  CHECK(raised_by([&] { directory_kind(made("e", "x")); }).code == ExitCode::input);
  // Weights beside an adapter's files, in one file or several, are a checkpoint's.
  made("f", "config.json");
  CHECK(directory_kind(made("f", "adapter_config.json")) == DirectoryKind::adapter);
  CHECK(directory_kind(made("f", "model.safetensors.index.json")) == DirectoryKind::checkpoint);
  made("g", "config.json");
  made("g", "model.safetensors");
  CHECK(directory_kind(made("g", "adapter_model.safetensors")) == DirectoryKind::checkpoint);
  CHECK(raised_by([&] { directory_kind(directory / "none"); }).code == ExitCode::input);
  for (const std::string run : {"a", "c"}) {
    Options options;
    options.operand = directory / run;
    CHECK(raised_by([&] { run_verify(options); }).says("neither saved state nor a result"));
  }
  made("a", "state/other");
  Options options;
  options.operand = directory / "a";
  CHECK(raised_by([&] { run_verify(options); }).says("neither saved state nor a result"));
}

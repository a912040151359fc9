#include "tools/option_table.h"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <map>
#include <set>

#include "support/raises.h"
#include "support/temporary_directory.h"
#include "tools/command_line.h"
#include "tools/problems.h"

using namespace hearth;
using test::raised_by;

namespace {

// A value other than the default for every option of train, and how it is recorded.
const std::map<std::string, std::pair<std::string, std::string>> kSamples{
    {"model", {"m/x", "\"m/x\""}},
    {"data", {"d.jsonl", "[\"d.jsonl\"]"}},
    {"eval-data", {"e \"q\".jsonl", "[\"e \\\"q\\\".jsonl\"]"}},
    {"out", {"runs/ü: #1", "\"runs/ü: #1\""}},
    {"method", {"full", "full"}},
    {"trainable", {"*.mlp.*", "[\"*.mlp.*\"]"}},
    {"freeze", {"*router*", "[\"*router*\"]"}},
    {"seq-len", {"128", "128"}},
    {"micro-batch", {"3", "3"}},
    {"grad-accum", {"5", "5"}},
    {"batch-tokens", {"9000", "9000"}},
    {"packing", {"off", "off"}},
    {"shuffle", {"false", "off"}},
    {"epochs", {"2.5", "2.5"}},
    {"steps", {"17", "17"}},
    {"overflow", {"drop", "drop"}},
    {"lr", {"0.00025", "0.00025"}},
    {"lr-schedule", {"linear", "linear"}},
    {"warmup", {"0", "0"}},
    {"warmup-ratio", {"0.1", "0.1"}},
    {"weight-decay", {"0.01", "0.01"}},
    {"beta1", {"0.8", "0.8"}},
    {"beta2", {"0.95", "0.95"}},
    {"eps", {"1e-6", "1e-06"}},
    {"max-grad-norm", {"0", "0"}},
    {"router-z-loss", {"0.001", "0.001"}},
    {"router-aux-loss", {"0.001", "0.001"}},
    {"aux-loss-mode", {"hf", "hf"}},
    {"decay-all", {"true", "on"}},
    {"seed", {"18446744073709551615", "18446744073709551615"}},
    {"format", {"tokens", "tokens"}},
    {"chat-template", {"chatml", "\"chatml\""}},
    {"template-date", {"2026-01-31", "\"2026-01-31\""}},
    {"train-on", {"all", "all"}},
    {"skip-bad-rows", {"4", "4"}},
    {"parallel", {"single", "single"}},
    {"devices", {"host", "host"}},
    {"cpu-memory", {"1.5Gi", "1610612736"}},
    {"threads", {"2", "2"}},
    {"compute-dtype", {"bf16", "bf16"}},
    {"recompute", {"blocks", "blocks"}},
    {"deterministic", {"on", "on"}},
    {"logical-shards", {"1", "1"}},
    {"plan", {"p.json", "\"p.json\""}},
    {"follow-links", {"on", "on"}},
    {"save-every", {"30m", "1800s"}},
    {"keep", {"7", "7"}},
    {"final-state", {"off", "off"}},
    {"resume", {"old/run", "\"old/run\""}},
    {"allow-change", {"max_steps", "[\"steps\"]"}},
    {"eval-every", {"50", "50"}},
    {"eval-at-start", {"on", "on"}},
    {"log-every", {"10", "10"}},
    {"trace", {"t.json", "\"t.json\""}},
    {"quiet", {"on", "on"}},
    {"verbose", {"on", "on"}},
};

std::map<std::string, std::string> recorded(const Options& options) {
  std::map<std::string, std::string> values;
  for (const auto& r : options.recorded) values[r.name] = r.value;
  return values;
}

// The flags that train needs, unless the option under test is one of them.
std::vector<std::string> train_with(const std::vector<std::string>& more,
                                    const std::string& except = "") {
  std::vector<std::string> arguments{"train"};
  for (const std::string name : {"model", "data", "out"}) {
    if (name != except) arguments.insert(arguments.end(), {"--" + name, name});
  }
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

std::string written(const test::TemporaryDirectory& directory, const std::string& text) {
  const std::string path = directory / "config.yaml";
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

Options parsed(const std::vector<std::string>& arguments) {
  return parse_command_line(arguments).options;
}

}  // namespace

TEST_CASE("every option of train comes from a flag and from a file and is recorded") {
  test::TemporaryDirectory directory;
  for (const Option& option : option_table()) {
    if (!option.commands.contains(Command::train)) continue;
    INFO(option.name);
    REQUIRE(kSamples.contains(option.name));
    const auto& [text, value] = kSamples.at(option.name);
    const bool flag = option.value.kind == OptionKind::flag;
    const std::string argument = "--" + option.name + (flag ? "=" + text : "");
    std::vector<std::string> arguments = train_with({argument}, option.name);
    if (!flag) arguments.push_back(text);
    if (option.name.starts_with("eval-") && option.name != "eval-data") {
      arguments.insert(arguments.end(), {"--eval-data", "e"});
    }
    const Options by_flag = parsed(arguments);
    CHECK(recorded(by_flag).at(option.name) == value);

    // What is recorded is a configuration that gives the same options.
    std::string yaml;
    for (const auto& r : by_flag.recorded) yaml += r.name + ": " + r.value + "\n";
    const Options again = parsed({"train", written(directory, yaml)});
    CHECK(recorded(again) == recorded(by_flag));
    const std::set<std::string> of_one_value{"method", "parallel", "logical-shards"};
    if (!of_one_value.contains(option.name)) {
      CHECK(option.value.get(Options{}) != value);
    }
  }
}

TEST_CASE("the values arrive in the members") {
  const Options o = parsed(train_with({"--lr",
                                       "2e-5",
                                       "--save-every",
                                       "90s",
                                       "--steps",
                                       "9",
                                       "--resume",
                                       "x",
                                       "--allow-change",
                                       "steps,learning_rate",
                                       "--warmup",
                                       "0",
                                       "--eval-every",
                                       "0",
                                       "--cpu-memory",
                                       "2k",
                                       "--freeze",
                                       "a",
                                       "--freeze",
                                       "b",
                                       "--decay-all",
                                       "--threads",
                                       "3",
                                       "--router-aux-loss",
                                       "0"}));
  CHECK(o.lr == 2e-5);
  CHECK_FALSE(o.save_every.steps);
  CHECK(o.save_every.seconds == 90);
  CHECK(o.steps == 9);
  CHECK(o.warmup == 0);  // given, so it wins over the ratio
  CHECK(o.resume == ResumeMode::from_directory);
  CHECK(o.resume_from == "x");
  CHECK(o.allow_change == std::vector<std::string>{"steps", "lr"});
  CHECK_FALSE(o.eval_every);
  CHECK(o.cpu_memory == 2000);
  CHECK(o.freeze == std::vector<std::string>{"a", "b"});
  CHECK(o.decay_all);
  CHECK(o.threads == 3);
  CHECK(o.router_aux_loss == 0.0);
  const Options defaults = parsed(train_with({"--save-every", "0"}));
  CHECK_FALSE(defaults.save_every.steps);
  CHECK_FALSE(defaults.save_every.seconds);
  CHECK_FALSE(defaults.router_aux_loss);
}

TEST_CASE("what may change on resume is marked, and nothing else") {
  std::set<std::string> names;
  for (const auto& r : parsed(train_with({})).recorded) {
    if (r.may_change) names.insert(r.name);
  }
  CHECK(names == std::set<std::string>{"threads", "save-every", "keep", "log-every", "eval-every",
                                       "trace", "quiet", "verbose", "resume", "out",
                                       "allow-change"});
}

TEST_CASE("names are unique, written with hyphens, and described") {
  std::set<std::string> names;
  const auto add = [&](const std::string& name) {
    INFO(name);
    CHECK(names.insert(name).second);
    CHECK(name.find('_') == std::string::npos);
  };
  for (const Option& option : option_table()) {
    add(option.name);
    for (const std::string& alias : option.aliases) add(alias);
    CHECK_FALSE(option.help.empty());
  }
  for (const LaterOption& later : later_options()) {
    add(later.name);
    for (const std::string& alias : later.aliases) add(alias);
  }
}

TEST_CASE("help shows every option of a command with unit, default and range") {
  for (const CommandEntry& entry : command_table()) {
    const std::string help = command_help(entry.command);
    for (const Option& option : option_table()) {
      const bool shown = help.find("\n  --" + option.name + " ") != std::string::npos;
      INFO(entry.name << " " << option.name);
      CHECK(shown == option.commands.contains(entry.command));
    }
    for (const LaterOption& later : later_options()) {
      CHECK(help.find("--" + later.name + " ") == std::string::npos);
    }
    CHECK(program_help().find("\n  " + entry.name) != std::string::npos);
  }
  const std::string help = command_help(Command::train);
  CHECK(help.find("[tokens; 1 to 1048576; default 2048;") != std::string::npos);
  CHECK(help.find("learning_rate") != std::string::npos);
}

TEST_CASE("a flag beats the file, the file beats the default") {
  test::TemporaryDirectory directory;
  const std::string file =
      written(directory, "learning_rate: 1e-3\nseq_len: 64\nfreeze: [a, b]\nsteps: null\n");
  const Options o = parsed(train_with({file, "--lr", "5e-4", "--freeze", "c"}));
  CHECK(o.lr == 5e-4);
  CHECK(o.seq_len == 64);
  CHECK(o.micro_batch == 1);
  CHECK(o.freeze == std::vector<std::string>{"c"});
  CHECK_FALSE(o.steps);
}

TEST_CASE("aliases of other trainers, with hyphens or underscores") {
  test::TemporaryDirectory directory;
  const std::string file = written(directory,
                                   "model_name_or_path: m\ndataset: d.jsonl\noutput_dir: o\n"
                                   "num_train_epochs: 3.0\nper_device_train_batch_size: 2\n"
                                   "gradient_accumulation_steps: 4\ncutoff_len: 512\n"
                                   "lr_scheduler_type: cosine\nwarmup_ratio: 0.1\nadam-beta1: 0.5\n"
                                   "save_steps: 100\nlogging_steps: 5\nsample_packing: true\n");
  const Options o = parsed({"train", file, "--max_steps", "6", "--save-total-limit=3"});
  CHECK(o.model == "m");
  CHECK(o.data == std::vector<std::string>{"d.jsonl"});
  CHECK(o.out == "o");
  CHECK(o.epochs == 3);
  CHECK(o.micro_batch == 2);
  CHECK(o.grad_accum == 4);
  CHECK(o.seq_len == 512);
  CHECK(o.beta1 == 0.5);
  CHECK(o.save_every.steps == 100);
  CHECK(o.packing);
  CHECK(o.steps == 6);
  CHECK(o.keep == 3);
}

TEST_CASE("all problems are told at once, with the nearest name") {
  test::TemporaryDirectory directory;
  const std::string file = written(directory, "learnig_rate: 1\nseq-len: 0\nlora_r: 8\n");
  const auto e = raised_by([&] {
    parsed({"train", file, "--model", "m", "--grad-acum", "4", "--lr", "nan", "--packing", "maybe",
            "--method", "lora", "--gpu-memory", "1G"});
  });
  CHECK(e.code == ExitCode::usage);
  INFO(e.message);
  for (const char* part :
       {":1: learnig_rate: unknown key; the nearest is lr", ":2: seq-len: expected a whole number",
        ":3: lora_r: not in this version",
        "--grad-acum: unknown option; the nearest is --grad-accum", "--lr: expected a number",
        "--packing: expected on or off", "'lora' is not in this version",
        "--gpu-memory: not in this version", "--data is missing", "--out is missing"}) {
    CHECK(e.says(part));
  }
  CHECK(e.message.find('\n') == std::string::npos);
  try {
    parsed({"train", file});
    FAIL("accepted");
  } catch (const ConfigurationError& error) {  // main prints each on a line of its own
    CHECK(error.problems().size() == 6);
  }
}

TEST_CASE("options that contradict each other") {
  test::TemporaryDirectory directory;
  const auto refused = [](const std::vector<std::string>& more, const std::string& part) {
    const auto e = raised_by([&] { parsed(train_with(more)); });
    INFO(e.message);
    return e.code == ExitCode::usage && e.says(part);
  };
  CHECK(refused({"--quiet", "--verbose"}, "--quiet and --verbose"));
  CHECK(refused({"--eval-every", "5"}, "--eval-every needs --eval-data"));
  CHECK(refused({"--eval-at-start"}, "--eval-at-start needs --eval-data"));
  CHECK(refused({"--grad-accum", "3", "--batch-tokens", "8192", "--seq-len", "1024"},
                "8192 tokens are 8 micro-batches"));
  CHECK(refused({"--logical-shards", "2"}, "not in this version"));
  for (const char* devices : {"cuda:0", "host,cuda:1", "3xvirtual:mem=8G/cores=2", "2xcuda:0"}) {
    CHECK(refused({"--devices", devices}, "is not in this version; it has auto, host"));
  }
  CHECK(refused({"--devices", "host,host"}, "one device"));
  CHECK(refused({"--devices", "gpu"}, "--devices: expected auto, host"));
  const auto generate = [](const std::vector<std::string>& more) {
    std::vector<std::string> words{"generate", "--model", "m"};
    words.insert(words.end(), more.begin(), more.end());
    return raised_by([&] { parsed(words); });
  };
  CHECK(generate({"--prompt", "a", "--messages", "f"}).says("found both"));
  CHECK(generate({"--prompt", "a", "--top-p", "0.5"}).says("--temperature"));
}

TEST_CASE("--batch-tokens in place of --grad-accum") {
  test::TemporaryDirectory directory;
  const Options o =
      parsed(train_with({"--batch-tokens", "10000", "--seq-len", "1024", "--micro-batch", "2"}));
  CHECK(o.grad_accum == 5);
  // The later place says it in its way.
  const std::string file = written(directory, "batch_tokens: 8192\nseq_len: 1024\n");
  CHECK(parsed(train_with({file})).grad_accum == 8);
  CHECK(parsed(train_with({file, "--grad-accum", "3"})).grad_accum == 3);
  CHECK(parsed(train_with({written(directory, "grad_accum: 3\n"), "--batch-tokens", "4096"}))
            .grad_accum == 2);
}

TEST_CASE("empty values are refused with a clear message") {
  const auto says = [](const std::vector<std::string>& words, const std::string& part) {
    const auto e = raised_by([&] { parsed(words); });
    INFO(e.message);
    return e.code == ExitCode::usage && e.says(part);
  };
  CHECK(says({"generate", "--model", "m", "--prompt", ""}, "--prompt: expected TEXT"));
  CHECK(says({"generate", "--model", "m", "--prompt="}, "--prompt: expected a value behind '='"));
  CHECK(says(train_with({"--lr="}), "--lr: expected a value behind '='"));
  CHECK(says(train_with({"--lr=", "--steps", "3"}), "--lr: expected a value"));
  CHECK(says(train_with({"--out", ""}, "out"), "--out: expected DIR"));
  CHECK(says(train_with({"--freeze", ""}), "--freeze: expected no empty item"));
  CHECK(says(train_with({"--lr"}), "--lr: expected a value behind it"));
  CHECK(parsed({"generate", "--model", "m", "--prompt", "--x="}).prompt == "--x=");
}

TEST_CASE("two spellings of one option in one place, and one given twice") {
  test::TemporaryDirectory directory;
  auto e = raised_by([] { parsed(train_with({"--lr", "1", "--learning_rate", "1"})); });
  CHECK(e.code == ExitCode::usage);
  CHECK(e.says("--lr and --learning-rate are the same option"));
  e = raised_by([] { parsed(train_with({"--seq-len", "1", "--seq_len", "2"})); });
  CHECK(e.says("--seq-len: expected one value, found 2"));
  e = raised_by([&] { parsed(train_with({written(directory, "warmup: 1\nwarmup_steps: 1\n")})); });
  CHECK(e.code == ExitCode::usage);
  CHECK(e.says("are the same option"));
  // One in the file and another as a flag are two places.
  CHECK(parsed(train_with({written(directory, "warmup: 1\n"), "--warmup-steps", "2"})).warmup == 2);
}

TEST_CASE("numbers are strict") {
  const auto fails = [](const std::string& name, const std::string& text) {
    const auto e = raised_by([&] { parsed(train_with({"--" + name + "=" + text})); });
    return e.code == ExitCode::usage && e.says("--" + name + ":");
  };
  for (const char* text :
       {"nan", "inf", "-inf", "1e999", "0x1p3", "1,5", "1.0.0", "1e-5x", " 1", "-1", "1001"}) {
    INFO(text);
    CHECK(fails("lr", text));
  }
  for (const char* text : {"2k", "1.0", "0", "-3", "99999999999999999999", "1048577", "+5"}) {
    INFO(text);
    CHECK(fails("seq-len", text));
  }
  for (const char* text : {"1GB", "1 G", "-1", "1g", "1e30G", "G"}) {
    INFO(text);
    CHECK(fails("cpu-memory", text));
  }
  for (const char* text : {"0s", "-5", "1d", "m", "1.5", "5 m"}) {
    INFO(text);
    CHECK(fails("save-every", text));
  }
  CHECK(fails("beta1", "1"));
  CHECK(fails("eps", "0"));
  CHECK(fails("epochs", "0"));
  CHECK(fails("warmup-ratio", "1.01"));
  CHECK(fails("seed", "-1"));
  CHECK(fails("keep", "0"));
  CHECK(fails("allow-change", "lr,,steps"));
  CHECK(fails("decay-all", "yes"));
}

TEST_CASE("values are taken as they are") {
  const auto prompt = [](const std::string& text) {
    return parsed({"generate", "--model", "m", "--prompt", text}).prompt;
  };
  for (const char* text :
       {"[a,b]", "--lr", "-1", "\"quoted\"", "a,b", "x=y", "{}", "a_b", "%%", " "}) {
    INFO(text);
    CHECK(prompt(text) == text);
  }
  CHECK(parsed({"tokenize", "--model", "m", "-"}).operand == "-");
  CHECK(parsed({"generate", "--model", "m", "--prompt=a=b", "--kv-cache=off"}).prompt == "a=b");
}

TEST_CASE("commands take their options only") {
  auto e = raised_by([] { parsed({"eval", "--model", "m", "--data", "d", "--lr", "1"}); });
  CHECK(e.code == ExitCode::usage);
  CHECK(e.says("--lr: unknown option for 'eval'"));
  e = raised_by([] { parsed({"tokenize", "--model", "m", "--data", "d"}); });
  CHECK(e.says("--data: not in this version"));
  e = raised_by([] { parsed({"init", "--config", "c"}); });
  CHECK(e.says("--out is missing"));
  e = raised_by([] { parsed({"inspect"}); });
  CHECK(e.says("expected a directory"));
  e = raised_by([] { parsed({"inspect", "a", "b"}); });
  CHECK(e.says("unexpected argument 'b'"));
  e = raised_by([] { parsed({"generate", "--model", "m"}); });
  CHECK(e.says("one of --prompt and --messages"));
  e = raised_by([] { parsed({"trian"}); });
  CHECK(e.says("the nearest is train"));
  for (const char* later : {"profile", "doctor", "simulate", "report"}) {
    CHECK(raised_by([&] { parsed({later, "x"}); }).says("is not in this version"));
  }
  CHECK(raised_by([] { parsed({}); }).code == ExitCode::usage);
  CHECK(parsed({"eval", "--model", "m", "--data", "d", "--seq-len", "9"}).seq_len == 9);
  // eval and generate take what shapes data and batches, and show what has an effect.
  parsed({"generate", "--model", "m", "--prompt", "x", "--seq-len", "9", "--data", "d"});
  parsed({"eval", "--model", "m", "--data", "d", "--grad-accum", "2", "--seed", "1"});
  CHECK(command_help(Command::generate).find("--seq-len") == std::string::npos);
  CHECK(command_help(Command::eval).find("--grad-accum") == std::string::npos);
  CHECK(command_help(Command::eval).find("--seq-len") != std::string::npos);
}

TEST_CASE("weights of data files are not in this version") {
  const auto e = raised_by([] { parsed(train_with({"--data", "rows.jsonl:0.5"}, "data")); });
  CHECK(e.says("not in this version"));
}

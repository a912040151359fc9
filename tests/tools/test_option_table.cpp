#include "options/option_table.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <iterator>
#include <map>
#include <set>
#include <sstream>

#include "base/numbers.h"
#include "commands/command_line.h"
#include "commands/help.h"
#include "device/device_list.h"
#include "options/command_table.h"
#include "options/later.h"
#include "options/option_lookup.h"
#include "options/problems.h"
#include "options/setting_names.h"
#include "support/raises.h"
#include "tools/command_line_fixture.h"

using namespace hearth;
using test::parsed;
using test::raised_by;
using test::train_with;
using test::written;

namespace {

// A value other than the default for every option of train, and how it is recorded.
const std::map<std::string, std::pair<std::string, std::string>> kSamples{
    {"model", {"m/x", "\"m/x\""}},
    {"data", {"d.jsonl", "[\"d.jsonl\"]"}},
    {"eval-data", {"e \"q\".jsonl", "[\"e \\\"q\\\".jsonl\"]"}},
    {"out", {"runs/ü: #1", "\"runs/ü: #1\""}},
    {"method", {"lora", "lora"}},
    {"adapter", {"a/b", "\"a/b\""}},
    {"lora-r", {"8", "8"}},
    {"lora-alpha", {"24", "24"}},
    {"lora-dropout", {"0.05", "0.05"}},
    {"rslora", {"on", "on"}},
    {"lora-plus-ratio", {"16", "16"}},
    {"expert-r", {"4", "4"}},
    {"experts", {"top:25%", "top:25%"}},
    {"lora-targets", {"experts,*q_proj*", "[\"experts\", \"*q_proj*\"]"}},
    {"adapter-layout", {"fused", "fused"}},
    {"accept-other-base", {"on", "on"}},
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
    {"min-lr-ratio", {"0.2", "0.2"}},
    {"weight-decay", {"0.01", "0.01"}},
    {"beta1", {"0.8", "0.8"}},
    {"beta2", {"0.95", "0.95"}},
    {"eps", {"1e-6", "1e-06"}},
    {"max-grad-norm", {"0", "0"}},
    {"neftune", {"5", "5"}},
    {"router-z-loss", {"0.001", "0.001"}},
    {"router-aux-loss", {"0.001", "0.001"}},
    {"aux-loss-mode", {"hf", "hf"}},
    {"decay-all", {"true", "on"}},
    {"seed", {"18446744073709551615", "18446744073709551615"}},
    {"format", {"tokens", "tokens"}},
    {"chat-template", {"chatml", "\"chatml\""}},
    {"template-args", {"enable_thinking=false", "[\"enable_thinking=false\"]"}},
    {"template-date", {"2026-01-31", "\"2026-01-31\""}},
    {"train-on", {"all", "all"}},
    {"no-special-in-content", {"true", "on"}},
    {"columns", {"prompt=q,completion=a", "[\"prompt=q\", \"completion=a\"]"}},
    {"max-samples", {"9", "9"}},
    {"skip-bad-rows", {"4", "4"}},
    {"val-size", {"0.05", "0.05"}},
    {"data-cache", {"1Gi", "1073741824"}},
    {"parallel", {"single", "single"}},
    {"policy", {"static", "static"}},
    {"equation", {"printed", "printed"}},
    {"partial-sums", {"on", "on"}},
    {"divide-experts", {"on", "on"}},
    {"predictor", {"router:3", "router:3"}},
    {"phases", {"inter-expert,inter-stage", "[\"inter-stage\", \"inter-expert\"]"}},
    {"journal-decisions", {"full", "full"}},
    {"devices", {"host", "host"}},
    {"topology", {"t.xml", "\"t.xml\""}},
    {"cpu-memory", {"1.5Gi", "1610612736"}},
    {"gpu-memory", {"70G", "70000000000"}},
    {"threads", {"2", "2"}},
    {"compute-dtype", {"bf16", "bf16"}},
    {"recompute", {"blocks", "blocks"}},
    {"deterministic", {"on", "on"}},
    {"logical-shards", {"4", "4"}},
    {"thread-ranks", {"2", "2"}},
    {"expert-ranks", {"2", "2"}},
    {"attention-ranks", {"2", "2"}},
    {"expert-shift", {"0,1,2", "\"0,1,2\""}},
    {"levels", {"2,4", "\"2,4\""}},
    {"domains", {"1,2", "\"1,2\""}},
    {"kept-layers", {"3", "3"}},
    {"wire", {"residual:50", "\"residual:50\""}},
    {"wire-threshold", {"0.2", "0.2"}},
    {"wire-consistent", {"true", "on"}},
    {"rank-limit", {"2m", "120s"}},
    {"rank-devices", {"2=virtual:mem=1G;0-1=host", "\"0-1=host;2=virtual:mem=1G\""}},
    {"rank-links", {"125M:50us", "\"125000000:5e-05\""}},
    {"plan", {"p.json", "\"p.json\""}},
    {"profile", {"tables", "\"tables\""}},
    {"follow-links", {"on", "on"}},
    {"save-every", {"20m", "1200s"}},
    {"keep", {"7", "7"}},
    {"keep-best", {"3", "3"}},
    {"metric", {"eval_loss", "eval_loss"}},
    {"early-stopping", {"2", "2"}},
    {"load-best", {"on", "on"}},
    {"max-time", {"90m", "5400s"}},
    {"final-state", {"off", "off"}},
    {"resume", {"old/run", "\"old/run\""}},
    {"allow-change", {"max_steps", "[\"steps\"]"}},
    {"eval-every", {"50", "50"}},
    {"eval-at-start", {"on", "on"}},
    {"samples", {"3", "3"}},
    {"strict", {"on", "on"}},
    {"log-every", {"10", "10"}},
    {"tokens-by-expert", {"on", "on"}},
    {"json", {"on", "on"}},
    {"replay-decisions", {"j.jsonl", "\"j.jsonl\""}},
    {"digest-every", {"5", "5"}},
    {"trace", {"t.json", "\"t.json\""}},
    {"quiet", {"on", "on"}},
    {"verbose", {"on", "on"}},
};

std::map<std::string, std::string> recorded(const Options& options) {
  std::map<std::string, std::string> values;
  for (const auto& r : options.recorded) values[r.name] = r.value;
  return values;
}

constexpr std::string_view kIdle = "without effect here";

std::set<std::string> help_words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
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
    const std::set<std::string> of_evaluation{"eval-every", "eval-at-start", "keep-best",
                                              "early-stopping", "load-best"};
    if (of_evaluation.contains(option.name)) {
      arguments.insert(arguments.end(), {"--eval-data", "e"});
    }
    if (option.name == "early-stopping") arguments.insert(arguments.end(), {"--eval-every", "5"});
    if (option.name == "equation" || option.name == "phases") {
      arguments.insert(arguments.end(), {"--policy", "aptmoe"});
    }
    if (option.group == "LoRA") arguments.insert(arguments.end(), {"--method", "lora"});
    const Options by_flag = parsed(arguments);
    CHECK(recorded(by_flag).at(option.name) == value);

    // What is recorded is a configuration that gives the same options.
    std::string yaml;
    for (const auto& r : by_flag.recorded) yaml += r.name + ": " + r.value + "\n";
    const Options again = parsed({"train", written(directory, yaml)});
    CHECK(recorded(again) == recorded(by_flag));
    const std::set<std::string> of_one_value{"parallel", "metric"};
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
  CHECK_FALSE(o.eval_every.is_set());
  CHECK(o.cpu_memory == 2000);
  CHECK(o.freeze == std::vector<std::string>{"a", "b"});
  CHECK(o.decay_all);
  CHECK(o.threads == 3);
  CHECK(o.router_aux_loss == 0.0);
  const Options defaults = parsed(train_with({"--save-every", "0"}));
  CHECK_FALSE(defaults.save_every.steps);
  CHECK_FALSE(defaults.save_every.seconds);
  CHECK(parsed(train_with({})).save_every.seconds == 1800);
  CHECK(parsed(train_with({"--save-every", "epoch", "--eval-data", "e", "--eval-every", "10m"}))
            .save_every.epoch);
  CHECK_FALSE(defaults.router_aux_loss);
}

TEST_CASE("a predictor of routers has a distance, others have none") {
  const auto foresight = [](const std::string& text) {
    return parsed(train_with({"--predictor", text})).foresight;
  };
  CHECK(foresight("history") == Foresight{});
  CHECK(foresight("router").predictor == ForetoldBy::router);
  CHECK(foresight("router") == foresight("router:1"));
  CHECK(foresight("router:4").ahead == 4);
  CHECK(foresight("pre-attention").predictor == ForetoldBy::pre_attention);
  CHECK(foresight("oracle").predictor == ForetoldBy::oracle);
  for (const char* wrong : {"router:0", "router:5", "router:", "router:x", "router:1:2", "oracle:1",
                            "history:2", "pre-attention:1", "Router", ""}) {
    INFO(wrong);
    CHECK(raised_by([&] { foresight(wrong); }).code == ExitCode::usage);
  }
}

TEST_CASE("what may change on resume is marked, and nothing else") {
  std::set<std::string> names;
  for (const auto& r : parsed(train_with({})).recorded) {
    if (r.may_change) names.insert(r.name);
  }
  CHECK(names == std::set<std::string>{"threads",
                                       "save-every",
                                       "keep",
                                       "keep-best",
                                       "metric",
                                       "early-stopping",
                                       "max-time",
                                       "log-every",
                                       "eval-every",
                                       "trace",
                                       "quiet",
                                       "verbose",
                                       "resume",
                                       "out",
                                       "allow-change",
                                       "data-cache",
                                       "digest-every",
                                       "deterministic",
                                       "parallel",
                                       "tokens-by-expert",
                                       "equation",
                                       "phases",
                                       "predictor",
                                       "journal-decisions",
                                       "replay-decisions",
                                       "json",
                                       "thread-ranks",
                                       "expert-ranks",
                                       "attention-ranks",
                                       "expert-shift",
                                       "levels",
                                       "domains",
                                       "kept-layers",
                                       "rank-devices",
                                       "rank-limit",
                                       "rank-links"});
}

TEST_CASE("names are unique, written with hyphens, and described") {
  for (const CommandEntry& entry : command_table()) {
    std::set<std::string> names;
    const auto add = [&](const std::string& name) {
      INFO(entry.name << " " << name);
      CHECK(names.insert(name).second);
      CHECK(name.find('_') == std::string::npos);
    };
    for (const Option& option : option_table()) {
      if (!option.taken_by(entry.command) && !option.later.contains(entry.command)) continue;
      add(option.name);
      for (const std::string& alias : option.aliases) add(alias);
      CHECK_FALSE(option.help.empty());
      // No two rows of a name: the one that the command takes is found.
      CHECK((option.later.contains(entry.command) ||
             find_option(option.name, entry.command) == &option));
    }
    for (const LaterOption& later : later_options()) {
      add(later.name);
    }
  }
  // A row for each meaning of a name.
  CHECK(find_option("experts") == find_option("experts", Command::train));
  CHECK(find_option("experts", Command::simulate)->value.kind == OptionKind::integer);
}

TEST_CASE("help shows every option of a command with unit, default and range") {
  for (const CommandEntry& entry : command_table()) {
    const std::string help = command_help(entry.command);
    for (const Option& option : option_table()) {
      INFO(entry.name << " " << option.name);
      const bool shown = help.find("\n  --" + option.name + " ") != std::string::npos;
      if (&option != find_option(option.name, entry.command)) continue;  // the other row's name
      const Option* taken = find_option(option.name, entry.command);
      if (taken != nullptr && taken != &option) continue;  // another row of the name
      CHECK(shown == (option.commands.contains(entry.command) && !option.hidden));
      const bool named = help_words(help.substr(std::min(help.find(kIdle), help.size())))
                             .contains("--" + option.name);
      CHECK(named == (option.idle.contains(entry.command) && !option.hidden));
      if (!shown) continue;
      // A value has a default, or must be given.
      const size_t begin = help.find("\n  --" + option.name + " ");
      const std::string text = help.substr(begin, help.find("\n  --", begin + 1) - begin);
      CHECK((text.find("default") != std::string::npos ||
             text.find("required") != std::string::npos));
      CHECK_FALSE(parse_count(option.value.range));  // one number is no range
    }
    for (const LaterOption& later : later_options()) {
      CHECK(help.find("--" + later.name + " ") == std::string::npos);
    }
    CHECK(program_help().find("\n  " + entry.name) != std::string::npos);
  }
  CHECK(find_option("deterministic")->hidden);
  const std::string init = command_help(Command::init), report = command_help(Command::report);
  CHECK(init.find("--out DIR                 directory of the new checkpoint") !=
        std::string::npos);
  CHECK(report.find("--out FILE                HTML file to write") != std::string::npos);
  const std::string help = command_help(Command::train);
  CHECK(help.find("[sequences; 1 to 1048576; default 1]") != std::string::npos);
  CHECK(help.find("the options of most runs\n  --model ") != std::string::npos);
  CHECK(help.find("learning_rate") == std::string::npos);  // other names have a page of their own
  CHECK(aliases_help().find("  --lr                      learning_rate\n") != std::string::npos);
}

TEST_CASE("help of --devices names every key that the parser knows, with the bounds") {
  const auto words = [](const std::string& text) {  // on one line
    std::istringstream in(text);
    std::string all;
    for (std::string word; in >> word;) all += " " + word;
    return all;
  };
  for (const Command command : {Command::train, Command::plan}) {
    const std::string help = command_help(command);
    const size_t begin = help.find("\n  --devices ");
    const std::string text = words(help.substr(begin, help.find("\n  --", begin + 1) - begin));
    const std::string refusal = raised_by([] { parse_device_list("virtual:x=1"); }).message;
    std::istringstream keys(refusal.substr(refusal.find(" has ") + 5));
    int count = 0;
    for (std::string key; std::getline(keys >> std::ws, key, ',');) {
      INFO(key);
      CHECK(text.find(" " + key + " ") != std::string::npos);
      ++count;
    }
    CHECK(count == 9);
    for (const std::string& bound :
         {"at most " + std::to_string(kCoresPerCore) + " per core of this machine, or " +
              std::to_string(kLeastCoreBound) + " if",
          std::string("0 to 60 s"), std::string("1 to 64 times")}) {
      INFO(bound);
      CHECK(text.find(bound) != std::string::npos);
    }
  }
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
  for (const char* text : {"1GK", "1 G", "-1", "1g", "1e30G", "G", "B", "GB", "1BB", "1KB"}) {
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
  for (const char* name : {"warmup", "warmup_steps"}) {
    const auto e = raised_by([&] { parsed(train_with({std::string("--") + name, "0.1"})); });
    CHECK(e.says("expected a whole number"));
    CHECK(e.says("--warmup-ratio 0.1"));
  }
  CHECK_FALSE(raised_by([] { parsed(train_with({"--warmup", "1.5"})); }).says("ratio"));
  CHECK(fails("seed", "-1"));
  CHECK(fails("keep", "0"));
  CHECK(fails("allow-change", "lr,,steps"));
  CHECK(fails("decay-all", "maybe"));
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

TEST_CASE("relations name options that exist, and a row says what it needs and excludes") {
  for (const Option& option : option_table()) {
    INFO(option.name);
    for (const auto& relations : {option.needs, option.excludes}) {
      for (const Relation& relation : relations) {
        REQUIRE(find_option(relation.option) != nullptr);
        CHECK(relation.option != option.name);
        if (relation.value.empty()) continue;
        Options options;
        CHECK_FALSE(find_option(relation.option)->value.set(options, {relation.value}));
      }
    }
  }
  const auto told = [](const std::vector<std::string>& more) {
    return raised_by([&] { parsed(train_with(more)); });
  };
  CHECK(told({"--experts", "top:25%"}).says("--experts needs --method lora"));
  CHECK(told({"--method", "lora", "--adapter", "a", "--expert-r", "4"})
            .says("--expert-r does not go with --adapter: ranks"));
  CHECK(told({"--eval-every", "3"}).says("--eval-every needs --eval-data or --val-size"));
  // What a command does not take cannot be needed.
  parsed({"eval", "--model", "m", "--data", "d", "--adapter", "a", "--adapter-layout", "fused"});
  CHECK(raised_by([] {
          parsed({"tokenize", "--model", "m", "--data", "d", "--no-special"});
        }).says("--no-special does not go with --data"));
  CHECK(raised_by([] {
          parsed({"export", "--out", "o"});
        }).says("expected a run as --model, an --adapter or a --from-state, found none"));
}

TEST_CASE("every setting that messages speak of is set by an option") {
  for (int i = 0; i < kSettings; ++i) {
    const std::string option = option_of(static_cast<Setting>(i));
    INFO(option);
    REQUIRE(find_option(option) != nullptr);
    CHECK(find_option(option)->name == option);
    CHECK(spelled(static_cast<Setting>(i)).find("--") == std::string::npos);
  }
  spell_settings_by(flag_of);
  CHECK(spelled(Setting::train_on, "last") == "--train-on last");
  spell_settings_by(nullptr);
  CHECK(spelled(Setting::seq_len) == "the sequence length");
}

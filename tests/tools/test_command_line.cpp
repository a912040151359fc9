// Flags, file and defaults together: what wins, what contradicts, what is told.
#include "commands/command_line.h"

#include <catch2/catch_test_macros.hpp>

#include "commands/help.h"
#include "options/option_table.h"
#include "options/problems.h"
#include "support/raises.h"
#include "tools/command_line_fixture.h"

using namespace hearth;
using test::parsed;
using test::raised_by;
using test::train_with;
using test::written;

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
  const std::string file = written(directory, "learnig_rate: 1\nseq-len: 0\nwire: residual:1\n");
  const auto e = raised_by([&] {
    parsed({"train", file, "--model", "m", "--grad-acum", "4", "--lr", "nan", "--packing", "maybe",
            "--parallel", "chunked", "--policy", "roundpip"});
  });
  CHECK(e.code == ExitCode::usage);
  INFO(e.message);
  for (const char* part :
       {":1: learnig_rate: unknown key; the nearest is learning_rate (lr)",
        ":2: seq-len: expected a whole number", ":3: wire: expected dense, auto or residual:R",
        "--grad-acum: unknown option; the nearest is --grad-accum", "--lr: expected a number",
        "--packing: expected on or off", "'chunked' is not in this version", "found 'roundpip'",
        "--data is missing", "--out is missing"}) {
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

TEST_CASE("what would have no effect on adapters is refused") {
  const auto problem = [](const std::vector<std::string>& more) {
    return raised_by([&] { parsed(train_with(more)); });
  };
  CHECK(parsed(train_with({})).lr == 1e-5);
  CHECK(parsed(train_with({"--method", "lora"})).lr == 1e-4);
  CHECK(parsed(train_with({"--method", "lora", "--lr", "1e-5"})).lr == 1e-5);
  CHECK(problem({"--lora-r", "4"}).says("--lora-r needs --method lora"));
  CHECK(problem({"--rslora"}).code == ExitCode::usage);
  CHECK(problem({"--method", "lora", "--adapter", "a", "--lora-targets", "attention"})
            .says("does not go with --adapter"));
  CHECK(parsed(train_with({"--method", "lora", "--adapter", "a", "--lora-dropout", "0.1"}))
            .lora_dropout == 0.1);
}

TEST_CASE("the nearest name is written as the user writes") {
  test::TemporaryDirectory directory;
  const std::string file = written(directory, "grad_acum: 1\nseq-lem: 9\n");
  const auto e = raised_by([&] {
    parsed({"train", file, "--micro_batchs", "1", "--micro-batchs", "1", "--output-dri", "x"});
  });
  INFO(e.message);
  for (const char* part : {"grad_acum: unknown key; the nearest is grad_accum;",
                           "seq-lem: unknown key; the nearest is seq-len",
                           "--micro_batchs: unknown option; the nearest is --micro_batch",
                           "--micro-batchs: unknown option; the nearest is --micro-batch",
                           "--output-dri: unknown option; the nearest is --output-dir (--out)"}) {
    CHECK(e.says(part));
  }
}

TEST_CASE("options that contradict each other") {
  test::TemporaryDirectory directory;
  const auto refused = [](const std::vector<std::string>& more, const std::string& part) {
    const auto e = raised_by([&] { parsed(train_with(more)); });
    INFO(e.message);
    return e.code == ExitCode::usage && e.says(part);
  };
  CHECK(refused({"--quiet", "--verbose"}, "--quiet does not go with --verbose"));
  CHECK(refused({"--eval-every", "5"}, "--eval-every needs --eval-data"));
  CHECK(refused({"--eval-at-start"}, "--eval-at-start needs --eval-data"));
  CHECK(refused({"--data", "-", "--eval-data", "-"}, "standard input (-) can be read only once"));
  CHECK(refused({"--grad-accum", "3", "--batch-tokens", "8192", "--seq-len", "1024"},
                "8192 tokens are 8 micro-batches"));
  CHECK(refused({"--wire", "sparse"}, "--wire: expected dense, auto or residual:R"));
  CHECK(refused({"--devices", "host,host"}, "--devices: host twice"));
  CHECK(refused({"--devices", "gpu"},
                "--devices: 'gpu': expected auto, host[:N], cuda:N or virtual"));
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
  CHECK(says({"generate", "--model", "m", "--prompt="}, "--prompt: expected a value after '='"));
  CHECK(says(train_with({"--lr="}), "--lr: expected a value after '='"));
  CHECK(says(train_with({"--lr=", "--steps", "3"}), "--lr: expected a value"));
  CHECK(says(train_with({"--out", ""}, "out"), "--out: expected DIR"));
  CHECK(says(train_with({"--freeze", ""}), "--freeze: expected a list without empty items"));
  CHECK(says(train_with({"--lr"}), "--lr: expected a value after it"));
  CHECK(says(train_with({"--lr", "--steps", "3"}),
             "--lr: expected a value after it, found '--steps'"));
  CHECK(parsed({"generate", "--model", "m", "--prompt", "--x="}).prompt == "--x=");
}

TEST_CASE("two spellings of one option in one place, and one given twice") {
  test::TemporaryDirectory directory;
  auto e = raised_by([] { parsed(train_with({"--lr", "1", "--learning_rate", "1"})); });
  CHECK(e.code == ExitCode::usage);
  CHECK(e.says("--lr and --learning_rate are the same option"));
  e = raised_by([] { parsed(train_with({"--seq-len", "1", "--seq_len", "2"})); });
  CHECK(e.says("--seq-len: expected one value, found 2"));
  e = raised_by([&] { parsed(train_with({written(directory, "warmup: 1\nwarmup_steps: 1\n")})); });
  CHECK(e.code == ExitCode::usage);
  CHECK(e.says("are the same option"));
  // One in the file and another as a flag are two places.
  CHECK(parsed(train_with({written(directory, "warmup: 1\n"), "--warmup-steps", "2"})).warmup == 2);
}

TEST_CASE("commands take their options only") {
  auto e = raised_by([] { parsed({"eval", "--model", "m", "--data", "d", "--lr", "1"}); });
  CHECK(e.code == ExitCode::usage);
  CHECK(e.says("--lr: unknown option for 'eval'"));
  e = raised_by([] { parsed({"tokenize", "--model", "m", "--data", "d", "--lr", "1"}); });
  CHECK(e.says("--lr: unknown option for 'tokenize'"));
  e = raised_by([] { parsed({"init", "--config", "c"}); });
  CHECK(e.says("--out is missing"));
  e = raised_by([] { parsed({"inspect"}); });
  CHECK(e.says("expected a directory"));
  e = raised_by([] { parsed({"inspect", "a", "b"}); });
  CHECK(e.says("unexpected argument 'b'"));
  e = raised_by([] { parsed({"generate", "--model", "m"}); });
  CHECK(e.says("one of --prompt, --messages and --data"));
  e = raised_by([] { parsed({"trian"}); });
  CHECK(e.says("the nearest is train"));
  CHECK(raised_by([] { parsed({}); }).code == ExitCode::usage);
  CHECK(parsed({"eval", "--model", "m", "--data", "d", "--seq-len", "9"}).seq_len == 9);
  // eval and generate take what shapes data and batches, and say what has no effect.
  parsed({"generate", "--model", "m", "--prompt", "x", "--seq-len", "9", "--data", "d"});
  parsed({"eval", "--model", "m", "--data", "d", "--grad-accum", "2", "--seed", "1"});
  const auto idle = [](Command command, const std::string& name) {
    const std::string help = command_help(command);
    const size_t begin = help.find("without effect here");
    return begin != std::string::npos && help.find("--" + name, begin) != std::string::npos;
  };
  CHECK(idle(Command::generate, "seq-len"));
  CHECK(idle(Command::generate, "data"));
  CHECK(idle(Command::eval, "grad-accum"));
  CHECK_FALSE(idle(Command::eval, "seq-len"));
  CHECK_FALSE(idle(Command::train, "grad-accum"));
}

TEST_CASE("weights of data files are above 0, and for training alone") {
  parsed(train_with({"--data", "rows.jsonl:0.5"}, "data"));
  for (const char* weight : {"rows.jsonl:0", "rows.jsonl:-1", "rows.jsonl:nan"}) {
    const auto e = raised_by([&] { parsed(train_with({"--data", weight}, "data")); });
    CHECK(e.code == ExitCode::usage);
    CHECK(e.says("above 0"));
  }
  CHECK(raised_by([] { parsed(train_with({"--eval-data", "rows.jsonl:2"})); }).says("no weight"));
  CHECK(raised_by([] { parsed({"eval", "--model", "m", "--data", "d:2"}); }).says("no weight"));
}

TEST_CASE("rows for evaluation are a file of their own or a part of the data") {
  CHECK(parsed(train_with({"--val-size", "12"})).val_size == 12);
  CHECK(parsed(train_with({"--val-size", "0.25", "--eval-every", "5"})).val_size == 0.25);
  CHECK(raised_by([] {
          parsed(train_with({"--val-size", "0.1", "--eval-data", "e"}));
        }).says("--val-size does not go with --eval-data"));
  for (const char* size : {"1.5", "-1", "nan", "x", "inf"}) {
    CHECK(raised_by([&] {
            parsed(train_with({"--val-size", size}));
          }).says("a share below 1 or a whole number"));
  }
}

TEST_CASE("on and off, as YAML and other trainers write them, too") {
  const test::TemporaryDirectory directory;
  for (const char* word : {"on", "true", "True", "TRUE", "yes"}) {
    CHECK(parsed(train_with({"--packing", word})).packing);
    CHECK(parsed(train_with({"--final-state", "off", "--shuffle", word})).shuffle);
  }
  for (const char* word : {"off", "false", "False", "no"}) {
    CHECK_FALSE(parsed(train_with({"--packing", word})).packing);
    CHECK_FALSE(parsed(train_with({written(directory, std::string("packing: ") + word)})).packing);
  }
  const Options bare = parsed(train_with({"--packing", "--max_steps", "3"}));
  CHECK(bare.packing);
  CHECK(bare.steps == 3);
}

// Errors that only the model or the data can find name where their value came from.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>

#include "commands/error_place.h"
#include "support/has.h"
#include "tools/command_line_fixture.h"
#include "tools/workplace.h"

namespace hearth::test {
namespace {

std::string told(const CommandLine& line, const std::string& message) {
  return error_at_place(line, usage_error(message)).what();
}

TEST_CASE("error place: the key of a file stands for the option") {
  const TemporaryDirectory directory;
  const std::string file = written(directory,
                                   "model: m\ndata: rows.jsonl\nout: o\nlora_targets: [q]\n"
                                   "method: lora\n# of a run\nlearning_rate: 1e-4\n");
  const CommandLine line = parse_command_line({"train", file, "--seq_len", "64"});
  CHECK(told(line, "--lora-targets 'q': none") == file + ":4: lora_targets 'q': none");
  CHECK(told(line, "--lr: too high") == file + ":7: learning_rate: too high");
  CHECK(told(line, "--seq-len 64: short") == "--seq_len 64: short");
  CHECK(told(line, "m: no such directory") == file + ":1: model: m: no such directory");
  CHECK(told(line, "rows.jsonl: cannot open") == file + ":2: data: rows.jsonl: cannot open");
  // The row is the place of this one, and these are of other options.
  CHECK(told(line, "rows.jsonl:3: no field") == "rows.jsonl:3: no field");
  CHECK(told(line, "--lora-r 8: odd") == "--lora-r 8: odd");
  CHECK(told(line, "--lr-schedule x: odd") == "--lr-schedule x: odd");
  CHECK(told(line, "a step; lower --lr") == "a step; lower --lr");
}

TEST_CASE("error place: a flag beats the file; a trainer's default has no place") {
  const TemporaryDirectory directory;
  const std::string file = written(directory,
                                   "model_name_or_path: m\ndataset: rows.jsonl\noutput_dir: o\n"
                                   "finetuning_type: lora\ncutoff_len: 64\n");
  const CommandLine line = parse_command_line({"train", file, "--cutoff_len", "32"});
  CHECK(told(line, "--seq-len 32: short") == "--cutoff_len 32: short");
  CHECK(told(line, "--lora-r 8: odd") == "--lora-r 8: odd");
  CHECK(told(line, "--model 'm': odd") == file + ":1: model_name_or_path 'm': odd");
  CHECK(error_at_place(line, input_error("--model 'm': odd")).code() == ExitCode::input);
}

TEST_CASE("error place: the program names file, line and key of a target that no tensor has") {
  const Workplace place;
  const std::string file = place.d / "run.yaml";
  write(file, "model: " + (place.d / "model") + "\ndata: " + (place.d / "rows.jsonl") +
                  "\nout: " + (place.d / "out") + "\nmethod: lora\nlora_target: q_prox\n");
  const ProgramResult from_file = place.run({"train", file});
  INFO(from_file.err);
  CHECK(from_file.exit_code == 2);
  CHECK(has(from_file.err, file + ":5: lora_target 'q_prox': no tensor of the model"));
  const ProgramResult by_flag =
      place.run(place.train("out", {"--method", "lora", "--lora_target", "q_prox"}));
  INFO(by_flag.err);
  CHECK(by_flag.exit_code == 2);
  CHECK(has(by_flag.err, "hearth: --lora_target 'q_prox': no tensor of the model"));
}

TEST_CASE("error place: wrong targets are told together, and with all other problems") {
  const Workplace place;
  const std::string file = place.d / "run.yaml";
  const auto run = [&](const std::string& more) {
    write(file, "model: " + (place.d / "model") + "\ndata: " + (place.d / "rows.jsonl") +
                    "\nout: " + (place.d / "out") +
                    "\nmethod: lora\nlora_target: [q_prox, q_proj, up_prox]\n" + more);
    return place.run({"train", file});
  };
  const std::string first = file + ":5: lora_target 'q_prox': no tensor of the model",
                    second = file + ":5: lora_target 'up_prox': no tensor of the model";
  for (const bool others : {false, true}) {
    const ProgramResult result = run(others ? "seq_len: -4\nlerning_rate: 1\n" : "");
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(has(result.err, first));
    CHECK(has(result.err, second));
    CHECK(has(result.err, file + ":6: ") == others);
    CHECK(has(result.err, file + ":7: ") == others);
    CHECK(std::ranges::count(result.err, '\n') == (others ? 4 : 2));
  }
  // Of a model that is not there, only that is told.
  write(file, "model: nowhere\ndata: r.jsonl\nout: o\nmethod: lora\nlora_target: q_prox\nodd: 1\n");
  const ProgramResult absent = place.run({"train", file});
  CHECK(absent.exit_code == 2);
  CHECK(has(absent.err, file + ":6: "));
  CHECK_FALSE(has(absent.err, "q_prox"));
}

}  // namespace
}  // namespace hearth::test

#include "parity/recorded_run.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>

#include "base/file_ops.h"
#include "device/cuda_runtime.h"
#include "support/program.h"
#include "support/test_paths.h"

namespace hearth::test {

namespace {

std::string run(const std::vector<std::string>& words) {
  const char* other = std::getenv("HEARTH_TEST_PROGRAM");
  const ProgramResult result = run_program(other ? other : test_binary(), words);
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  return result.out;
}

}  // namespace

std::string run_case(const RecordedCase& c, std::vector<std::string> words,
                     const std::vector<std::string>& options) {
  words.insert(words.end(), {"--threads", "1"});
  if (!c.devices.empty()) words.insert(words.end(), {"--devices", c.devices});
  // Where many of these runs share a GPU.
  const char* memory = std::getenv("HEARTH_TEST_GPU_MEMORY");
  if (memory != nullptr && c.devices.starts_with("cuda")) {
    words.insert(words.end(), {"--gpu-memory", memory});
  }
  for (const std::string& word : c.flags(options)) words.push_back(word);
  return run(words);
}

void train_case(const RecordedCase& c, const std::string& out,
                const std::vector<std::string>& words) {
  std::vector<std::string> all = {"train",  "--model",   c.model(), "--data",
                                  c.rows(), "--out",     out,       "--packing",
                                  "off",    "--shuffle", "off",     "--quiet"};
  all.insert(all.end(), words.begin(), words.end());
  run_case(c, std::move(all),
           {"steps", "micro_batch", "grad_accum", "seq_len", "lr", "lr_schedule", "warmup",
            "weight_decay", "beta1", "beta2", "eps", "max_grad_norm", "router_aux_loss",
            "aux_loss_mode", "compute_dtype"});
}

void export_case(const RecordedCase& c, const std::string& adapter, const std::string& out) {
  run({"export", "--model", c.model(), "--adapter", adapter, "--out", out, "--quiet"});
}

std::vector<Json> read_metrics(const std::string& run) {
  const std::string path = run + "/metrics.jsonl";
  std::vector<Json> lines;
  const std::string text = read_file(path);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = text.find('\n', begin);
    lines.push_back(parse_json(text.substr(begin, end - begin), path));
    begin = end + 1;
  }
  return lines;
}

void check_close(const std::string& what, double actual, double expected, double tolerance) {
  INFO(what << ": " << actual << " instead of " << expected << ", relative error "
            << relative_error(actual, expected));
  CHECK(relative_error(actual, expected) <= tolerance);
}

std::vector<RecordedCase> on_a_gpu(std::vector<RecordedCase> cases) {
  std::string why_not;
  if (!cuda_calls(why_not)) SKIP("no CUDA device: " + why_not);
  for (RecordedCase& c : cases) c.devices = "cuda:0";
  return cases;
}

}  // namespace hearth::test

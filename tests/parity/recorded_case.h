// A recorded case: a tiny checkpoint, rows, options, and what transformers, PEFT and torch.optim.AdamW
// made of them (scripts/parity).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/json.h"

namespace hearth::test {

/// Elements of a tensor, in f64 whatever was stored.
using Elements = std::vector<double>;

/// The tensors of a safetensors file.
std::map<std::string, Elements> read_tensors(const std::string& path);
/// The tensors of all safetensors files of a directory.
std::map<std::string, Elements> read_directory_tensors(const std::string& directory);

struct RecordedCase {
  std::string name;
  std::string directory;
  Json options;                             // of training, by name
  Json lora;                                // of adapters, by name; null: all weights are trained
  Json expected;                            // expected.json
  std::map<std::string, Elements> tensors;  // expected.safetensors
  std::string devices;                      // --devices of runs; empty: what the program takes

  bool computes_bf16() const { return options.find("compute_dtype")->as_string() == "bf16"; }
  std::string model() const { return directory + "/model"; }
  std::string rows() const { return directory + "/rows.jsonl"; }
  /// `--name value` of the given options, where they are set.
  std::vector<std::string> flags(const std::vector<std::string>& names) const;
};

/// Those of tests/golden/parity, or of the folder that HEARTH_PARITY_CASES names; on the devices of
/// HEARTH_TEST_DEVICES.
std::vector<RecordedCase> recorded_cases();
/// Those of adapters: tests/golden/lora, HEARTH_LORA_CASES.
std::vector<RecordedCase> recorded_lora_cases();

/// |a - b| / |b| over all elements; 0 when both differences and b are zero, infinite if b alone is.
double relative_error(const Elements& a, const Elements& b);
/// |a - b| / |b|.
double relative_error(double a, double b);

}  // namespace hearth::test

// A small model, rows, and the built program run beside them.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "support/program.h"
#include "support/test_paths.h"

namespace hearth::test {

inline std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline void write(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

/// Relative paths of the files below a folder, with their content.
inline std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    files[std::filesystem::relative(entry.path(), folder)] = content(entry.path());
  }
  return files;
}

inline std::vector<Json> lines_of(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(parse_json(line, path));
  return lines;
}

/// A model, rows, and the program run beside them.
struct Workplace {
  TemporaryDirectory d;

  Workplace() {
    write(d / "config.json", R"({"model_type": "qwen3_moe",
      "architectures": ["Qwen3MoeForCausalLM"], "vocab_size": 300, "hidden_size": 32,
      "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "head_dim": 8, "hidden_act": "silu",
      "max_position_embeddings": 128, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
      "tie_word_embeddings": false, "attention_bias": false, "num_experts": 4,
      "num_experts_per_tok": 2, "moe_intermediate_size": 16, "norm_topk_prob": true,
      "decoder_sparse_step": 1, "mlp_only_layers": [], "router_aux_loss_coef": 0.001,
      "use_sliding_window": false, "torch_dtype": "bfloat16"})");
    std::string rows;
    for (int i = 0; i < 12; ++i) {
      rows += R"({"text": "row number )" + std::to_string(i) + std::string(2 * i, 'x') + "\"}\n";
    }
    write(d / "rows.jsonl", rows);
    write(d / "eval.jsonl", rows.substr(0, rows.find('\n', rows.size() / 2) + 1));
    REQUIRE(run({"init", "--config", d / "config.json", "--out", d / "model"}).exit_code == 0);
  }

  ProgramResult run(std::vector<std::string> words, const std::string& input = "") const {
    ProgramResult result = run_program(test_binary(), words, input);
    // Said by every start in tests, and by none of a user's.
    if (result.err.starts_with("HEARTH_RATES=assumed")) {
      result.err.erase(0, result.err.find('\n') + 1);
    }
    return result;
  }
  /// Four steps of two micro-batches into d/OUT.
  std::vector<std::string> train(const std::string& out,
                                 const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{
        "train", "--model",      d / "model", "--data",    d / "rows.jsonl",
        "--out", d / out,        "--steps",   "4",         "--micro-batch",
        "2",     "--grad-accum", "2",         "--seq-len", "64",
        "--lr",  "1e-2",         "--threads", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  /// The same options for plan, printed as JSON.
  std::vector<std::string> plan(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = train("unused", more);
    words[0] = "plan";
    words.push_back("--json");
    return words;
  }
};

inline bool one_line(const ProgramResult& r, int code, const std::string& part) {
  INFO(r.err);
  return r.exit_code == code && r.err.starts_with("hearth: ") &&
         r.err.find('\n') == r.err.size() - 1 && r.err.find(part) != std::string::npos;
}

}  // namespace hearth::test

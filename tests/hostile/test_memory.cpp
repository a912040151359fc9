// Models that the machine has no memory for: refused before anything is read.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "hostile/hostile.h"

using namespace hearth;
using namespace hearth::test;

namespace {

/// Bytes of memory of this machine.
uint64_t memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  uint64_t kilobytes = 0;
  file >> word >> kilobytes;
  REQUIRE(word == "MemTotal:");
  return kilobytes * 1024;
}

/// The model with a vocabulary whose embedding and head are `bytes` each: a file of holes.
void grow_vocabulary(const Place& place, uint64_t bytes) {
  const uint64_t rows = bytes / (16 * sizeof(float));
  uint64_t total = 0;
  std::string text;
  place.change_header([&](Json& header) {
    for (auto& [name, entry] : header.as_object()) {
      if (name == "__metadata__") continue;
      JsonArray& shape = entry["shape"].as_array();
      if (name == "model.embed_tokens.weight" || name == "lm_head.weight") shape[0] = rows;
      uint64_t size = sizeof(float);
      for (const Json& n : shape) size *= n.as_uint();
      entry["data_offsets"] = JsonArray{total, total + size};
      total += size;
    }
    text = header.dump();
  });
  place.sparse("model/model.safetensors", raw_safetensors(text, ""), 8 + text.size() + total);
  place.write("model/config.json", config_with("vocab_size", std::to_string(rows)));
}

}  // namespace

TEST_CASE("hostile: what the machine has no memory for") {
  const auto twice = [](const Place& p) { grow_vocabulary(p, memory()); };
  const auto words = [](std::vector<std::string> more) {
    std::vector<std::string> all{"train",  "--quiet",    "--threads", "1",   "--model", "model",
                                 "--data", "rows.jsonl", "--out",     "run", "--steps", "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  run_table("weights beyond memory, eval", {{"twice", twice, {"of host memory"}, 2}}, eval_words());
  run_table("weights beyond memory, train",
            {{"twice", twice, {"of host memory", "no smaller change", "--cpu-memory"}, 2}},
            words({}));
  run_table("a budget below the program", {{"16 MB", [](const Place&) {}, {"--cpu-memory"}, 2}},
            words({"--cpu-memory", "16M"}));
}

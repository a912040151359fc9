// A gigabyte of rows through the program: bounded memory, and the same from the cache.
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <fstream>

#include "base/json.h"
#include "base/random.h"
#include "support/program.h"
#include "support/test_paths.h"

using namespace hearth;

namespace {

constexpr uint64_t kBytes = 1'000'000'000, kMostMemory = uint64_t{1} << 30;

// Texts and chats of 60 to 4,000 characters.
int64_t write_rows(const std::string& path) {
  const std::string words =
      "the model reads rows in pieces, nicht alles auf einmal; \\u4e16\\u754c \\\"quoted\\\" {x: "
      "1} ";
  const Random draws(1, RandomSite::sample);
  std::string long_text;
  while (long_text.size() < 4000) long_text += words;
  std::ofstream out(path, std::ios::binary);
  int64_t rows = 0;
  for (uint64_t bytes = 0; bytes < kBytes; ++rows) {
    const uint64_t draw = draws.bits(static_cast<uint64_t>(rows));
    const std::string text =
        std::to_string(draw) + long_text.substr(0, words.size() * (1 + draw % 40));
    const std::string row = draw % 2 == 0 ? "{\"text\": \"" + text + "\"}\n"
                                          : "{\"prompt\": \"" + std::to_string(rows) +
                                                "\", \"completion\": \"" + text + "\"}\n";
    out << row;
    bytes += row.size();
  }
  return rows;
}

}  // namespace

TEST_CASE("a gigabyte of rows is planned in a gibibyte, cold and from the cache", "[.long]") {
  const test::TemporaryDirectory d;
  const std::string rows = d / "rows.jsonl", model = d / "model";
  REQUIRE(setenv("XDG_CACHE_HOME", (d / "cache").c_str(), 1) == 0);
  std::ofstream(d / "config.json") << R"({"model_type": "mixtral", "vocab_size": 300,
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "num_local_experts": 4, "num_experts_per_tok": 2, "intermediate_size": 16,
    "max_position_embeddings": 512, "rms_norm_eps": 1e-6, "rope_theta": 10000.0})";
  const auto init = test::run_program(test::test_binary(),
                                      {"init", "--config", d / "config.json", "--out", model});
  INFO(init.err);
  REQUIRE(init.exit_code == 0);
  const int64_t written = write_rows(rows);
  std::string first;
  for (const char* when : {"cold", "from the cache"}) {
    INFO(when);
    const auto result =
        test::run_program(test::test_binary(),
                          {"plan", "--json", "--model", model, "--data", rows, "--seq-len", "512"});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    CHECK(result.peak_bytes <= kMostMemory);
    const Json plan = parse_json(result.out, "plan");
    CHECK(plan.find("data")->find("rows")->as_int() == written);
    const std::string data = plan.find("data")->dump();
    if (first.empty()) first = data;
    CHECK(data == first);
  }
}

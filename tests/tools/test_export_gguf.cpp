// export --gguf and model cards: what a user gets from each source, and what is refused.
#include <cstdlib>

#include "base/hash.h"
#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

TEST_CASE("export --gguf: a model, a run, a saved state and a merged adapter") {
  const Workplace w;
  REQUIRE(w.run(w.train("full")).exit_code == 0);
  REQUIRE(w.run(w.train("lora", {"--method", "lora"})).exit_code == 0);
  REQUIRE(w.run({"export", "--model", w.d / "model", "--adapter", w.d / "lora/adapter", "--out",
                 w.d / "merged"})
              .exit_code == 0);
  int number = 0;
  const auto made = [&](std::vector<std::string> from) {
    const std::string out = w.d / ("files/" + std::to_string(number++) + ".gguf");
    from.insert(from.begin(), "export");
    from.insert(from.end(), {"--gguf", "q8_0", "--out", out});
    const ProgramResult r = w.run(from);
    INFO(r.err);
    CHECK(r.exit_code == 0);
    const std::string text = content(out);
    CHECK(text.starts_with("GGUF"));
    // Names differ by directory, and with their lengths the padding behind the list of tensors.
    const size_t begin = text.find("general.size_label"), end = text.find("token_embd.weight");
    REQUIRE(begin < end);
    REQUIRE(end < text.size() - 30000);
    return digest_of(text.substr(begin, end - begin) + text.substr(text.size() - 30000)).hex();
  };
  const std::string base = made({"--model", w.d / "model"});
  const std::string full = made({"--model", w.d / "full/model"});
  CHECK(full != base);
  CHECK(made({"--model", w.d / "full"}) == full);
  CHECK(made({"--from-state", w.d / "full"}) == full);
  const std::string merged = made({"--model", w.d / "merged"});
  CHECK(merged != base);
  CHECK(made({"--model", w.d / "model", "--adapter", w.d / "lora/adapter"}) == merged);
  CHECK(made({"--model", w.d / "lora"}) == merged);
  CHECK(made({"--from-state", w.d / "lora"}) == merged);

  const std::string there = w.d / "files/0.gguf";
  CHECK(one_line(w.run({"export", "--model", w.d / "model", "--gguf", "f16", "--out", there}), 2,
                 "exists already"));
  CHECK(one_line(w.run({"export", "--gguf", "f16", "--out", w.d / "x"}), 2,
                 "expected a run as --model, an --adapter or a --from-state, found none"));
  CHECK(one_line(w.run({"export", "--model", w.d / "model", "--gguf", "q4_0", "--out", w.d / "x"}),
                 2, "--gguf"));
  fs::remove(w.d / "model/tokenizer.json");
  const ProgramResult bare =
      w.run({"export", "--model", w.d / "model", "--gguf", "f16", "--out", w.d / "bare.gguf"});
  CHECK(bare.exit_code == 0);
  CHECK(bare.err.find("no tokenizer.json") != std::string::npos);
}

TEST_CASE("model cards: base, data, options and losses, and no path") {
  const Workplace w;
  write(w.d / "model/README.md",
        "---\nlicense: apache-2.0\nlicense_link: https://x\ntags:\n- a\n---\n# The base\n");
  const std::string repository = w.d / "hub/models--some-org--Tiny.MoE";
  fs::create_directories(repository + "/refs");
  fs::create_directories(repository + "/snapshots");
  write(repository + "/refs/main", "abc123\n");
  fs::rename(w.d / "model", repository + "/snapshots/abc123");
  const std::string rows = w.d / "hub/datasets--some-org--rows";  // of the hub, by its name
  fs::create_directories(rows + "/refs");
  fs::create_directories(rows + "/snapshots/def456");
  write(rows + "/refs/main", "def456");
  fs::copy(w.d / "rows.jsonl", rows + "/snapshots/def456/train.jsonl");
  ::setenv("HF_HUB_CACHE", (w.d / "hub").c_str(), 1);
  for (const std::string method : {"full", "lora"}) {
    std::vector<std::string> words =
        w.train(method, {"--method", method, "--eval-data", w.d / "eval.jsonl", "--eval-at-start",
                         "--data", "some-org/rows"});
    words[2] = "some-org/Tiny.MoE";
    REQUIRE(w.run(words).exit_code == 0);
    const std::string result = w.d / (method + (method == "full" ? "/model" : "/adapter"));
    const std::string card = content(result + "/README.md");
    INFO(card);
    CHECK(card.starts_with("---\nbase_model: \"some-org/Tiny.MoE\"\nlibrary_name: " +
                           std::string(method == "full" ? "transformers" : "peft") +
                           "\nlicense: apache-2.0\nlicense_link: https://x\n"));
    for (const char* part :
         {"| data | rows.jsonl, some-org/rows |", "| evaluation data | eval.jsonl |",
          "| `--lr` | 0.01 |", "| training loss, first and last steps | ",
          "| evaluation loss before training | ", "| evaluation loss after training | ",
          "| version | hearth "}) {
      INFO(part);
      CHECK(card.find(part) != std::string::npos);
    }
    CHECK(card.find("The base") == std::string::npos);
    CHECK(card.find(w.d.path()) == std::string::npos);
    REQUIRE(
        w.run({"export", "--from-state", w.d / method, "--out", w.d / (method + "-e")}).exit_code ==
        0);
    CHECK(content(w.d / (method + "-e/README.md")) == card);
  }
  REQUIRE(w.run({"export", "--model", "some-org/Tiny.MoE", "--adapter", w.d / "lora/adapter",
                 "--out", w.d / "merged"})
              .exit_code == 0);
  const std::string merged = content(w.d / "merged/README.md");
  CHECK(merged.find("base_model: \"some-org/Tiny.MoE\"\n") != std::string::npos);
  CHECK(merged.find("| data | rows.jsonl, some-org/rows |") != std::string::npos);
  ::unsetenv("HF_HUB_CACHE");

  // A local directory is no name of the hub.
  fs::create_directories(w.d / "plain");
  fs::copy(repository + "/snapshots/abc123", w.d / "plain/base");
  std::vector<std::string> words = w.train("local");
  words[2] = w.d / "plain/base";
  REQUIRE(w.run(words).exit_code == 0);
  const std::string card = content(w.d / "local/model/README.md");
  CHECK(card.find("base_model") == std::string::npos);
  CHECK(card.find(w.d.path()) == std::string::npos);
  CHECK(card.find("`base`") != std::string::npos);
}

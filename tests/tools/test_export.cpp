// export --from-state: what a user gets, and what is refused.
#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

TEST_CASE("export: saved state as the checkpoint that the run wrote") {
  const Workplace w;
  const ProgramResult trained = w.run(w.train("run", {"--freeze", "*embed*", "--save-every", "2"}));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const auto model = files_below(w.d / "run/model");
  const auto before = files_below(w.d / "run");
  const auto base = files_below(w.d / "model");
  CHECK(model != base);

  // From the run directory and from a state, the last one: the bytes of the result.
  for (const std::string from : {"run", "run/state/step-00000004", "run/state/step-00000004/"}) {
    const ProgramResult r = w.run({"export", "--from-state", w.d / from, "--out", w.d / "e/x"});
    INFO(from << ": " << r.err);
    CHECK(r.exit_code == 0);
    CHECK(r.out.empty());
    CHECK(files_below(w.d / "e/x") == model);
    fs::remove_all(w.d / "e");
  }
  CHECK(w.run({"export", "--from-state", w.d / "run/state/step-00000002", "--out", w.d / "e",
               "--model", w.d / "model"})
            .exit_code == 0);
  const auto earlier = files_below(w.d / "e");
  CHECK(earlier != model);
  CHECK(earlier.at("config.json") == model.at("config.json"));
  CHECK(w.run({"eval", "--model", w.d / "e", "--data", w.d / "rows.jsonl"}).exit_code == 0);

  // Refusals: nothing is written, inputs stay as they are.
  const auto with = [&](const std::string& from, const std::string& out,
                        const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{"export", "--from-state", w.d / from, "--out", w.d / out};
    words.insert(words.end(), more.begin(), more.end());
    return w.run(words);
  };
  CHECK(one_line(with("run", "e"), 2, "exists already"));
  CHECK(one_line(with("run", "run/exported"), 2, "lies in"));
  CHECK(one_line(with("run", "run/state/step-00000004/x"), 2, "lies in"));
  CHECK(
      one_line(with("run", "f", {"--adapter", "a"}), 2, "--adapter and --from-state, found both"));
  for (const char* name : {"model", "run", "run/model"}) {
    CHECK(one_line(w.run({"export", "--model", w.d / name, "--out", w.d / "f"}), 2,
                   "is a checkpoint already; copy it"));
  }
  CHECK(one_line(with("model", "f"), 3, "no saved state"));
  CHECK(one_line(with("nothing", "f"), 3, "nothing"));
  CHECK(one_line(with("run", "f", {"--model", w.d / "nothing"}), 3, "--model"));
  REQUIRE(w.run({"init", "--config", w.d / "config.json", "--out", w.d / "other", "--seed", "9"})
              .exit_code == 0);
  CHECK(one_line(with("run", "f", {"--model", w.d / "other"}), 3, "has other content"));
  CHECK_FALSE(fs::exists(w.d / "f"));
  CHECK(files_below(w.d / "run") == before);
  CHECK(files_below(w.d / "model") == base);

  // A damaged state is passed over in a run directory, and refused by name.
  fs::resize_file(w.d / "run/state/step-00000004/weights.safetensors", 500);
  CHECK(one_line(with("run/state/step-00000004", "f"), 4, "weights.safetensors"));
  const ProgramResult older = with("run", "f");
  CHECK(older.exit_code == 0);
  CHECK(older.err.find("passed over") != std::string::npos);
  CHECK(files_below(w.d / "f") == earlier);
}

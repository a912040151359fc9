// The built program under each instruction set that this machine has (HEARTH_ISA).
#include <algorithm>
#include <map>
#include <set>

#include "support/isa.h"
#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;

namespace {

std::vector<std::string> isas(const Workplace& w) {
  return isas_of_machine([&] { return w.run({"--version"}).exit_code == 0; });
}

/// What `--version` says of it, by the value of HEARTH_ISA.
const std::map<std::string, std::string> kShown = {
    {"avx2", "ISA        avx2, bf16 products in f32"},
    {"avx512", "ISA        avx512_core, bf16 products in f32"},
    {"avx512_bf16", "ISA        avx512_core_bf16, bf16 products in hardware"},
    {"amx", "ISA        avx512_core_amx, bf16 products in hardware"}};

Json event(const std::string& run, const std::string& name) {
  for (const Json& line : lines_of(run + "/journal.jsonl")) {
    if (line.find("event")->as_string() == name) return line;
  }
  return Json();
}

}  // namespace

TEST_CASE("HEARTH_ISA: shown by --version, refused above what the machine has") {
  const Workplace w;
  const std::vector<std::string> all = isas(w);
  REQUIRE_FALSE(all.empty());
  for (const auto& [name, shown] : kShown) {
    const WithVariable isa("HEARTH_ISA", name);
    INFO(name);
    const ProgramResult r = w.run({"--version"});
    if (std::find(all.begin(), all.end(), name) != all.end()) {
      CHECK(r.out.find(shown + "\n") != std::string::npos);
    } else {
      CHECK(one_line(r, 2, "HEARTH_ISA '" + name + "': this machine has " + all.back()));
      CHECK(one_line(w.run(w.train("refused")), 2, "HEARTH_ISA"));
    }
  }
  const WithVariable isa("HEARTH_ISA", "sse");
  CHECK(one_line(w.run(w.train("refused")), 2, "expected one of avx2, avx512, avx512_bf16, amx"));
  CHECK_FALSE(std::filesystem::exists(w.d / "refused"));
  CHECK(w.run({"train", "--help"}).exit_code == 0);
}

TEST_CASE("HEARTH_ISA: what auto computes in, and equal bits without bf16 products") {
  const Workplace w;
  std::map<std::string, std::set<std::string>> roots;  // by compute type
  for (const std::string& name : isas(w)) {
    const WithVariable isa("HEARTH_ISA", name);
    INFO(name);
    const ProgramResult r = w.run(w.train("auto-" + name, {"--digest-every", "1"}));
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    const bool fast = name == "avx512_bf16" || name == "amx";
    CHECK(event(w.d / ("auto-" + name), "plan").find("compute_dtype")->as_string() ==
          (fast ? "bf16" : "f32"));
    const ProgramResult in_f32 =
        w.run(w.train("f32-" + name, {"--digest-every", "1", "--compute-dtype", "f32"}));
    REQUIRE(in_f32.exit_code == 0);
    const auto root = [&](const std::string& run) {
      return lines_of(w.d / (run + "/metrics.jsonl")).back().find("state_digest")->as_string();
    };
    roots["f32"].insert(root("f32-" + name));
    if (!fast) roots["f32"].insert(root("auto-" + name));
    // Asked for by name, bf16 runs everywhere; without its products that is said.
    const ProgramResult slow = w.run(w.train("bf16-" + name, {"--compute-dtype", "bf16"}));
    CHECK(slow.exit_code == 0);
    CHECK((slow.err.find("has no bf16 products") != std::string::npos) == !fast);
  }
  CHECK(roots["f32"].size() == 1);
}

TEST_CASE("HEARTH_ISA: a resume under another one goes on, and says what no longer holds") {
  const Workplace w;
  const std::vector<std::string> all = isas(w);
  if (all.size() < 2) SKIP("one instruction set");
  const auto train = [&](const std::string& name, const char* steps) {
    const WithVariable isa("HEARTH_ISA", name);
    return w.run({"train", "--model", w.d / "model", "--data", w.d / "rows.jsonl", "--out",
                  w.d / "run", "--steps", steps, "--allow-change", "steps", "--seq-len", "64",
                  "--compute-dtype", "f32", "--grad-accum", "2", "--threads", "2"});
  };
  REQUIRE(train(all[0], "2").exit_code == 0);
  const ProgramResult r = train(all[1], "4");
  INFO(r.err);
  CHECK(r.exit_code == 0);
  CHECK(r.err.find("machine instructions: 'avx2' -> 'avx512_core'") != std::string::npos);
}

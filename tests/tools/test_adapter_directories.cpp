// inspect and verify of adapters, and of runs that make them.
#include <algorithm>

#include "tools/workplace.h"

using namespace hearth;
using namespace hearth::test;
namespace fs = std::filesystem;

namespace {

Json json_of(const ProgramResult& r) {
  INFO(r.err);
  REQUIRE(r.exit_code == 0);
  return parse_json(r.out, "output");
}

}  // namespace

TEST_CASE("inspect and verify: an adapter and the run that made it") {
  const Workplace w;
  const ProgramResult trained =
      w.run(w.train("run", {"--method", "lora", "--lora-r", "4", "--lora-alpha", "8", "--expert-r",
                            "2", "--trainable", "*norm*", "--save-every", "2"}));
  INFO(trained.err);
  REQUIRE(trained.exit_code == 0);
  const std::string adapter = w.d / "run/adapter";

  const Json seen = json_of(w.run({"inspect", adapter, "--json"}));
  CHECK(seen.find("kind")->as_string() == "adapter");
  CHECK(seen.find("rank")->as_int() == 2);
  CHECK(seen.find("alpha")->as_double() == 8);
  CHECK(seen.find("scale")->as_double() == 4);
  CHECK(seen.find("expert_layout")->as_string() == "per-expert");
  CHECK(seen.find("base")->as_string() == w.d / "model");
  CHECK(seen.find("target_modules")->as_array().size() == 7);
  CHECK(seen.find("modules_to_save")->as_array().size() == 9);
  const Json base = json_of(w.run({"inspect", w.d / "model", "--digest", "--json"}));
  CHECK(seen.find("base_digest")->as_string() == base.find("root")->as_string());
  // Attention: q 32x32, k and v 16x32, o 32x32 of rank 4; experts: 3 matrices 16x32 of rank 2.
  const std::map<std::string, std::pair<int64_t, int64_t>> groups = {
      {"attention", {2 * 8, 2 * 4 * (64 + 48 + 48 + 64)}},
      {"experts", {2 * 4 * 6, 2 * 4 * 3 * 2 * 48}},
      {"norms", {9, 2 * (2 * 32 + 2 * 8) + 32}}};
  REQUIRE(seen.find("groups")->as_array().size() == groups.size());
  int64_t parameters = 0;
  for (const Json& group : seen.find("groups")->as_array()) {
    const auto& [tensors, size] = groups.at(group.find("name")->as_string());
    INFO(group.dump());
    CHECK(group.find("tensors")->as_int() == tensors);
    CHECK(group.find("parameters")->as_int() == size);
    CHECK(group.find("bytes")->as_int() == 4 * size);
    parameters += size;
  }
  CHECK(seen.find("parameters")->as_int() == parameters);
  const ProgramResult shown = w.run({"inspect", adapter});
  CHECK(shown.out.find("rank 2, alpha 8, scale 4; experts per-expert") != std::string::npos);
  CHECK(shown.out.find(base.find("root")->as_string()) != std::string::npos);

  // Digests are of content: not of the place, nor of the notes beside the weights.
  const Json digest = json_of(w.run({"inspect", adapter, "--digest", "--json"}));
  CHECK(digest.find("digest")->as_object().size() == 73);
  fs::copy(adapter, w.d / "copy");
  CHECK(json_of(w.run({"inspect", w.d / "copy", "--digest", "--json"})).dump() == digest.dump());
  const std::string root = digest.find("root")->as_string();
  const ProgramResult whole = w.run({"verify", adapter});
  CHECK(whole.exit_code == 0);
  CHECK(whole.out.find("adapter of 73 tensors, whole, digest " + root) != std::string::npos);

  const Json run = json_of(w.run({"inspect", w.d / "run", "--json"}));
  CHECK(run.find("result")->as_string() == "adapter");
  CHECK(run.find("trained_parameters")->as_int() == parameters);
  CHECK(w.run({"verify", w.d / "run"}).out.find(root) != std::string::npos);
  CHECK(one_line(w.run({"inspect", w.d / "run", "--digest"}), 2, "/adapter"));
  CHECK(one_line(w.run({"inspect", adapter, "--trainable", "*"}), 2, "is not a checkpoint"));

  // Damage of the adapter is 3, of a state 4.
  const std::string file = w.d / "copy/adapter_model.safetensors", good = content(file);
  write(file, good.substr(0, good.size() - 4) + std::string("\0\0\xc0\x7f", 4));
  CHECK(one_line(w.run({"verify", w.d / "copy"}), 3, "not finite"));
  write(file, good.substr(0, good.size() - 4));
  CHECK(one_line(w.run({"verify", w.d / "copy"}), 3, "adapter_model.safetensors"));
  CHECK(one_line(w.run({"inspect", w.d / "copy"}), 3, "adapter_model.safetensors"));
  write(file, good);
  std::string settings = content(w.d / "copy/adapter_config.json");
  settings.replace(settings.find("\"use_dora\": false"), 17, "\"use_dora\": true ");
  write(w.d / "copy/adapter_config.json", settings);
  CHECK(one_line(w.run({"verify", w.d / "copy"}), 3, "use_dora"));
  CHECK(one_line(w.run({"inspect", w.d / "copy"}), 3, "use_dora"));
  fs::remove(w.d / "copy/adapter_config.json");
  CHECK(one_line(w.run({"verify", w.d / "copy"}), 3, "adapter_config.json"));
  // Stored in a type that adapters do not have.
  const size_t type = good.find("\"F32\"");
  write(w.d / "run/adapter/adapter_model.safetensors",
        std::string(good).replace(type, 5, "\"I32\""));
  for (const char* more : {"--json", "--digest"}) {
    CHECK(one_line(w.run({"inspect", adapter, more}), 3, "is stored as I32"));
  }
  CHECK(one_line(w.run({"verify", w.d / "run"}), 3, "is stored as I32"));
  fs::resize_file(w.d / "run/state/step-00000004/moment1.safetensors", 500);
  CHECK(one_line(w.run({"verify", w.d / "run"}), 4, "moment1.safetensors"));
}

TEST_CASE("export: the state of adapters as the directory that the run writes") {
  const Workplace w;
  const std::vector<std::string> lora = {"--method",       "lora",
                                         "--lora-r",       "4",
                                         "--expert-r",     "2",
                                         "--trainable",    "*norm*",
                                         "--trainable",    "lm_head.weight",
                                         "--lora-targets", "attention,experts,router",
                                         "--save-every",   "2",
                                         "--keep",         "9"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), lora.begin(), lora.end());
    return more;
  };
  REQUIRE(w.run(w.train("run", lora)).exit_code == 0);
  const auto made = files_below(w.d / "run/adapter");
  const auto base = files_below(w.d / "model");
  const auto exported = [&](const std::string& from, const std::vector<std::string>& more = {}) {
    fs::remove_all(w.d / "e");
    std::vector<std::string> words{"export", "--from-state", w.d / from, "--out", w.d / "e"};
    words.insert(words.end(), more.begin(), more.end());
    const ProgramResult r = w.run(words);
    INFO(r.err);
    REQUIRE(r.exit_code == 0);
    return files_below(w.d / "e");
  };
  const auto same = [](const std::map<std::string, std::string>& x,
                       const std::map<std::string, std::string>& y) {
    for (const char* name : {"adapter_model.safetensors", "adapter_config.json"}) {
      if (x.at(name) != y.at(name)) return false;
    }
    return x.size() == y.size();
  };
  CHECK(same(exported("run"), made));
  CHECK_FALSE(same(exported("run/state/step-00000002"), made));
  CHECK(w.run({"verify", w.d / "e"}).exit_code == 0);

  // An earlier state: what a run of that many steps writes, but for the schedule of the rate; a run
  // in the other layout, and the layout by option.
  const std::vector<std::string> constant = {"--lr-schedule", "constant", "--adapter-layout",
                                             "fused"};
  REQUIRE(w.run(w.train("fused", with(constant))).exit_code == 0);
  std::vector<std::string> two = w.train("two", with(constant));
  two[static_cast<size_t>(std::find(two.begin(), two.end(), "--steps") - two.begin()) + 1] = "2";
  REQUIRE(w.run(two).exit_code == 0);
  CHECK(same(exported("fused"), files_below(w.d / "fused/adapter")));
  CHECK(same(exported("fused/state/step-00000002"), files_below(w.d / "two/adapter")));
  CHECK(same(exported("run", {"--adapter-layout", "per-expert"}), made));
  const auto packed = exported("run", {"--adapter-layout", "fused"});
  CHECK_FALSE(same(packed, made));

  // Trained on from an adapter of another scale: scales are those of the file.
  REQUIRE(w.run(w.train("on", {"--method", "lora", "--adapter", w.d / "e"})).exit_code == 0);
  CHECK(same(exported("on"), files_below(w.d / "on/adapter")));

  // Another base, no directory, a place that is taken.
  REQUIRE(w.run({"init", "--config", w.d / "config.json", "--out", w.d / "other", "--seed", "9"})
              .exit_code == 0);
  CHECK(one_line(
      w.run({"export", "--from-state", w.d / "run", "--out", w.d / "f", "--model", w.d / "other"}),
      3, "has other content"));
  CHECK_FALSE(fs::exists(w.d / "f"));
  CHECK(one_line(w.run({"export", "--from-state", w.d / "run", "--out", w.d / "e"}), 2,
                 "exists already"));
  CHECK(files_below(w.d / "model") == base);
}

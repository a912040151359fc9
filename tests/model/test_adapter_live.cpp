// Not a test of its own: writes and merges what scripts/parity/adapters.py asks for, which compares
// it with PEFT. HEARTH_ADAPTER_JOB names a JSON file.
#include <cstdlib>

#include "adapter_fixture.h"
#include "peft/write.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("adapters: a job of the live check", "[.live]") {
  const char* path = std::getenv("HEARTH_ADAPTER_JOB");
  REQUIRE(path != nullptr);
  const Json job = read_json(path);
  const auto text = [&](const char* key) { return job.find(key)->as_string(); };
  const Checkpoint base(text("model"));
  std::optional<AdapterTable> fresh;
  std::optional<LoadedAdapter> loaded;
  if (job.find("read") != nullptr) {
    AdapterReadOptions options;
    options.fused_as_peft = job.find("fused_as_peft") != nullptr;
    loaded.emplace(read_adapter(text("read"), base, options));
  } else {
    AdapterOptions options;
    options.rank = job.find("rank")->as_int();
    options.expert_rank = job.find("expert_rank")->as_int();
    options.alpha = job.find("alpha")->as_double();
    options.rslora = job.find("rslora")->as_bool();
    options.targets.clear();
    for (const Json& target : job.find("targets")->as_array()) {
      options.targets.push_back(target.as_string());
    }
    for (const Json& layer : job.find("experts")->as_array()) {
      std::vector<int32_t> chosen;
      for (const Json& e : layer.as_array()) chosen.push_back(static_cast<int32_t>(e.as_int()));
      options.experts.push_back(chosen);
    }
    std::vector<std::string> trained;
    for (const Json& glob : job.find("trained")->as_array()) trained.push_back(glob.as_string());
    fresh.emplace(make_adapters(base, options, 3, trained));
  }
  const ParameterTable& table = fresh ? fresh->table : loaded->table;
  if (job.find("write") != nullptr) {
    AdapterFileOptions options;
    if (text("layout") == "fused") options.layout = AdapterLayout::fused;
    write_adapter(table, base, options, text("write"));
  }
  if (job.find("merge") != nullptr) {
    write_merged(table, base, Pool(2), text("merge"));
  }
}

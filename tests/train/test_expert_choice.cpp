// --experts top:25%: a layer's most routed experts get adapters, and no others.
#include <catch2/catch_test_macros.hpp>

#include "base/json.h"
#include "peft/write.h"
#include "setup/row_requests.h"
#include "support/stored_tensors.h"
#include "train/expert_choice.h"
#include "train/export.h"
#include "train/lora_fixture.h"
#include "train/session.h"
#include "train/training_data.h"

namespace hearth::test {
namespace {

TrainConfig half(const LoraFixture& f, const std::string& out) {
  TrainConfig c = f.lora(out);
  c.experts_top = 50;
  c.micro_batch = c.grad_accum = 1;  // the sample is an epoch, each row once
  c.recorded.push_back({"experts", "top:50%", false});
  return c;
}

/// Tokens by layer and expert of all rows, by an evaluation of the base.
ExpertCounts counts_of(const TrainConfig& config) {
  RecordingReporter reporter;
  const std::shared_ptr<const OpenedModel> opened = open_model(config);
  const TrainingData data(config, *opened, reporter);
  EvalBatches batches(data.rows.training(), sampler_options(config));
  PlanRequest request;
  request.longest = data.rows.training().longest();
  request.eval_tokens = batches.max_tokens_per_micro_batch();
  const PlacedModel model = place_model(untrained_model(opened, config), request);
  Session session(model);
  session.read_weights();
  return session.evaluate(batches).expert_tokens;
}

std::vector<Json> events(const LoraFixture& f, const std::string& out, const std::string& name) {
  std::vector<Json> found;
  for (const std::string& line : f.lines(out + "/journal.jsonl")) {
    const Json event = parse_json(line, "journal");
    if (event.find("event")->as_string() == name) found.push_back(event);
  }
  return found;
}

bool is_zero(const std::string& data) { return data.find_first_not_of('\0') == std::string::npos; }

}  // namespace

TEST_CASE("chosen experts: those with most tokens, the lower index on ties, rounded up") {
  const ExpertCounts counts = {{}, {3, 9, 9, 1, 9}, {0, 0, 0, 0, 1}};
  const ChosenExperts some = choose_experts(counts, 25, 100);
  CHECK(some.experts == ExpertChoice{{}, {1, 2}, {0, 4}});
  CHECK(choose_experts(counts, 20, 100).experts == ExpertChoice{{}, {1}, {4}});
  CHECK(choose_experts(counts, 0.1, 100).experts == ExpertChoice{{}, {1}, {4}});
  CHECK(choose_experts(counts, 41, 100).experts == ExpertChoice{{}, {1, 2, 4}, {0, 1, 4}});
  CHECK(choose_experts(counts, 100, 100).experts[1].size() == 5);
  // 28 % of 25 are 7, although the product is a little more in binary.
  CHECK(choose_experts({std::vector<double>(25, 1)}, 28, 1).experts[0].size() == 7);
  const Json& record = some.record;
  CHECK(record.find("option")->as_string() == "top:25%");
  CHECK(record.find("sample_tokens")->as_int() == 100);
  CHECK(record.find("routed_tokens")->as_int() == 32);
  CHECK(record.find("share")->as_double() == 19.0 / 32);
  const Json& layer = record.find("layers")->as_array().at(0);
  CHECK(layer.find("layer")->as_int() == 1);
  CHECK(layer.find("share")->as_double() == 18.0 / 31);
  CHECK(layer.find("experts")->dump() == "[1, 2]");
}

TEST_CASE("chosen experts: those of the data, in the file and after a resume") {
  LoraFixture f;
  const TrainConfig config = half(f, "whole");
  const ChosenExperts expected = choose_experts(counts_of(config), 50, 0);
  const std::vector<int32_t>& chosen = expected.experts.at(1);  // layer 0 is dense
  REQUIRE(chosen.size() == 3);
  CHECK(chosen != std::vector<int32_t>{0, 1, 2});  // not what stands for it in plans

  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  const std::vector<Json> told = events(f, "whole", "experts");
  REQUIRE(told.size() == 1);
  const Json& layers = *told[0].find("layers");
  REQUIRE(layers.as_array().size() == 1);
  CHECK(layers.dump() == expected.record.find("layers")->dump());
  CHECK(told[0].find("routed_tokens")->as_int() == 2 * told[0].find("sample_tokens")->as_int());
  const auto said = [](const RecordingReporter& of, const std::string& part) {
    return std::any_of(of.notes.begin(), of.notes.end(), [&](const std::string& note) {
      return note.find(part) != std::string::npos;
    });
  };
  CHECK(said(reporter, "experts: 3 of 6 per layer get adapters ("));
  CHECK(said(reporter, "with zeros for experts without an adapter"));
  CHECK(said(reporter, "first pass"));

  // All experts stand in the file; those left out as zeros, the others moved.
  std::map<int32_t, int> zeros;
  for (const StoredTensor& tensor : load(f.dir / "whole/adapter/adapter_model.safetensors")) {
    const std::string& name = tensor.entry.name;
    const size_t at = name.find(".experts.");
    if (at == std::string::npos) continue;
    zeros[std::stoi(name.substr(at + 9))] += is_zero(tensor.data);
  }
  REQUIRE(zeros.size() == 6);
  for (const auto& [expert, count] : zeros) {
    const bool is_chosen = std::find(chosen.begin(), chosen.end(), expert) != chosen.end();
    CHECK(count == (is_chosen ? 0 : 6));
  }
  // The size that was planned for is that of the file, but for its header.
  const auto bytes =
      static_cast<uint64_t>(file_info(f.dir / "whole/adapter/adapter_model.safetensors").size);
  const TrainedModel model = trained_model(open_model(config), config);
  const uint64_t planned =
      adapter_bytes(model.table, model.opened->checkpoint->family(), AdapterLayout::per_expert);
  CHECK(planned < bytes);
  CHECK(planned + 20000 > bytes);

  // A resume takes the choice of the state, without a pass; in another directory, too.
  TrainConfig parts = half(f, "parts");
  parts.save_every.steps = 2;
  REQUIRE(f.run_until(parts, 3) == ExitCode::stopped);
  RecordingReporter again;
  parts.threads = 3;
  REQUIRE(train(parts, again) == ExitCode::done);
  CHECK_FALSE(said(again, "first pass"));
  CHECK(said(again, "experts: 3 of 6"));
  CHECK(events(f, "parts", "experts").size() == 1);
  CHECK(f.root("parts") == f.root("whole"));
  CHECK(f.files("parts/adapter") == f.files("whole/adapter"));
  TrainConfig moved = half(f, "moved");
  moved.resume = ResumeMode::from_directory;
  moved.resume_from = f.dir / "parts/state/step-00000004";
  RecordingReporter third;
  REQUIRE(train(moved, third) == ExitCode::done);
  CHECK_FALSE(said(third, "first pass"));
  CHECK(events(f, "moved", "experts").size() == 1);
  CHECK(f.root("moved") == f.root("whole"));
  export_state({f.dir / "moved", f.dir / "base", f.dir / "exported"}, reporter);
  CHECK(f.files("exported").at("adapter_model.safetensors") ==
        f.files("whole/adapter").at("adapter_model.safetensors"));

  // A run that left no state: its journal tells, so that nothing is done again.
  TrainConfig stateless = half(f, "stateless");
  stateless.final_state = false;
  REQUIRE(f.run(stateless) == ExitCode::done);
  RecordingReporter ended;
  REQUIRE(train(stateless, ended) == ExitCode::done);
  CHECK(said(ended, "already finished"));
  CHECK_FALSE(said(ended, "first pass"));

  // Another share: refused as any option; nothing is computed for it.
  TrainConfig other = half(f, "whole");
  other.experts_top = 20;
  other.recorded.back().value = "top:20%";
  RecordingReporter refused;
  CHECK(raised_by([&] { train(other, refused); }).code == ExitCode::usage);
  CHECK_FALSE(said(refused, "first pass"));
}

TEST_CASE("chosen experts: what cannot be chosen is refused, a plan needs no data") {
  LoraFixture f;
  TrainConfig config = half(f, "run");
  CHECK(plan_of(config).fits);
  config.data.clear();
  CHECK(plan_of(config).fits);
  config = half(f, "run");
  config.lora_targets = {"attention"};
  Raised raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--experts"));
  config = half(f, "run");
  config.method = Method::full;
  raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--method lora"));
  REQUIRE(f.run(half(f, "first")) == ExitCode::done);
  config = half(f, "run");
  config.adapter = f.dir / "first/adapter";
  raised = raised_by([&] { f.run(config); });
  CHECK(raised.code == ExitCode::usage);
  CHECK(raised.says("--adapter"));
  CHECK(file_info(config.out).kind == FileKind::none);
}

}  // namespace hearth::test

// Runs that train adapters: stopped and resumed they end with the same bits, what they stand on is
// checked, and what is trained beside adapters is treated as they are.
#include <catch2/catch_test_macros.hpp>
#include <cmath>

#include "checkpoint/checkpoint_init.h"
#include "support/has.h"
#include "support/stored_tensors.h"
#include "train/export.h"
#include "train/lora_fixture.h"

namespace hearth::test {
namespace {

std::map<std::string, std::string> tensors_of(const std::string& file) {
  std::map<std::string, std::string> out;
  for (const StoredTensor& tensor : load(file)) out[tensor.entry.name] = tensor.data;
  return out;
}

TEST_CASE("adapters in a run: stopped and resumed it ends with the same bits") {
  LoraFixture f;
  const auto base = f.files("base");
  for (const ComputeChoice compute : {ComputeChoice::f32, ComputeChoice::bf16}) {
    const std::string type = compute == ComputeChoice::f32 ? "-f32" : "-bf16";
    TrainConfig whole = f.lora("whole" + type), parts = f.lora("parts" + type);
    whole.compute = parts.compute = compute;
    REQUIRE(f.run(whole) == ExitCode::done);
    parts.save_every.steps = 2;
    REQUIRE(f.run_until(parts, 3) == ExitCode::stopped);
    parts.threads = 2;
    REQUIRE(f.run_until(parts, 4) == ExitCode::stopped);
    parts.threads = 3;
    REQUIRE(f.run(parts) == ExitCode::done);
    CHECK(f.root("parts" + type) == f.root("whole" + type));
    CHECK(f.files("parts" + type + "/adapter") == f.files("whole" + type + "/adapter"));
    CHECK(f.lines("parts" + type + "/metrics.jsonl").size() == 6);
  }
  CHECK(f.root("whole-f32") != f.root("whole-bf16"));
  CHECK(f.files("base") == base);

  // Dropout belongs to step and place, so it must differ from none and from another seed's.
  TrainConfig none = f.lora("none");
  none.compute = ComputeChoice::f32;
  none.lora_dropout = 0;
  REQUIRE(f.run(none) == ExitCode::done);
  CHECK(f.root("none") != f.root("whole-f32"));
}

TEST_CASE("adapters in a run: it is evaluated as the adapter that it writes is") {
  LoraFixture f;
  TrainConfig config = f.lora("run");
  config.steps = 2;
  config.compute = ComputeChoice::f32;
  config.eval_data = config.data;
  REQUIRE(f.run(config) == ExitCode::done);
  double in_run = 0;
  for (const std::string& text : f.lines("run/journal.jsonl")) {
    const Json line = parse_json(text, "journal");
    if (line.find("event")->as_string() == "eval") in_run = line.find("loss")->as_double();
  }
  config.adapter = f.dir / "run/adapter";
  RecordingReporter reporter;
  const double alone = evaluate(config, reporter).find("loss")->as_double();
  INFO(in_run << " and " << alone);
  CHECK(std::abs(in_run - alone) < 1e-6 * alone);
}

TEST_CASE("adapters in a run: a state whose save was cut off is passed over") {
  LoraFixture f;
  REQUIRE(f.run(f.lora("whole")) == ExitCode::done);
  TrainConfig config = f.lora("run");
  config.save_every.steps = 2;
  REQUIRE(f.run_until(config, 3) == ExitCode::stopped);  // states of steps 2 and 3
  const std::string path = f.dir / "run/state/step-00000003/weights.safetensors";
  const std::string content = read_file(path);
  f.write(path, content.substr(0, content.size() / 2));
  RecordingReporter reporter;
  REQUIRE(train(config, reporter) == ExitCode::done);
  CHECK(reporter.steps.front().step == 3);
  CHECK(f.root("run") == f.root("whole"));
  CHECK(f.result("run") == f.result("whole"));
}

TEST_CASE("adapters in a run: another base is refused, naming the file") {
  LoraFixture f;
  REQUIRE(f.run_until(f.lora("run"), 3) == ExitCode::stopped);
  const auto before = f.files("base");
  edit(f.dir / "base", [](auto& tensors) { tensors.back().data[0] ^= 1; });
  const Raised raised = raised_by([&] { f.run(f.lora("run")); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("model.safetensors"));
  f.write(f.dir / "base/model.safetensors", before.at("model.safetensors"));
  CHECK(f.run(f.lora("run")) == ExitCode::done);
}

TEST_CASE("adapters in a run: one that goes on from an adapter") {
  LoraFixture f;
  REQUIRE(f.run(f.lora("first")) == ExitCode::done);
  const auto first = f.files("first/adapter");
  const auto second = [&](const std::string& out) {
    TrainConfig c = f.lora(out);
    c.adapter = f.dir / "first/adapter";
    c.seed = 7;
    c.eval_data = {f.dir / "rows.jsonl"};
    return c;
  };
  TrainConfig still = second("still");
  still.lr = 0;
  still.steps = 2;
  REQUIRE(f.run(still) == ExitCode::done);
  // Nothing was trained: the same pairs, also in a file of their own.
  CHECK(tensors_of(f.dir / "still/adapter/adapter_model.safetensors") ==
        tensors_of(f.dir / "first/adapter/adapter_model.safetensors"));
  RecordingReporter reporter;
  TrainConfig measured = second("x");
  measured.data = measured.eval_data;
  const Json loss = evaluate(measured, reporter);
  measured.adapter = f.dir / "still/adapter";
  CHECK(evaluate(measured, reporter).dump() == loss.dump());
  measured.adapter.clear();
  CHECK(evaluate(measured, reporter).dump() != loss.dump());

  REQUIRE(f.run(second("whole")) == ExitCode::done);
  REQUIRE(f.run_until(second("parts"), 4) == ExitCode::stopped);
  REQUIRE(f.run(second("parts")) == ExitCode::done);
  CHECK(f.root("parts") == f.root("whole"));
  CHECK(f.files("parts/adapter") == f.files("whole/adapter"));
  CHECK(f.files("first/adapter") == first);

  // What it went on from is part of what it is.
  REQUIRE(f.run_until(second("other"), 2) == ExitCode::stopped);
  const std::string path = f.dir / "first/adapter/adapter_model.safetensors";
  std::string content = read_file(path);
  content[content.size() - 4] ^= 1;  // the last bit of a number
  f.write(path, content);
  const Raised raised = raised_by([&] { f.run(second("other")); });
  CHECK(raised.code == ExitCode::input);
  CHECK(raised.says("adapter_model.safetensors"));
}

TEST_CASE("adapters in a run: norms and routers beside them are trained, saved and merged") {
  LoraFixture f;
  const std::vector<std::string> beside{"*.mlp.gate.weight", "model.norm.weight"};
  const auto config = [&](const std::string& out) {
    TrainConfig c = f.lora(out);
    c.trainable = beside;
    return c;
  };
  REQUIRE(f.run(config("whole")) == ExitCode::done);
  REQUIRE(f.run_until(config("parts"), 4) == ExitCode::stopped);
  REQUIRE(f.run(config("parts")) == ExitCode::done);
  CHECK(f.root("parts") == f.root("whole"));
  CHECK(f.files("parts/adapter") == f.files("whole/adapter"));
  REQUIRE(f.run(f.lora("alone")) == ExitCode::done);
  CHECK(f.root("alone") != f.root("whole"));

  const auto adapter = tensors_of(f.dir / "whole/adapter/adapter_model.safetensors");
  const auto start = tensors_of(f.dir / "base/model.safetensors");
  REQUIRE(adapter.contains("base_model.model.model.norm.weight"));
  REQUIRE(adapter.contains("base_model.model.model.layers.1.mlp.gate.weight"));
  const auto state = tensors_of(f.dir / "whole/state/step-00000006/weights.safetensors");
  CHECK(state.at("model.norm.weight") == adapter.at("base_model.model.model.norm.weight"));

  RecordingReporter reporter;
  export_merged({f.dir / "base", f.dir / "whole/adapter", f.dir / "merged"}, reporter);
  const auto merged = tensors_of(f.dir / "merged/model.safetensors");
  for (const auto& [name, data] : start) {
    const bool adapted = name.find("_proj") != std::string::npos;
    const bool trained = name == "model.norm.weight" || name.ends_with("mlp.gate.weight");
    INFO(name);
    CHECK((merged.at(name) != data) == (adapted || trained));
  }
  TrainConfig with = f.config("x"), into = f.config("x");
  with.adapter = f.dir / "whole/adapter";
  into.model = f.dir / "merged";
  with.compute = into.compute = ComputeChoice::f32;
  const double a = evaluate(with, reporter).find("loss")->as_double();
  const double b = evaluate(into, reporter).find("loss")->as_double();
  CHECK(std::abs(a - b) < 1e-2 * a);  // merged weights are rounded to bf16
}

TEST_CASE("adapters in a run: what is frozen gets none") {
  LoraFixture f;
  TrainConfig config = f.lora("run");
  config.freeze = {"*.layers.0.*", "*.experts.3.*", "*.v_proj.weight"};
  config.steps = 2;
  REQUIRE(f.run(config) == ExitCode::done);
  const auto state = tensors_of(f.dir / "run/state/step-00000002/weights.safetensors");
  CHECK_FALSE(state.empty());
  for (const auto& [name, data] : state) {
    INFO(name);
    CHECK(name.find("lora_") != std::string::npos);
    CHECK(name.find(".layers.0.") == std::string::npos);
    CHECK(name.find(".experts.3.") == std::string::npos);
    CHECK(name.find(".v_proj.") == std::string::npos);
  }
  const auto refused = [&](TrainConfig c) {
    const Raised raised = raised_by([&] { f.run(c); });
    CHECK(file_info(c.out).kind == FileKind::none);
    return raised.code == ExitCode::usage ? raised.message : "not refused";
  };
  TrainConfig all = f.lora("all");
  all.freeze = {"*"};
  CHECK(has(refused(all), "no adapter is left"));
  TrainConfig none = f.lora("none");
  none.freeze = {"*nothing*"};
  CHECK(has(refused(none), "--freeze '*nothing*'"));
  TrainConfig target = f.lora("target");
  target.lora_targets = {"attention", "shared-experts"};
  CHECK(has(refused(target), "the adapter targets 'shared-experts'"));
  target.lora_targets = {"*nothing*"};
  CHECK(has(refused(target), "the adapter targets '*nothing*'"));
  target.lora_targets = {"*norm.weight"};
  CHECK(has(refused(target), "is not a linear map"));
  target.lora_targets = {"attention"};
  target.expert_rank = 2;
  CHECK(has(refused(target), "--expert-r: no expert gets an adapter"));
  TrainConfig again = f.lora("again");
  again.adapter = f.dir / "run/adapter";
  again.freeze = {"*.q_proj.weight"};
  CHECK(has(refused(again), "--freeze: with --adapter"));
  again.freeze.clear();
  again.method = Method::full;
  CHECK(has(refused(again), "--method lora"));

  // The head that is the embedding.
  std::string text = read_file(f.dir / "base/config.json");
  const std::string untied = "\"tie_word_embeddings\":false";
  text.replace(text.find("\"tie_word_embeddings\""), untied.size(),
               "\"tie_word_embeddings\":true ");
  f.write(f.dir / "tied.json", text);
  init_checkpoint(f.dir / "tied.json", f.dir / "tied", 5, f.dir / "tokenizer");
  TrainConfig head = f.lora("head");
  head.model = f.dir / "tied";
  head.lora_targets = {"head"};
  CHECK(has(refused(head), "is its embedding"));
}

}  // namespace
}  // namespace hearth::test

// The verdict on a run: ok for a sound one, and an alarm for each fault that it is there for.
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "base/sanitized.h"
#include "budget/plan_time.h"
#include "state/state_manifest.h"
#include "support/planted.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Runs whose verdict is looked at.
class VerdictFixture : public TrainingFixture {
 public:
  const AssumedRates quick;
  RecordingReporter reporter;

  TrainConfig lora(const std::string& out) const {
    TrainConfig c = config(out);
    c.method = Method::lora;
    c.lora_rank = 4;
    c.weight_decay = 0;
    return c;
  }
  Json event(const std::string& out, const std::string& name) const {
    Json found;
    for (const std::string& line : lines(out + "/journal.jsonl")) {
      Json event = parse_json(line, "journal.jsonl");
      if (event.find("event")->as_string() == name) found = std::move(event);
    }
    REQUIRE(found.is_object());
    return found;
  }
  /// The reasons of a run's alarm; memory is that of all tests here, and of a sanitizer.
  std::string alarm(const std::string& out) const {
    const Json verdict = event(out, "verdict");
    std::string text;
    for (const Json& reason : verdict.find("reasons")->as_array()) {
      if (!reason.as_string().starts_with("memory")) text += reason.as_string() + "\n";
    }
    return text;
  }
  std::string alarm_of(const TrainConfig& config) {
    CHECK(train(config, reporter) == ExitCode::done);
    return alarm(config.out.substr(config.out.rfind('/') + 1));
  }
};

int64_t number(const Json& json, const char* key, const char* inner) {
  return json.find(key)->find(inner)->as_int();
}

TEST_CASE("verdict: sound runs are ok, adapters and whole models") {
  VerdictFixture f;
  CHECK(f.alarm_of(f.lora("lora")).empty());
  const Json lora = f.event("lora", "verdict");
  const Json full_base = *lora.find("frozen");
  CHECK(full_base.find("tensors")->as_int() > 20);
  CHECK(full_base.find("digest_at_start")->as_string() ==
        full_base.find("digest_at_end")->as_string());
  CHECK(number(lora, "experts", "trained") == 6);
  std::vector<std::string> parts;
  for (const Json& part : lora.find("groups")->as_array()) {
    parts.push_back(part.find("group")->as_string() + " " + part.find("part")->as_string());
    CHECK(part.find("update_norm")->as_double() > 0);
    CHECK(part.find("relative_update")->is_null() == (part.find("part")->as_string() == "B"));
  }
  CHECK(parts == std::vector<std::string>{"attention A", "attention B", "experts A", "experts B"});
  const int64_t tokens = number(lora, "tokens", "all");
  CHECK(number(lora, "tokens", "to_experts_a_layer") == 2 * tokens);

  CHECK(f.alarm_of(f.config("full")).empty());
  CHECK(number(f.event("full", "verdict"), "frozen", "tensors") == 0);
  TrainConfig frozen = f.config("frozen");
  frozen.freeze = {"model.embed_tokens.weight"};
  CHECK(f.alarm_of(frozen).empty());
  CHECK(number(f.event("frozen", "verdict"), "frozen", "tensors") == 1);
}

TEST_CASE("verdict: planted faults are alarms, and --strict makes them an exit code") {
  VerdictFixture f;
  const auto with = [&](const std::string& fault, const TrainConfig& config) {
    const PlantedFault guard(fault);
    return f.alarm_of(config);
  };
  CHECK_THAT(with("changed-frozen-tensor", f.lora("a")),
             ContainsSubstring("1 frozen tensor changed (first: model.embed_tokens.weight)"));
  CHECK_THAT(with("lost-gradients-of-an-expert", f.lora("b")),
             ContainsSubstring("1 expert got tokens but did not move (first: "
                               "model.layers.1.mlp.experts.0."));
  CHECK_THAT(with("lost-gradients-of-attention", f.lora("c")),
             ContainsSubstring("attention did not move"));
  // Weight decay moves what no gradient reached; that is no training.
  // Of texts every token but the last of a row has a target.
  std::string rows;
  for (int i = 0; i < 9; ++i) rows += R"({"text": "a row of text )" + std::to_string(i) + "\"}\n";
  f.write(f.dir / "texts.jsonl", rows);
  TrainConfig texts = f.config("d");
  texts.data = {f.dir / "texts.jsonl"};
  CHECK_THAT(with("lost-gradients-of-an-expert", texts),
             ContainsSubstring("1 expert got tokens but did not move"));
  TrainConfig strict = f.lora("e");
  strict.strict = true;
  {
    const PlantedFault guard("lost-gradients-of-attention");
    CHECK(train(strict, f.reporter) == ExitCode::numeric);
  }
  CHECK(file_info(f.dir / "e/adapter/adapter_model.safetensors").kind == FileKind::regular);
  CHECK_THAT(f.reporter.warnings.back(), ContainsSubstring("verdict: alarm: attention did not"));
  CHECK(train(strict, f.reporter) == ExitCode::numeric);  // it has ended so
  CHECK_THAT(f.reporter.warnings.back(), ContainsSubstring("verdict: alarm: attention did not"));
}

TEST_CASE("verdict: a resumed run has that of an uninterrupted one") {
  VerdictFixture f;
  const auto found = [&](const std::string& out) {
    Json verdict = f.event(out, "verdict");
    Json kept;
    for (const char* key : {"frozen", "groups", "experts", "tokens", "steps"}) {
      kept[key] = *verdict.find(key);
    }
    return kept.dump();
  };
  for (const bool adapters : {true, false}) {
    if (kSanitized && !adapters) break;
    const auto config = [&](const std::string& out) {
      return adapters ? f.lora("lora-" + out) : f.config(out);
    };
    CHECK(f.run(config("whole")) == ExitCode::done);
    CHECK(f.run_until(config("parts"), 2) == ExitCode::stopped);
    CHECK(f.run_until(config("parts"), 5) == ExitCode::stopped);
    CHECK(f.run(config("parts")) == ExitCode::done);
    const std::string prefix = adapters ? "lora-" : "";
    CHECK(found(prefix + "parts") == found(prefix + "whole"));
  }
}

/// Changes what the manifest of a state recorded, under a right digest.
template <class Change>
void change_record(const std::string& state, const Change& change) {
  const std::string path = state + "/" + kManifestName;
  StateManifest manifest = parse_manifest(read_file(path), path);
  change(manifest.extra);
  write_file_atomically(path, manifest_text(manifest));
}

TEST_CASE("verdict: a state without the record of gradients, and one with a bad record") {
  VerdictFixture f;
  CHECK(f.alarm_of(f.lora("whole")).empty());
  CHECK(f.run_until(f.lora("run"), 3) == ExitCode::stopped);
  const std::string state = f.dir / "run/state/step-00000003";
  std::string record;
  change_record(state, [&](Json& extra) {
    record = extra.find("gradients")->as_string();
    extra["gradients"] = record + "0";
  });
  const std::string journal = read_file(f.dir / "run/journal.jsonl");
  const Raised raised = raised_by([&] { f.run(f.lora("run")); });
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.says(state + "/manifest.json: gradients: expected"));
  CHECK(read_file(f.dir / "run/journal.jsonl") == journal);
  // As an older program saved it.
  change_record(state, [](Json& extra) {
    std::erase_if(extra.as_object(),
                  [](const auto& member) { return member.first == "gradients"; });
  });
  CHECK(f.alarm_of(f.lora("run")).empty());
  CHECK(f.event("run", "verdict").find("groups")->dump() ==
        f.event("whole", "verdict").find("groups")->dump());
  CHECK(f.root("run") == f.root("whole"));
}

TEST_CASE("verdict: weight decay alone does not count as movement") {
  VerdictFixture f;
  f.write(f.dir / "one.jsonl", R"({"input_ids": [20, 30]})"
                               "\n");
  TrainConfig c = f.config("run");
  c.data = {f.dir / "one.jsonl"};
  // In bf16 q and k of a row with one key get no gradient at all, not even by rounding.
  c.compute = ComputeChoice::f32;
  c.micro_batch = c.grad_accum = 1;
  c.router_aux_loss = 0;
  CHECK(f.alarm_of(c).empty());
  const Json verdict = f.event("run", "verdict");
  CHECK(number(verdict, "experts", "without_tokens") >= 1);
  CHECK(number(verdict, "experts", "moved") + number(verdict, "experts", "without_tokens") +
            number(verdict, "experts", "without_gradient") ==
        6);
}

TEST_CASE("verdict: experts without a token are counted, not alarmed of") {
  VerdictFixture f;
  f.write(f.dir / "one.jsonl", R"({"input_ids": [20, 30]})"
                               "\n");
  TrainConfig c = f.lora("run");
  c.data = {f.dir / "one.jsonl"};
  c.compute = ComputeChoice::f32;
  c.micro_batch = c.grad_accum = 1;
  CHECK(f.alarm_of(c).empty());
  const Json verdict = f.event("run", "verdict");
  // Two tokens go to four experts at most; the second has no target, so its experts may stay.
  CHECK(number(verdict, "experts", "without_tokens") >= 2);
  CHECK(number(verdict, "experts", "moved") >= 2);
  CHECK(number(verdict, "experts", "moved") + number(verdict, "experts", "without_tokens") +
            number(verdict, "experts", "without_gradient") ==
        6);
}

/// Rows of a wide domain, then many of a narrow one: most experts get their last token long before
/// the end.
std::string rows_of_two_domains(int wide, int narrow) {
  std::string rows;
  uint32_t seed = 9;
  for (int i = 0; i < wide; ++i) {
    rows += R"({"text": ")";
    for (int k = 0; k < 24; ++k) {
      seed = seed * 1664525 + 1013904223;
      rows += static_cast<char>('0' + seed / (1U << 16) % 70);
      if (rows.back() == '\\') rows.back() = 'z';
    }
    rows += "\"}\n";
  }
  for (int i = 0; i < narrow; ++i)
    rows += R"({"text": "aaaaaa"})"
            "\n";
  return rows;
}

TEST_CASE("verdict: 2,000 steps on data that changes its domain") {
  if (kSanitized) SKIP("thousands of steps like those of other cases");
  VerdictFixture f;
  f.write(f.dir / "domains.jsonl", rows_of_two_domains(400, 1600));
  const auto with_domains = [&](TrainConfig c) {
    c.data = {f.dir / "domains.jsonl"};
    c.steps = 2000;
    c.seq_len = 32;
    c.micro_batch = c.grad_accum = 1;
    c.packing = c.shuffle = false;
    c.lr = 1e-3;
    c.threads = 1;
    c.router_aux_loss = 0;
    return c;
  };
  for (const bool adapters : {true, false}) {
    const auto config = [&](const std::string& out) {
      return with_domains(adapters ? f.lora("lora-" + out) : f.config(out));
    };
    const std::string prefix = adapters ? "lora-" : "";
    CHECK(f.alarm_of(config("whole")).empty());
    const Json experts = *f.event(prefix + "whole", "verdict").find("experts");
    CHECK(experts.find("moved")->as_int() == 6);
    // What had a gradient is known after a resume, too, when no moment shows it any more.
    CHECK(f.run_until(config("parts"), 1900) == ExitCode::stopped);
    CHECK(f.alarm_of(config("parts")).empty());
    CHECK(f.event(prefix + "parts", "verdict").find("experts")->dump() == experts.dump());
  }
}

TEST_CASE("verdict: a loss that rose, steps that were skipped") {
  VerdictFixture f;
  TrainConfig c = f.config("run");
  c.eval_data = {f.dir / "rows.jsonl"};
  c.eval_at_start = true;
  c.lr = 30;
  c.max_grad_norm = 1;
  CHECK_THAT(f.alarm_of(c), ContainsSubstring("the evaluation loss rose from"));
  const Json evaluation = *f.event("run", "verdict").find("evaluation");
  CHECK(evaluation.find("after")->as_double() > evaluation.find("before")->as_double());
}

TEST_CASE("verdict: a rate of zero is named as the reason") {
  VerdictFixture f;
  TrainConfig c = f.config("run");
  c.steps = 1;
  c.warmup = 1;
  CHECK_THAT(f.alarm_of(c), ContainsSubstring("attention did not move (the learning rate was 0 in "
                                              "every step)"));
}

TEST_CASE("verdict: a run that ends with an error says so in its journal") {
  VerdictFixture f;
  TrainConfig c = f.config("run");
  c.lr = 1e30;
  c.warmup = 0;
  const Raised raised = raised_by([&] { f.run(c); });
  REQUIRE(raised.code == ExitCode::numeric);
  const Json failed = f.event("run", "failed");
  CHECK(failed.find("code")->as_int() == 5);
  CHECK(raised.says(failed.find("reason")->as_string()));
}

}  // namespace
}  // namespace hearth::test

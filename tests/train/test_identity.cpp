// The identity of a run in its saved state, compared with another run: fields that are missing or have
// another type, and every change that is reported or refused.
#include "state/run_identity.h"

#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <fstream>
#include <set>

#include "record/journal.h"
#include "record/run_directory.h"
#include "state/state_manifest.h"
#include "support/has.h"
#include "support/raises.h"
#include "support/temporary_directory.h"
#include "support/test_paths.h"
#include "train/resume.h"
#include "train/settled_options.h"
#include "train/state_fixture.h"
#include "train/training_fixture.h"

namespace hearth::test {
namespace {

/// As a run has it, with one file each.
Json identity() {
  return parse_json(R"({"options": {"lr": "1", "model": "m"},
    "model": [{"file": "config.json", "xxh3": "1"}, {"file": "model.safetensors", "xxh3": "2"}],
    "data": [{"file": "a.jsonl", "xxh3": "3"}], "eval-data": [], "chat-template": [],
    "compute_dtype": "bf16", "build": {"version": "1"}, "machine": {"cpu": "x"}})",
                    "identity");
}

Json with(const char* key, const char* value) {
  Json changed = identity();
  changed[key] = parse_json(value, "value");
  return changed;
}

Json without(std::string_view key) {
  Json changed = identity();
  std::erase_if(changed.as_object(), [&](const auto& member) { return member.first == key; });
  return changed;
}

/// "", the changes that are allowed, or why the state is refused.
std::string compared(const Json& saved, const std::vector<std::string>& allowed = {},
                     const Json& current = identity()) {
  std::string told;
  const Raised raised = raised_by([&] {
    const RunIdentity was = identity_in(saved), now = identity_in(current);
    for (const IdentityChange& change : compare(was, now, allowed, "manifest.json")) {
      told += change.text + (change.keeps_bits ? " (same bits)\n" : "\n");
    }
  });
  return told + raised.message;
}

}  // namespace

TEST_CASE("identity: another place keeps the bits, but not one on a GPU") {
  const auto moved = [](const std::string& was, const std::string& now) {
    const auto with_devices = [](const std::string& list) {
      Json changed = identity();
      changed["options"]["devices"] = list;
      return changed;
    };
    return compared(with_devices(was), {"devices"}, with_devices(now));
  };
  CHECK(has(moved("host", "2xvirtual,host"), "devices: host -> 2xvirtual,host (same bits)"));
  CHECK_FALSE(has(moved("host", "cuda:0,host"), "same bits"));
  CHECK_FALSE(has(moved("cuda:0", "virtual"), "same bits"));
}

TEST_CASE("identity: another policy keeps the bits if neither run computes on a GPU") {
  // `places`: those that compute, as the machine's facts name them; empty: not recorded.
  const auto of = [](const std::string& policy, const std::string& places) {
    Json changed = identity();
    changed["options"]["policy"] = policy;
    changed["machine"] = JsonObject{};
    if (!places.empty()) changed["machine"]["devices"] = JsonArray{places};
    return changed;
  };
  const auto moved = [&](const std::string& was, const std::string& now) {
    return compared(of("auto", was), {"policy"}, of("mobius", now));
  };
  CHECK(moved("virtual:0", "virtual:0") == "policy: auto -> mobius (same bits)\n");
  CHECK(moved("host", "virtual:0") ==
        "policy: auto -> mobius (the model's place: 'host' -> 'virtual:0') (same bits)\n");
  CHECK(moved("cuda:0", "cuda:0") == "policy: auto -> mobius\n");
  CHECK_FALSE(has(moved("virtual:0", "cuda:0"), "same bits"));
  CHECK_FALSE(has(moved("", "virtual:0"), "same bits"));  // unknown
  CHECK(has(compared(of("auto", "host"), {}, of("auto", "virtual:0")), "(same bits)"));
  CHECK_FALSE(has(compared(of("auto", "cuda:0"), {}, of("auto", "cuda:1")), "same bits"));
}

TEST_CASE("identity: an option that was not given is unset") {
  const Json none = with("options", R"({"topology": "null"})");
  const Json given = with("options", R"({"topology": "a.xml"})");
  CHECK(has(compared(none, {}, given), "--topology was 'unset'"));
  CHECK(has(compared(given, {}, none), "is 'unset' now"));
  CHECK(has(compared(none, {}, with("options", R"({"topology": "\"null\""})")),
            "is 'null' now"));  // a file of that name
}

TEST_CASE("identity: members that are missing or of another kind") {
  CHECK(compared(identity()).empty());
  for (const char* key : {"options", "model", "data", "eval-data"}) {
    const std::string lacks = std::string("manifest.json: lacks '") + key + "'";
    CHECK(has(compared(with(key, "5")), lacks));
    CHECK(has(compared(without(key)), lacks));
  }
  CHECK(has(compared(with("chat-template", "5")), "lacks 'chat-template'"));
  // What older versions did not record is not compared.
  for (const char* key : {"chat-template", "compute_dtype", "build", "machine"}) {
    CHECK(compared(without(key)).empty());
  }
  CHECK(compared(with("build", "5")).empty());
  CHECK(compared(with("compute_dtype", "5")).empty());
  CHECK(compared(with("build", "{}")).empty());
  CHECK(has(compared(with("options", R"({"lr": 5, "model": "m"})")), "--lr was 'unset'"));
  CHECK(has(compared(with("options", R"({"lr": 5, "model": "m"})"), {"lr"}), "lr: unset -> 1"));
  CHECK(has(compared(with("build", R"({"version": "0"})")), "build version"));
  // Facts of another kind are shown as they stand.
  CHECK(compared(with("build", R"({"version": 5})")) == "build version: '5' -> '1'\n");
  CHECK(compared(with("build", R"({"version": ""})")) == "build version: '' -> '1'\n");
  CHECK(compared(with("build", R"({"version": ["1"]})")) == "build version: '1' -> '1'\n");
  // The values of five options, the names of all.
  const std::string seven =
      R"({"a": "1", "b": "1", "c": "1", "d": "1", "e": "1", "f": "1", "g": "1"})";
  const std::string told = compared(with("options", "{}"), {}, with("options", seven.c_str()));
  CHECK(has(told, "--e was 'unset'"));
  CHECK_FALSE(has(told, "--f was"));
  CHECK(has(told, "; and 2 more; give the old values, or --allow-change a,b,c,d,e,f,g"));
}

TEST_CASE("identity: lists of files that differ") {
  const std::string other = "changed since the saved state";
  CHECK(has(compared(with("data", R"([{"file": "a.jsonl", "xxh3": "4"}])")),
            "'a.jsonl' has other content"));
  CHECK(has(compared(with("data", R"([{"file": "b.jsonl", "xxh3": "3"}])")),
            "other files, from 'a.jsonl' on"));
  CHECK(has(compared(with("data", "[]")), "other files, from 'a.jsonl' on"));
  CHECK(has(compared(with("eval-data", R"([{"file": "e.jsonl", "xxh3": "5"}])")),
            "other files, from 'e.jsonl' on"));
  CHECK(has(compared(with("data", "[5]")), other));
  CHECK(has(compared(with("data", R"([{"name": "a.jsonl"}])")), other));
  CHECK(has(compared(with("data", R"([{"file": 5}])")), other));
  CHECK(has(compared(with("chat-template", R"([{"file": "t.jinja", "xxh3": "6"}])")), other));
}

TEST_CASE("identity: the type that `auto` means changes by leave alone") {
  const Json saved = with("compute_dtype", "\"f32\"");
  CHECK(has(compared(saved), "--compute-dtype auto was 'f32'"));
  CHECK(has(compared(saved, {"compute-dtype"}), "compute-dtype auto: f32 -> bf16"));
  Json before = saved, now = identity();
  before["options"]["compute-dtype"] = "f32";
  now["options"]["compute-dtype"] = "auto";
  CHECK(compared(before, {"compute-dtype"}, now) == "compute-dtype: f32 -> auto\n");
}

TEST_CASE("identity: other devices are one change, in words") {
  const auto on = [](const char* list, const char* machine) {
    Json json = with("machine", machine);
    json["options"]["devices"] = list;
    return json;
  };
  const Json host = on("host", R"({"devices": ["host"], "libraries": []})");
  const Json split = on("cuda:0,host", R"({"devices": ["cuda:0", "host"], "libraries": ["x 1"]})");
  CHECK(compared(host, {"devices"}, split) ==
        "devices: host -> cuda:0,host (the model's place: 'host' -> 'cuda:0, host')\n"
        "machine libraries: 'none' -> 'x 1'\n");
  // The same list leads elsewhere on a machine without its GPU.
  CHECK(compared(on("auto", R"({"devices": ["cuda:0"]})"), {},
                 on("auto", R"({"devices": ["host"]})")) ==
        "machine devices: 'cuda:0' -> 'host'\n");
}

TEST_CASE("identity: rows kept for evaluation") {
  const Json kept = with("val-rows", "\"1\"");
  CHECK(compared(kept).empty());
  CHECK(compared(identity(), {}, kept).empty());
  CHECK(compared(kept, {}, kept).empty());
  CHECK(has(compared(kept, {}, with("val-rows", "\"2\"")), "--val-size"));
  // Allowed, it may leak: the header says so, beside the change of the option if there is one.
  const std::string leak = "its evaluation losses leak";
  CHECK(has(compared(kept, {"val-size"}, with("val-rows", "\"2\"")), "val-size: other rows"));
  CHECK(has(compared(kept, {"val-size"}, with("val-rows", "\"2\"")), leak));
  Json was = kept, now = with("val-rows", "\"2\"");
  was["options"]["val-size"] = "0.2";
  now["options"]["val-size"] = "0.1";
  const std::string told = compared(was, {"val-size"}, now);
  CHECK(told.starts_with("val-size: 0.2 -> 0.1 ("));
  CHECK(has(told, leak));
  // Rows that are kept from now on were trained on before.
  Json none = identity();
  none["options"]["val-size"] = "0";
  CHECK(has(compared(none, {"val-size"}, now), leak));
}

TEST_CASE("identity: every field is visited, written and read") {
  RunIdentity identity;
  size_t bytes = 0;
  std::set<std::string> names;
  RunIdentity::each(
      [&](const auto& field) {
        bytes += sizeof field;
        names.insert(field.name);
      },
      identity);
  CHECK(bytes == sizeof identity);
  CHECK(names.size() == 16);
  CHECK(to_json(identity).dump() == "{}");
}

TEST_CASE("identity: that of a state of the first version of the program") {
  const std::string path = test_data("/state/identity_version_1.json");
  const Json saved = parse_json(read_file(path), path);
  const RunIdentity identity = identity_in(saved);
  // Every member is there and is written as it was, whatever the order.
  const Json written = to_json(identity);
  CHECK(written.as_object().size() == saved.as_object().size());
  for (const auto& [name, value] : saved.as_object()) {
    INFO(name);
    REQUIRE(written.find(name) != nullptr);
    CHECK(written.find(name)->dump() == value.dump());
  }
  CHECK(identity.option("lr") == "0.001");
  CHECK(identity.compute_dtype.value == "bf16");
  CHECK(compared(saved, {}, saved).empty());

  const auto changed = [&](auto change) {
    Json now = saved;
    change(now);
    return compared(saved, {}, now);
  };
  CHECK(has(changed([](Json& j) { j["options"]["lr"] = "0.01"; }), "--lr was '0.001'"));
  CHECK(has(changed([](Json& j) { j["options"]["model"] = "\"other\""; }),
            "--model was 'm' when the state was saved and is 'other' now"));
  CHECK(has(changed([](Json& j) { j["data"].as_array()[0]["xxh3"] = "0"; }),
            "'curr.jsonl' has other content"));
  CHECK(has(changed([](Json& j) { j["compute_dtype"] = "f32"; }), "--compute-dtype auto was"));
  CHECK(changed([](Json& j) { j["build"]["revision"] = "0123"; }) ==
        "build revision: 'bc6737462ef6' -> '0123'\n");
  CHECK(changed([](Json& j) { j["lora"]["scale"] = 1.0; }).empty());
  Json trained = saved;
  trained["trained"] = "0";
  trained["options"]["lora-r"] = "8";
  CHECK(has(compared(saved, {"lora-r"}, trained), "--lora-r: cannot change on a resume"));
  // Of several changes, those that choose what is trained.
  trained["options"]["freeze"] = "[\"x\"]";
  trained["options"]["lr"] = "0.01";
  const std::string told = compared(saved, {"lora-r", "freeze", "lr"}, trained);
  CHECK((told.starts_with("--lora-r, --freeze: cannot change on a resume") ||
         told.starts_with("--freeze, --lora-r: cannot change on a resume")));
  // None of them: the model has other content.
  Json other = saved;
  other["trained"] = "0";
  other["model"].as_array()[0]["xxh3"] = "0";
  CHECK(has(compared(saved, {}, other), "model changed since the saved state"));
}

TEST_CASE("identity: changes of earlier resumes are kept where they can be read") {
  SavedState state{"d", 7, {}, parse_json(R"({"determinism": {"changes": ["x"]}})", "extra")};
  CHECK(determinism_record(&state, {{"y"}}).find("changes")->as_array().size() == 2);
  for (const char* none : {R"({"determinism": {"changes": 5}})", R"({"determinism": {}})", "{}"}) {
    INFO(none);
    state.extra = parse_json(none, "extra");
    CHECK(determinism_record(&state, {{"y"}}).find("changes")->as_array().size() == 1);
  }
}

TEST_CASE("identity: a state that does not say of which model it is fits none") {
  const TrainingFixture f;
  const Checkpoint base(f.dir / "base");
  const SavedState state{"d", 7, {}, parse_json("{}", "extra")};
  const Raised raised = raised_by([&] { require_same_model(state, base); });
  CHECK(raised.code == ExitCode::storage);
  CHECK(raised.message == "d/manifest.json: lacks 'model'");
}

TEST_CASE("identity: the date of templates is that of a state that has one") {
  const auto date_after = [](const char* options) {
    const TemporaryDirectory out;
    SavedRun run;
    save_state(run.registry, out.path(), 1, 1, parse_json(options, "extra"));
    TrainConfig config;
    config.out = out.path();
    settle_options(config);
    return config.template_date;
  };
  CHECK(date_after(R"({"options": {"template-date": "\"2024-02-03\""}})") == "2024-02-03");
  for (const char* none :
       {R"({})", R"({"options": {}})", R"({"options": {"template-date": 5}})",
        R"({"options": {"template-date": "5"}})", R"({"options": {"template-date": "\"x"}})"}) {
    CHECK(date_after(none).empty());
  }
  TrainConfig given;
  given.template_date = "2020-01-01";
  settle_options(given);
  CHECK(given.template_date == "2020-01-01");
}

TEST_CASE("identity: journals with lines of another kind") {
  const TemporaryDirectory directory;
  const std::string path = directory / "journal.jsonl";
  std::ofstream(path) << "{\"event\": 5}\n{\"event\": \"finished\", \"step\": \"8\"}\n"
                      << "{\"event\": \"finished\", \"step\": 18446744073709551615}\n";
  CHECK_FALSE(read_journaled_run(path).end);
  CHECK_FALSE(read_journaled_run(path).loss_at(8));
}

TEST_CASE("identity: a run directory below the one the process is in") {
  const TemporaryDirectory directory;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory.path());
  { const RunDirectory run("a/b//"); }
  { const RunDirectory run("a"); }
  std::filesystem::current_path(before);
  CHECK(std::filesystem::is_empty(directory.path()));  // neither has written anything
}

TEST_CASE("identity: names of states") {
  CHECK(step_of_state_directory("step-00000007") == 7);
  CHECK(step_of_state_directory("step-100000000") == 100000000);
  CHECK(step_of_state_directory("/run/state/step-00000007//") == 7);
  for (const char* name : {"step-", "step-7", "step-0000000a", "step-0000000/", "step--0000001",
                           "step-0000000000000000007", "Step-00000007", "step-00000007x"}) {
    CHECK_FALSE(step_of_state_directory(name));
  }
  CHECK(raised_by([] { verify_state("/"); }).code == ExitCode::storage);
}

TEST_CASE("identity: a manifest that changed between check and load") {
  const TemporaryDirectory out;
  SavedRun run;
  SavedState saved = save_state(run.registry, out.path(), 1, 1, kExtra);
  saved.digest.root.low ^= 1;
  CHECK(raised_by([&] { load_state(run.registry, saved); }).says("changed after it was checked"));
}

TEST_CASE("identity: weights that lie across pieces in parts of numbers") {
  const TemporaryDirectory out;
  std::vector<float> data(kStatePiece / sizeof(float) + 100, 1.0f);
  StateRegistry registry;
  StateComponent weights;
  weights.name = "weights";
  weights.views = [&] {
    return std::vector<StateView>{
        SavedRun::view("w", DType::f32, {static_cast<int64_t>(data.size())}, data)};
  };
  registry.add(weights);
  const SavedState saved = save_state(registry, out.path(), 1, 1, kExtra);
  // A header that is a byte longer, under right digests: no program that writes states does that.
  const std::string path = saved.directory + "/weights.safetensors";
  const std::string manifest_path = saved.directory + "/" + kManifestName;
  std::string bytes = read_file(path);
  uint64_t header = 0;
  bytes.copy(reinterpret_cast<char*>(&header), 8);
  bytes.insert(8 + header, 1, ' ');
  ++header;
  bytes.replace(0, 8, reinterpret_cast<const char*>(&header), 8);
  StateManifest manifest = parse_manifest(read_file(manifest_path), manifest_path);
  ChunkHasher chunks(kStateChunk);
  chunks.update(bytes.data(), bytes.size());
  manifest.files[0].bytes = bytes.size();
  manifest.files[0].chunks = chunks.finish();
  write_file_atomically(path, bytes);
  write_file_atomically(manifest_path, manifest_text(manifest));
  CHECK(raised_by([&] {
          verify_state(saved.directory);
        }).says("its elements do not begin at a multiple of 4 bytes"));
}

}  // namespace hearth::test

// A run directory in memory with two saved states, damaged by the input: a program of four bytes an
// edit. What the search accepts has the content that was saved, unless an edit forged digests; whatever is
// loaded has the root that its manifest names; a state whose files are untouched is found.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>

#include "base/error.h"
#include "base/file_ops.h"
#include "state/state_load.h"
#include "state/state_manifest.h"
#include "state/state_save.h"
#include "state/state_search.h"
#include "support/bounded.h"
#include "support/json_mutator.h"
#include "support/memory_disk.h"

namespace {

using namespace hearth;

void check(bool condition) {
  if (!condition) std::abort();
}

// A small run: weights of fixed shape, a history that grows, a text.
struct Run {
  std::vector<float> matrix = std::vector<float>(6);
  std::vector<uint16_t> vector = std::vector<uint16_t>(3), none;
  std::vector<double> history;
  std::string cursor;
  StateRegistry registry;

  explicit Run(int64_t step)
      : history(static_cast<size_t>(step), 0.5), cursor(std::to_string(step)) {
    std::iota(matrix.begin(), matrix.end(), static_cast<float>(step));
    std::iota(vector.begin(), vector.end(), static_cast<uint16_t>(step));
    StateComponent weights;
    weights.name = "weights";
    weights.views = [this] {
      return std::vector<StateView>{view("matrix", DType::f32, {2, 3}, matrix),
                                    view("vector", DType::bf16, {3}, vector),
                                    view("none", DType::bf16, {0, 4}, none)};
    };
    registry.add(weights);
    StateComponent grown;
    grown.name = "history";
    grown.views = [this] {
      return std::vector<StateView>{
          view("loss", DType::f64, {static_cast<int64_t>(history.size())}, history)};
    };
    grown.prepare = [this](std::string_view, uint64_t bytes) { history.resize(bytes / 8); };
    registry.add(grown);
    registry.add_text(
        "cursor", [this] { return cursor; }, [this](const std::string& text) { cursor = text; });
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  template <class T>
  static StateView view(std::string name, DType type, std::vector<int64_t> shape,
                        std::vector<T>& d) {
    const int64_t rows = shape[0];
    return {std::move(name), type, std::move(shape), 0, rows, std::as_writable_bytes(std::span(d))};
  }
};

using Files = std::map<std::string, std::string>;  // of one state, by name

const std::string kRun = "/run-in-memory";

// The two states of steps 1 and 2, as saved and as edited.
class States {
 public:
  States() {
    test::MemoryDisk disk(kRun);
    const FileCallsOverride in_memory(disk);
    for (const int64_t step : {1, 2}) {
      const SavedState saved =
          save_state(Run(step).registry, kRun, step, 2, JsonObject{{"of", step}});
      roots_[step - 1] = saved.digest.root;
      for (const std::string& name : list_directory(saved.directory)) {
        saved_[step - 1][name] = read_file(saved.directory + "/" + name);
      }
    }
  }

  void restart() {
    for (size_t i = 0; i < 2; ++i) now_[i] = saved_[i];
    forged_[0] = forged_[1] = false;
  }

  void edit(uint8_t kind, uint8_t which, uint8_t place, uint8_t value) {
    const size_t state = which % 2;
    Files& files = now_[state];
    const auto chosen =
        std::next(saved_[state].begin(), static_cast<ptrdiff_t>(which / 2 % saved_[state].size()));
    const std::string& name = chosen->first;
    if (files.count(name) == 0) return;
    std::string& content = files[name];
    const size_t at = content.empty() ? 0 : (place * 256u + value) % content.size();
    switch (kind % 11) {
      case 0:
        if (!content.empty()) content[at] = static_cast<char>(content[at] ^ (value | 1));
        break;
      case 1: content.resize(at); break;
      case 2: content.append(value + size_t{1}, static_cast<char>(place)); break;
      case 3: files.erase(name); break;
      case 4: content = saved_[1 - state][name]; break;
      case 5: content = saved_[state].begin()->second; break;
      case 6: std::fill(content.begin() + static_cast<ptrdiff_t>(at), content.end(), '\0'); break;
      case 7:  // another header length
        if (content.size() >= 8) {
          const uint64_t length = uint64_t{value} << place % 64;
          std::memcpy(content.data(), &length, 8);
        }
        break;
      case 8: files = saved_[1 - state]; break;  // a copy of the other state
      case 9: change_fields(state, place * 256u + value); break;
      default: describe_anew(state, name);
    }
  }

  // 2, 1, or 0 for none: the newest that is exactly as it was saved.
  int64_t newest_whole() const { return now_[1] == saved_[1] ? 2 : now_[0] == saved_[0] ? 1 : 0; }
  bool forged(int64_t step) const { return forged_[step - 1]; }
  const Digest& root(int64_t step) const { return roots_[step - 1]; }

  std::unique_ptr<test::MemoryDisk> disk() const {
    std::vector<test::MemoryDisk::Node> nodes;
    const auto add = [&](bool directory, const std::string& content) {
      nodes.push_back({directory, std::make_shared<std::string>(content), {}});
      return static_cast<int>(nodes.size()) - 1;
    };
    const int run = add(true, ""), root = add(true, "");
    nodes[0].entries["state"] = root;
    for (size_t i = 0; i < 2; ++i) {
      const int state = add(true, "");
      nodes[1].entries[state_directory_name(static_cast<int64_t>(i) + 1)] = state;
      for (const auto& [name, content] : now_[i]) {
        const int file = add(false, content);
        nodes[static_cast<size_t>(state)].entries[name] = file;
      }
    }
    check(run == 0);
    return std::make_unique<test::MemoryDisk>(kRun, std::move(nodes));
  }

 private:
  // The manifest's text, or an object of its members where it cannot be read.
  void seal(size_t state, std::string body) {
    if (body.ends_with("\n}")) body.resize(body.size() - 2);
    const std::string hash = digest_of(body).hex();
    now_[state][kManifestName] = body + ",\n  \"manifest_digest\": \"" + hash + "\"\n}\n";
    forged_[state] = now_[state][kManifestName] != saved_[state][kManifestName];
  }
  std::string body(size_t state) const {
    const auto found = now_[state].find(kManifestName);
    const std::string text = found == now_[state].end() ? "" : found->second;
    const size_t cut = text.rfind(",\n  \"manifest_digest\"");
    return text.substr(0, cut) + "\n}";
  }

  void change_fields(size_t state, uint32_t seed) {
    try {
      seal(state, parse_json(test::mutate_json(body(state), seed), "").dump(2));
    } catch (const Error&) {  // what is there is no JSON any more
    }
  }

  // Sizes and chunk digests of a changed file as they are now: only the content's digest differs.
  void describe_anew(size_t state, const std::string& name) {
    try {
      Json json = parse_json(body(state), "");
      const std::string& content = now_[state][name];
      for (Json& entry : json["files"].as_array()) {
        if (!entry["file"].is_string() || entry["file"].as_string() != name) continue;
        entry["bytes"] = static_cast<int64_t>(content.size());
        entry["chunks"] = content.empty() ? JsonArray{} : JsonArray{digest_of(content).hex()};
      }
      seal(state, json.dump(2));
    } catch (const std::exception&) {  // of other types than a manifest's
    }
  }

  Files saved_[2], now_[2];
  Digest roots_[2];
  bool forged_[2] = {false, false};
};

// The search as a resume makes it. The step loaded, 0 for none.
int64_t load_newest(const States& states) {
  StateSearch search(kRun, [](const RejectedState& bad) { check(!bad.reason.empty()); });
  while (const auto state = search.next()) {
    Run run(0);
    try {
      load_state(run.registry, *state);
    } catch (const DamagedState& damage) {
      search.reject(*state, damage);
      continue;
    }
    check(state_digest(run.registry).root == state->digest.root);
    if (!states.forged(state->step)) check(state->digest.root == states.root(state->step));
    return state->step;
  }
  return 0;
}

// A state of a newer format version ends the search: it must not be passed over.
constexpr int64_t kNewerVersion = -1;

template <class Search>
int64_t searched(const Search& search) {
  try {
    return search();
  } catch (const NewerState&) {
    return kNewerVersion;
  } catch (const Error& error) {
    check(error.code() == ExitCode::storage);
    return 0;
  }
}

// `whole`: the newest step whose files are untouched. Only forged states can come before it.
void check_found(const States& states, int64_t whole, int64_t found) {
  if (found == kNewerVersion) {
    check((whole < 2 && states.forged(2)) || (whole < 1 && states.forged(1)));
    return;
  }
  check(found >= whole && (found == whole || states.forged(found)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static States states;
  states.restart();
  for (size_t i = 0; i + 4 <= size && i < 64; i += 4) {
    states.edit(data[i], data[i + 1], data[i + 2], data[i + 3]);
  }
  const auto disk = states.disk();
  const FileCallsOverride in_memory(*disk);

  const int64_t whole = states.newest_whole();
  {
    // The buffers of 4 MiB that files are read by are cut to the file.
    const test::Bounded bound(8192, {.times = 64});
    const int64_t found = searched([&]() -> int64_t {
      const auto state = find_newest_state(kRun, [](const RejectedState& bad) {
        check(!bad.reason.empty() && !bad.message().empty());
      });
      check(state.has_value());
      if (!states.forged(state->step)) check(state->digest.root == states.root(state->step));
      return state->step;
    });
    check_found(states, whole, found);
  }
  const int64_t loaded = searched([&] { return load_newest(states); });
  check_found(states, whole, loaded);
  return 0;
}

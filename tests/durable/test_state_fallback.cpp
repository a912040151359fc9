// Whatever happened to the newest state, the older one is used: what a search finds and a resume
// loads are its bits.
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "base/sanitized.h"
#include "train/state_fixture.h"

namespace hearth::test {
namespace {

/// Steps 1 and 2 of a run, of which the second is damaged in turn.
struct TwoStates {
  TemporaryDirectory out;
  SavedState older, newer;
  std::map<std::string, std::string> whole;  // files of the newer one

  TwoStates() {
    SavedRun run(1);
    older = save_state(run.registry, out.path(), 1, 5, kExtra);
    SavedRun later(2);
    later.cursor = "{\"epoch\": 1}";
    newer = save_state(later.registry, out.path(), 2, 5, kExtra);
    for (const std::string& name : list_directory(newer.directory)) {
      whole[name] = read_file(newer.directory + "/" + name);
    }
  }
  std::string path(const std::string& name) const { return newer.directory + "/" + name; }
  void restore(const std::string& name) const { overwrite(path(name), whole.at(name)); }

  /// What a start does: the newest state whose contents can be loaded. Its step; 0 if there is none.
  int64_t resumed(std::string& damaged_file) const {
    damaged_file.clear();
    SavedRun run(7);
    StateSearch search(out.path(), [&](const RejectedState& bad) { damaged_file = bad.file; });
    try {
      while (const auto state = search.next()) {
        try {
          load_state(run.registry, *state);
        } catch (const DamagedState& damage) {
          search.reject(*state, damage);
          continue;
        }
        const StateDigest& expected = state->step == 1 ? older.digest : newer.digest;
        return state_digest(run.registry) == expected ? state->step : -1;
      }
    } catch (const Error&) {
    }
    return 0;
  }
  /// "" if a start and a search pass the newer state over because of this file and use the older.
  std::string wrong(const std::string& name) const {
    std::string file;
    if (const int64_t step = resumed(file); step != 1) return "resumes " + std::to_string(step);
    return file == name ? "" : "names '" + file + "'";
  }
  std::string wrong_search(const std::string& name) const {
    const Found found = find(out);
    if (!found.state || !(found.state->digest == older.digest)) return "finds another state";
    if (found.rejected.size() != 1 || found.rejected[0].file != name) return "names another file";
    return "";
  }
};

TEST_CASE("fallback: every flipped byte and every truncation makes the older state count") {
  const TwoStates states;
  for (const auto& [name, whole] : states.whole) {
    INFO(name);
    for (size_t i = 0; i < whole.size(); ++i) {
      std::string bad = whole;
      bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
      overwrite(states.path(name), bad);
      std::string wrong = states.wrong(name);
      if (i % 16 == 0) wrong += states.wrong_search(name);
      if (!wrong.empty()) FAIL("byte " << i << " flipped: " << wrong);
      overwrite(states.path(name), whole.substr(0, i));
      wrong = states.wrong(name);
      if (i % 16 == 0) wrong += states.wrong_search(name);
      if (!wrong.empty()) FAIL("cut to " << i << " bytes: " << wrong);
    }
    states.restore(name);
  }
  std::string file;
  CHECK(states.resumed(file) == 2);
}

TEST_CASE("fallback: missing, swapped, grown and emptied files, and files of another step") {
  const TwoStates states;
  const auto check = [&](const std::string& name) {
    CHECK(states.wrong(name) == "");
    CHECK(states.wrong_search(name) == "");
    states.restore(name);
  };
  for (const auto& [name, whole] : states.whole) {
    INFO(name);
    remove_file(states.path(name));
    check(name);
    overwrite(states.path(name), whole + '\0');
    check(name);
    overwrite(states.path(name), "");
    check(name);
    overwrite(states.path(name), std::string(whole.size(), '\0'));
    check(name);
    for (const size_t tail : {size_t{1}, size_t{16}, whole.size() / 2}) {
      std::string bad = whole;
      std::fill(bad.end() - static_cast<int64_t>(tail), bad.end(), '\0');
      if (bad == whole) continue;
      overwrite(states.path(name), bad);
      check(name);
    }
    // The same file of the step before.
    overwrite(states.path(name), read_file(states.older.directory + "/" + name));
    check(name);
    remove_file(states.path(name));
    make_directory(states.path(name));
    CHECK(states.wrong(name) == "");
    std::filesystem::remove(states.path(name));
    states.restore(name);
  }
  // Two files that change places, for every pair.
  for (const auto& [one, first] : states.whole) {
    for (const auto& [other, second] : states.whole) {
      if (one >= other) continue;
      INFO(one << " and " << other);
      overwrite(states.path(one), second);
      overwrite(states.path(other), first);
      std::string file;
      CHECK(states.resumed(file) == 1);
      CHECK((file == one || file == other));
      states.restore(one);
      states.restore(other);
    }
  }
  // Whole states under wrong names.
  std::filesystem::rename(states.newer.directory, states.out / "state/step-00000003");
  std::string file;
  CHECK(states.resumed(file) == 1);
  std::filesystem::rename(states.out / "state/step-00000003", states.newer.directory);
  CHECK(states.resumed(file) == 2);
}

/// One random damage of a file, of the kinds that disks, networks and people make.
std::string damaged(const std::string& whole, std::mt19937_64& random) {
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  std::string bad = whole;
  const size_t at = below(bad.size()), n = 1 + below(std::min<size_t>(bad.size() - at, 64));
  switch (below(7)) {
    case 0:  // some bits
      for (size_t i = 0; i < n; ++i) {
        bad[below(bad.size())] ^= static_cast<char>(1 << below(8));
      }
      break;
    case 1:  // a range of other bytes
      for (size_t i = 0; i < n; ++i) bad[at + i] = static_cast<char>(random());
      break;
    case 2: bad.replace(at, n, n, '\0'); break;
    case 3: bad.erase(at, n); break;
    case 4: bad.insert(at, bad.substr(below(bad.size()), n)); break;
    case 5:  // a piece from elsewhere
      bad.replace(at, n, bad.substr(below(bad.size() - n + 1), n));
      break;
    default:  // a digit that stays one
      for (size_t i = at; i < bad.size(); ++i) {
        if (bad[i] < '0' || bad[i] > '9') continue;
        bad[i] = static_cast<char>('0' + below(10));
        break;
      }
  }
  return bad;
}

void damage_at_random(int times) {
  const TwoStates states;
  const char* given = std::getenv("HEARTH_SEED");
  const uint64_t seed = given ? std::strtoull(given, nullptr, 10) : 20261122;
  std::mt19937_64 random(seed);
  std::vector<std::string> names;
  for (const auto& [name, whole] : states.whole) names.push_back(name);
  for (int i = 0; i < times; ++i) {
    const std::string& name = names[random() % names.size()];
    const std::string& whole = states.whole.at(name);
    const std::string bad = damaged(whole, random);
    if (bad == whole) continue;
    overwrite(states.path(name), bad);
    const std::string wrong = states.wrong(name);
    if (!wrong.empty()) FAIL("HEARTH_SEED=" << seed << ", damage " << i << ": " << wrong);
    states.restore(name);
  }
  std::string file;
  CHECK(states.resumed(file) == 2);
}

TEST_CASE("fallback: random damages") { damage_at_random(kSanitized ? 3'000 : 20'000); }

TEST_CASE("fallback: a million random damages", "[.long]") { damage_at_random(1'000'000); }

}  // namespace
}  // namespace hearth::test

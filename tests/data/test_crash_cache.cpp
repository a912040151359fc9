// What a power loss may leave of the cache of tokenised rows: an entry that is whole, or none that is
// used.
#include <catch2/catch_test_macros.hpp>

#include "base/log.h"
#include "data/samples/row_cache.h"
#include "store_fixture.h"
#include "support/crash_states.h"
#include "support/layered_calls.h"

using namespace hearth;
using namespace hearth::test;

namespace {

const std::string kFolder = "/memory-disk/rows";
const Digest kCacheKey{11, 12};

struct Unsynced : LayeredCalls {
  using LayeredCalls::LayeredCalls;
  int sync(int) override { return 0; }
};

void fill(TokenStore& store) {
  for (int row = 0; row < 40; ++row) {
    const std::vector<int32_t> ids(static_cast<size_t>(10 + row), row);
    store.add(ids, ids, row + 1);
  }
}

CrashReport crash_of_publishing(bool synced) {
  MemoryDisk disk("/memory-disk");
  Unsynced unsynced(disk);
  {
    const FileCallsOverride guard(synced ? static_cast<FileCalls&>(disk) : unsynced);
    const RowCache cache(kFolder, 1 << 20);
    TokenStore store;
    const auto lock = cache.lock(kCacheKey, [] {});
    cache.begin(kCacheKey, store);
    fill(store);
    store.finish();
    REQUIRE(cache.publish(kCacheKey, store, "notes"));
  }
  TokenStore expected;
  fill(expected);
  return crash_states(disk, {2000, 200}, [&](MemoryDisk& crashed, int) {
    const FileCallsOverride guard(crashed);
    const RowCache cache(kFolder, 1 << 20);
    const auto found = cache.find(kCacheKey, 0, 1000);
    if (found) {
      if (found->notes != "notes" || found->store.rows() != expected.rows()) {
        return std::string("another store");
      }
      for (int64_t row = 0; row < expected.rows(); ++row) {
        const Row a = row_of(found->store, row), b = row_of(expected, row);
        if (a.ids != b.ids || a.labels != b.labels) return std::string("another row");
      }
    }
    // Made anew, it is found.
    TokenStore again;
    const auto lock = cache.lock(kCacheKey, [] {});
    cache.begin(kCacheKey, again);
    fill(again);
    again.finish();
    cache.publish(kCacheKey, again, "notes");
    return std::string(cache.find(kCacheKey, 0, 1000) ? "" : "not found again");
  });
}

}  // namespace

TEST_CASE("crash states of the row cache: what is found is whole, synced or not") {
  set_warning_sink([](const std::string&) {});
  for (const bool synced : {true, false}) {
    INFO("synced: " << synced);
    const CrashReport report = crash_of_publishing(synced);
    CHECK(report.fault == "");
    CHECK(report.states > 100);
  }
  set_warning_sink({});
}

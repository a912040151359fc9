// What libraries for attention are given: packed sequences, coarse sizes; and where libraries are
// looked for.
#include <algorithm>
#include <array>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "gpu_kernels/kernels/attention_packing.h"
#include "gpu_kernels/libraries/attention_libraries.h"
#include "gpu_kernels/libraries/library_search.h"
#include "support/temporary_directory.h"
#include "support/test_stream.h"

using namespace hearth;
using namespace hearth::HEARTH_GPU;

TEST_CASE("attention packing: lengths and beginnings, those that are not there at the end") {
  // Three sequences, the second without queries, as in decoding.
  const std::vector<int32_t> query = {0, 3, 3, 5}, key = {0, 4, 6, 11};
  AttentionArguments a;
  a.query_offsets = query.data();
  a.key_offsets = key.data();
  a.sequences = 3;
  a.q16.stride = 32;
  a.k16.stride = 16;
  a.log_sum.stride = 4;
  hearth::test::TestStream host(1, {packing_bytes(200), 0});
  GpuStream stream(host);
  for (const int64_t entries : {int64_t{3}, int64_t{4}, int64_t{200}}) {
    Scratch::Frame frame(stream.scratch());
    const AttentionPacking to = take_packing(stream.scratch(), entries);
    pack_sequences_on(stream.handle(), a, to);
    for (int64_t i = 0; i <= entries; ++i) {
      const auto n = static_cast<size_t>(std::min<int64_t>(i, 3));
      CAPTURE(entries, i);
      CHECK(to.query_begin[i] == query[n] * 32);
      CHECK(to.key_begin[i] == key[n] * 16);
      CHECK(to.sum_begin[i] == query[n] * 4);
      if (i == entries) continue;
      CHECK(to.queries[i] == (i < 3 ? query[n + 1] - query[n] : 0));
      CHECK(to.keys[i] == (i < 3 ? key[n + 1] - key[n] : 0));
    }
  }
}

TEST_CASE("attention packing: sizes are rounded up by an eighth at most, or to 128") {
  CHECK(coarse_rows(1) == 128);
  CHECK(coarse_rows(128) == 128);
  CHECK(coarse_rows(1025) == 1152);
  CHECK(coarse_rows(4096) == 4096);
  CHECK(coarse_rows(4097) == 4608);
  for (int64_t rows = 1; rows < 20000; rows += 7) {
    CHECK(coarse_rows(rows) >= rows);
    CHECK(coarse_rows(rows) < rows + std::max<int64_t>(128, rows / 8 + 1));
    CHECK(coarse_rows(coarse_rows(rows)) == coarse_rows(rows));
  }
  CHECK(coarse_count(1) == 1);
  CHECK(coarse_count(5) == 8);
  CHECK(coarse_count(8) == 8);
}

TEST_CASE("attention choices: without cuDNN the reason is said and no scratch is taken") {
  hearth::test::TestStream host;
  GpuStream stream(host);
  REQUIRE(attention_libraries().size() == 1);
  CHECK(attention_libraries()[0]->name() == "cuDNN");
  const AttentionArguments none;
  CHECK(attention_libraries()[0]->declines(stream, {false, none}) != "");
  CHECK_FALSE(run_by_library(attention_libraries(), stream, AttentionProblem{true, none}));
  CHECK(most_scratch_bytes(attention_libraries(), 32, 4, 128, 4096, 4096) == 0);
}

TEST_CASE("library search: the loader first, then files of an active Python environment") {
  const hearth::test::TemporaryDirectory environment;
  const std::string folder = environment / "lib/python3.11/site-packages/nvidia/second/lib";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libhearth_test.so.3") << "not a library";
  const char* const before = std::getenv("VIRTUAL_ENV");
  const std::string kept = before != nullptr ? before : "";
  setenv("VIRTUAL_ENV", environment.path().c_str(), 1);
  constexpr std::array<const char*, 2> kPackages = {"first", "second"};
  CHECK(library_candidates("libhearth_test.so.3", kPackages) ==
        std::vector<std::string>{"libhearth_test.so.3", folder + "/libhearth_test.so.3"});
  CHECK(library_candidates("libhearth_test.so.4", kPackages) ==
        std::vector<std::string>{"libhearth_test.so.4"});
  std::string found;
  CHECK(open_library("libhearth_test.so.3", kPackages, found) == nullptr);
  CHECK(found.empty());
  before != nullptr ? setenv("VIRTUAL_ENV", kept.c_str(), 1) : unsetenv("VIRTUAL_ENV");
}

// A Parquet file. Rows are objects of the same members, numbered from 1; what is no whole file is an
// input error.
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/json.h"
#include "data/parquet/parquet_reader.h"
#include "support/bounded.h"
#include "support/temporary_directory.h"

namespace {

using namespace hearth;

constexpr int64_t kMostRows = 300;  // a small file can hold any number of nulls
constexpr size_t kMostText = size_t{4} << 20;

void check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const test::TemporaryDirectory directory;
  const std::string path = directory / "rows.parquet";
  std::filesystem::remove(path);
  {
    OutputFile file(path);
    file.write(data, size);
  }
  try {
    ParquetReader reader(path, {.held = 4 << 20, .row = 1 << 18, .zstd_window_log = 20});
    size_t members = 0, text = 0;
    for (RawRow row; row.line < kMostRows && text < kMostText;) {
      const int64_t before = row.line;
      {
        const test::Bounded bound(size, {.times = 1024, .bytes = 64 << 20, .seconds = 3});
        if (!reader.next(row)) break;
      }
      check(row.line == before + 1 && row.text.empty() == !row.problem.empty());
      text += row.text.size();
      if (!row.problem.empty()) continue;
      Json json;
      try {
        json = parse_json(row.text, "row");
      } catch (const Error&) {
        continue;  // two equal keys of a map
      }
      check(json.is_object() && !json.as_object().empty());
      check(members == 0 || json.as_object().size() == members);
      members = json.as_object().size();
    }
    check(reader.bytes_read() <= size * 1024);
  } catch (const Error& error) {
    check(error.code() == ExitCode::input);
  }
  return 0;
}

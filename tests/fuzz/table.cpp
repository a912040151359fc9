// A table of comma-separated values. Rows are objects of the columns, in lines that go up.
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file_ops.h"
#include "base/json.h"
#include "data/rows/raw_rows.h"
#include "support/bounded.h"
#include "support/temporary_directory.h"

namespace {

using namespace hearth;

void check(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const test::TemporaryDirectory directory;
  const std::string path = directory / "rows.csv";
  std::filesystem::remove(path);
  {
    OutputFile file(path);
    file.write(data, size);
  }
  try {
    const test::Bounded bound(size, {.times = 1024, .bytes = 16 << 20, .seconds = 3});
    RawRowSource source({path});
    int64_t line = 1;
    size_t columns = 0;
    for (RawRow row; source.next(row);) {
      check(row.line > line && row.text.empty() == !row.problem.empty());
      line = row.line;
      if (!row.problem.empty()) continue;
      const Json json = parse_json(row.text, "row");
      check(json.is_object() && (columns == 0 || json.as_object().size() == columns));
      columns = json.as_object().size();
      for (const auto& [name, value] : json.as_object()) {
        check(!name.empty() && (value.is_null() || value.is_string()));
      }
    }
  } catch (const Error& error) {
    check(error.code() == ExitCode::input);
  }
  return 0;
}

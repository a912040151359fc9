// A log that a killed process left: cutting the torn last line removes what stands behind the last
// newline and nothing else, and does nothing a second time. A line appended then is whole.
#include <cstdint>
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file_ops.h"
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
  static const std::string path = directory / "log";
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::filesystem::remove(path);
  {
    OutputFile file(path);
    file.write(text.data(), text.size());
  }
  {
    const test::Bounded bound(size);
    cut_torn_line(path);
  }
  std::string whole;  // slowly
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') whole = text.substr(0, i + 1);
  }
  check(read_file(path) == whole);
  cut_torn_line(path);
  check(read_file(path) == whole);
  AppendFile(path).line("{}");
  check(read_file(path) == whole + "{}\n");
  return 0;
}

// A data file of JSON Lines. Rows that are accepted have one
// label an id, ids of the vocabulary, and spans inside their text.
#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/rows/rows.h"
#include "data/tokenizer/builtin_tokenizer.h"
#include "support/bounded.h"
#include "support/json_mutator.h"
#include "support/temporary_directory.h"

namespace {

using namespace hearth;

constexpr int64_t kVocabulary = kBuiltinVocabulary;

void check(bool condition) {
  if (!condition) std::abort();
}

void check_sample(const Sample& sample) {
  check(!sample.ids.empty() && sample.labels.size() == sample.ids.size());
  check(sample.line > 0);
  for (const int32_t id : sample.ids) check(id >= 0 && id < kVocabulary);
  for (const int32_t label : sample.labels) {
    check(label == kIgnoredLabel || (label >= 0 && label < kVocabulary));
  }
  for (const TextSpan& span : sample.spans) {
    check(span.begin <= span.end && span.end <= sample.text.size());
  }
}

void read(const test::TemporaryDirectory& directory, const std::string& name,
          std::string_view input, RowOptions options) {
  const std::string path = directory / name;
  std::filesystem::remove(path);
  {
    OutputFile file(path);
    file.write(input.data(), input.size());
  }
  options.model = directory.path();
  options.vocabulary = kVocabulary;
  options.seq_len = 64;
  try {
    const test::Bounded bound(input.size(), {.times = 1024, .bytes = 16 << 20, .seconds = 3});
    RowReader reader({path}, options);
    Sample sample;
    while (reader.next(sample)) check_sample(sample);
  } catch (const Error& error) {
    check(error.code() == ExitCode::input);
  }
}

// Fields of one of the rows, or of the array that they are.
std::string change_row(std::string_view input, uint32_t seed) {
  if (input.starts_with('[')) return test::mutate_json(input, seed);
  const size_t from = input.empty() ? 0 : input.rfind('\n', seed % input.size());
  const size_t begin = from == input.npos ? 0 : from + 1;
  const size_t end = std::min(input.find('\n', begin), input.size());
  if (begin >= end) return std::string(input);
  return std::string(input.substr(0, begin)) +
         test::mutate_json(input.substr(begin, end - begin), seed) + std::string(input.substr(end));
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  return test::mutate_input(data, size, most, seed, change_row);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const test::TemporaryDirectory directory;
  static const bool written = [] {
    write_builtin_tokenizer(directory.path());
    return true;
  }();
  check(written);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  // By its keys, as JSON Lines or an array; then in one of the formats by name.
  read(directory, "rows.json", input, RowOptions());
  RowOptions forced;
  forced.format = static_cast<RowFormat>(size % 7);
  forced.train_on = static_cast<TrainOn>(size % 5);
  forced.no_special_in_content = true;
  read(directory, "rows.jsonl", input, forced);
  return 0;
}

// A model directory with the built-in tokenizer, and data files in it.
#pragma once

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file_ops.h"
#include "data/rows/rows.h"
#include "data/tokenizer/builtin_tokenizer.h"
#include "support/has.h"
#include "support/temporary_directory.h"

namespace hearth::test {

struct RowFixture {
  TemporaryDirectory directory;
  RowOptions options;

  RowFixture() {
    write_builtin_tokenizer(directory.path());
    options.model = directory.path();
  }
  std::string file(const std::string& name, std::string_view content) const {
    const std::string path = directory / name;
    write_file_atomically(path, content);
    return path;
  }
  std::vector<Sample> read(const std::vector<std::string>& files) const {
    RowReader reader(files, options);
    std::vector<Sample> samples;
    Sample sample;
    while (reader.next(sample)) samples.push_back(sample);
    return samples;
  }
  RowTotals totals(const std::vector<std::string>& files) const {
    RowReader reader(files, options);
    Sample sample;
    while (reader.next(sample)) {
    }
    return reader.totals();
  }
  std::vector<Sample> read_text(std::string_view content) const {
    return read({file("rows.jsonl", content)});
  }
  Sample read_row(std::string_view row) const {
    const auto samples = read_text(row);
    REQUIRE(samples.size() == 1);
    return samples[0];
  }
  /// The message that refuses a file of this content.
  std::string refusal(std::string_view content, const std::string& name = "rows.jsonl",
                      ExitCode code = ExitCode::input) const {
    try {
      read({file(name, content)});
    } catch (const Error& error) {
      CHECK(error.code() == code);
      return error.what();
    }
    return "accepted";
  }
  /// That a bad second row is refused with its place, on one line that has the parts.
  void refused(const std::string& row, const std::vector<std::string>& parts) const {
    const std::string message = refusal("{\"input_ids\": [1, 2]}\n" + row + "\n");
    INFO(row << " -> " << message);
    const std::string place = "rows.jsonl:2: ";
    CHECK(message.find(place) != std::string::npos);
    CHECK(message.find("line 1") == std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
    for (const auto& part : parts) CHECK(message.find(part) != std::string::npos);
  }
};

/// The ids of the built-in tokenizer, its specials as <E>, <S> and </S>.
inline std::string ids_as_text(const Sample& sample) {
  std::string text;
  for (const int32_t id : sample.ids) {
    text += id == 256 ? "<E>" : id == 257 ? "<S>" : id == 258 ? "</S>" : std::string(1, char(id));
  }
  return text;
}

/// The trained tokens in order.
inline std::string trained_text(const Sample& sample) {
  Sample trained;
  const auto flags = sample.trained();
  for (size_t i = 0; i < flags.size(); ++i) {
    if (flags[i] != 0) trained.ids.push_back(sample.ids[i]);
  }
  return ids_as_text(trained);
}

}  // namespace hearth::test

// A model directory with the built-in tokenizer, data files, and a cache of their rows.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file_ops.h"
#include "data/samples/run_rows.h"
#include "data/tokenizer/builtin_tokenizer.h"
#include "store_fixture.h"
#include "support/failing_calls.h"
#include "support/temporary_directory.h"

namespace hearth::test {

struct RunRowsFixture {
  struct Request : RunRowsRequest {
    int threads = 3;
  };
  FailingCalls calls;  // fail nothing, but do not wait for the disk either
  FileCallsOverride override_calls{calls};
  TemporaryDirectory directory;
  Request request;
  int tokenised = 0;  // how often progress told so

  RunRowsFixture() {
    write_builtin_tokenizer(directory.path());
    request.rows.model = directory.path();
    request.rows.vocabulary = kBuiltinVocabulary;
    request.cache = {cache(), uint64_t{1} << 30};
    request.hooks.progress = [this](const std::string& what, uint64_t, uint64_t) {
      tokenised += what.starts_with("tokenizing") ? 1 : 0;
    };
  }

  std::string cache() const { return directory / "cache/hearth/rows"; }

  std::string file(const std::string& name, const std::string& content) const {
    const std::string path = directory / name;
    write_file_atomically(path, content);
    return path;
  }
  /// Rows of every kind, of different lengths.
  std::string chats(const std::string& name, int rows) const {
    std::string text;
    for (int i = 0; i < rows; ++i) {
      const std::string n = std::to_string(i);
      switch (i % 3) {
        case 0: text += R"({"text": "row number )" + n + std::string(i % 40, 'x') + "\"}\n"; break;
        case 1:
          text += R"({"messages": [{"role": "user", "content": "What is )" + n +
                  R"(?"}, {"role": "assistant", "content": "It is a number."}]})" + "\n";
          break;
        default:
          text += R"({"input_ids": [1, 2, 3], "labels": [-100, 7, -100]})"
                  "\n\n";
          break;
      }
    }
    return file(name, text);
  }

  std::unique_ptr<RunRows> read(const std::vector<std::string>& files) {
    request.files = parse_data_files(files, "--data", true);
    return std::make_unique<RunRows>(request, Pool(request.threads));
  }
};

/// All rows of a set, one after the other.
inline std::vector<std::vector<int32_t>> contents(const RowSet& set) {
  std::vector<std::vector<int32_t>> all;
  for (int64_t i = 0; i < set.rows(); ++i) {
    Row row;
    set.read(i, row.ids, row.labels);
    all.push_back(row.ids);
    all.push_back(row.labels);
  }
  return all;
}
inline std::vector<std::vector<int32_t>> contents(const RunRows& rows) {
  return contents(rows.training());
}

}  // namespace hearth::test

// Data files that lose their second half while they are read.
#include "data/row_fixture.h"
#include "data/rows/raw_rows.h"
#include "support/packed.h"
#include "support/raises.h"
#include "support/shrinking_file.h"

using namespace hearth;
using namespace hearth::test;

TEST_CASE("data files that shrink while they are read are refused by name") {
  const RowFixture f;
  std::string rows, array = "[";
  for (int i = 0; rows.size() < (3u << 20); ++i) {
    const std::string row = "{\"input_ids\": [1, 2, " + std::to_string(i * 7919 % 100003) + "]}";
    rows += row + "\n";
    array += (i == 0 ? "" : ", ") + row;
  }
  const std::pair<const char*, std::string> files[] = {{"a.jsonl", rows},
                                                       {"a.json", array + "]"},
                                                       {"a.jsonl.gz", gzip(rows)},
                                                       {"a.jsonl.zst", zstd(rows)}};
  for (const auto& [name, bytes] : files) {
    int refused = 0;
    for (int n = 1;; ++n) {
      const std::string path = f.file(name, bytes);
      ShrinkingFile calls(n);
      const FileCallsOverride guard(calls);
      const Raised raised = raised_by([&] {
        RawRowSource source({path});
        RawRow row;
        while (source.next(row)) {
        }
      });
      if (calls.path().empty()) break;
      INFO(name << ", read " << n << ": " << raised.message);
      CHECK(raised.code == ExitCode::input);
      CHECK(raised.says(name));
      ++refused;
    }
    CHECK(refused >= 1);
  }
}

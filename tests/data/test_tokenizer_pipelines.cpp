// Tokenizers of every pipeline (scripts/parity/tokenizer_pipelines.py): ids, decoded texts and what
// the post-processor adds are those of the official library, spans are right. The recorded cases, or
// those of the directory that HEARTH_TOKENIZER_CASES names.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <filesystem>

#include "base/file_ops.h"
#include "base/utf8.h"
#include "data/tokenizer/stream_decoder.h"
#include "data/tokenizer/tokenizer.h"
#include "support/test_paths.h"

using namespace hearth;

namespace {

std::filesystem::path cases_directory() {
  const char* named = std::getenv("HEARTH_TOKENIZER_CASES");
  return named != nullptr ? named : test::test_data("/tokenizer/pipelines");
}

Json read(const std::filesystem::path& path) {
  return parse_json(read_file(path.string(), uint64_t{1} << 30), path.filename().string());
}

std::vector<int32_t> ids_in(const Json& list) {
  std::vector<int32_t> result;
  for (const Json& value : list.as_array()) result.push_back(static_cast<int32_t>(value.as_int()));
  return result;
}

// Spans lie in the text and, if they shall, never go back.
bool good_spans(const Encoding& encoding, std::string_view text, bool ordered) {
  TextSpan last;
  for (const TextSpan& span : encoding.spans) {
    if (span.begin > span.end || span.end > text.size()) return false;
    if (ordered && (span.begin < last.begin || span.end < last.end)) return false;
    last = span;
  }
  return encoding.spans.size() == encoding.ids.size();
}

std::string streamed(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  StreamDecoder decoder(tokenizer, false);
  std::string text;
  for (const int32_t id : ids) {
    const std::string part = decoder.push(id);
    REQUIRE(find_invalid_utf8(part) == std::string::npos);
    text += part;
  }
  return text + decoder.finish();
}

void check_pipeline(const Json& golden, const Json& texts, const std::string& name) {
  const Tokenizer tokenizer(*golden.find("tokenizer"), Json(), name);
  const JsonArray& ids = golden.find("ids")->as_array();
  REQUIRE(ids.size() == texts.as_array().size());
  const auto before = ids_in(golden.find("ends")->as_array()[0]);
  const auto behind = ids_in(golden.find("ends")->as_array()[1]);
  const auto expect = [&](const char* key, size_t i, const std::string& otherwise) {
    const Json* value = golden.find(key)->find(std::to_string(i));
    return value == nullptr ? otherwise : value->as_string();
  };
  int shown = 0;
  for (size_t i = 0; i < ids.size() && shown < 12; ++i) {
    const std::string& text = texts.as_array()[i].as_string();
    const auto wanted = ids_in(ids[i]);
    const Encoding encoding = tokenizer.encode(text);
    INFO(name << ": text " << i << ": " << texts.as_array()[i].dump().substr(0, 300));
    const bool same = encoding.ids == wanted;
    shown += same ? 0 : 1;
    if (same) {
      CHECK(good_spans(encoding, text, golden.find("ordered")->as_bool()));
    } else {
      CHECK(encoding.ids == std::vector<int32_t>(
                                wanted.begin(), wanted.begin() + static_cast<long>(std::min<size_t>(
                                                                     wanted.size(), 200))));
      continue;
    }
    const std::string decoded = expect("decoded", i, text);
    const bool same_text = tokenizer.decode(wanted) == decoded;
    shown += same_text ? 0 : 1;
    if (!same_text) CHECK(tokenizer.decode(wanted) == decoded);
    if (streamed(tokenizer, wanted) != decoded) FAIL_CHECK("streamed text differs");
    if (tokenizer.decode(wanted, true) != expect("without_special", i, decoded)) {
      CHECK(tokenizer.decode(wanted, true) == expect("without_special", i, decoded));
    }
    const Encoding special = tokenizer.encode(text, {.add_special = true});
    std::vector<int32_t> all = before;
    all.insert(all.end(), wanted.begin(), wanted.end());
    all.insert(all.end(), behind.begin(), behind.end());
    if (special.ids != all) CHECK(special.ids == all);
  }
}

}  // namespace

TEST_CASE("ids and texts of the official library, in every pipeline", "[pipelines]") {
  const Json texts = read(cases_directory() / "texts.json");
  int pipelines = 0;
  for (const auto& entry : std::filesystem::directory_iterator(cases_directory())) {
    if (entry.path().filename() == "texts.json") continue;
    check_pipeline(read(entry.path()), texts, entry.path().stem().string());
    ++pipelines;
  }
  CHECK(pipelines > (std::getenv("HEARTH_TOKENIZER_CASES") != nullptr ? 0 : 25));
}

#include "data/samples/file_tokens.h"

#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "data/rows/byte_stream.h"
#include "data/rows/raw_rows.h"
#include "data/rows/row_intake.h"
#include "data/samples/row_cache.h"
#include "data/samples/row_key.h"

namespace hearth {
namespace {

constexpr uint64_t kBatchBytes = uint64_t{4} << 20;  // of a data file, converted at once
constexpr size_t kBatchRows = 8192;

/// Rows that are read, converted and taken in together.
struct Batch {
  std::vector<RawRow> raw;
  std::vector<ConvertedRow> rows;
  uint64_t bytes = 0;
  std::exception_ptr end;  // of the file, if it cannot be read on
};

Batch read_batch(RawRowSource& source) {
  Batch batch;
  try {
    RawRow row;
    while (batch.bytes < kBatchBytes && batch.raw.size() < kBatchRows && source.next(row)) {
      batch.bytes += row.text.size() + 1;
      batch.raw.push_back(std::move(row));
    }
  } catch (...) {
    batch.end = std::current_exception();
  }
  batch.rows.resize(batch.raw.size());
  return batch;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

std::string temporary_directory() {
  const char* given = std::getenv("TMPDIR");
  return given != nullptr && given[0] == '/' ? given : "/tmp";
}

uint64_t size_of_file(const std::string& path) { return path == "-" ? 0 : file_info(path).size; }

}  // namespace

FileTokenizer::FileTokenizer(const RowOptions& options, const RowCacheOptions& cache,
                             const Pool& pool, ReadingHooks hooks)
    : options_(options),
      cache_(cache),
      pool_(pool),
      hooks_(std::move(hooks)),
      converter_(options) {}

void FileTokenizer::report(const std::string& what, uint64_t done, uint64_t total) const {
  if (hooks_.stop && hooks_.stop()) {
    throw Error(ExitCode::stopped, "stopped by a signal while reading data");
  }
  if (hooks_.progress) hooks_.progress(what, done, total);
}

void FileTokenizer::pass_over(const std::string& path, const std::string& note) {
  pass_over_bad_row(options_, bad_, shown_name(path) + ":" + note);
}

FileTokens FileTokenizer::tokenize(const std::string& path, const PlaceFinder& find_place) {
  FileTokens tokens{TokenStore(options_.seq_len), {}, {}};
  RawRowSource source({path}, options_.max_samples);
  const auto take_in = [&](Batch& batch) {
    for (size_t i = 0; i < batch.rows.size(); ++i) {
      const ConvertedRow& row = batch.rows[i];
      if (!row.error) {
        tokens.store.add(row.sample.ids, row.sample.labels, row.sample.line);
        if (row.sample.encoded) tokens.store.set_encoded();
        continue;
      }
      try {
        std::rethrow_exception(row.error);
      } catch (const BadRow& error) {
        const std::string message = error.what();
        tokens.bad.push_back(message.substr(shown_name(path).size() + 1));
        pass_over(path, tokens.bad.back());
      }
    }
    if (batch.end) std::rethrow_exception(batch.end);
    const bool large = tokens.store.bytes() > cache_.most_in_memory;
    if (large && !tokens.store.in_file()) find_place(tokens.store);
  };

  // Three batches under way: one is read, one converted, one taken in, by whichever worker is free.
  // Order is kept because the first and the last of these are one tile each.
  const std::string what = "tokenizing " + shown_name(path);
  const uint64_t total = size_of_file(path);
  Batch converted, next = read_batch(source);
  while (!next.raw.empty() || !converted.raw.empty() || next.end || converted.end) {
    report(what, source.bytes_read(), total);
    Batch current = std::move(next);
    next = {};
    pool_.run(2 + static_cast<int64_t>(current.raw.size()), [&](int64_t tile, int) {
      if (tile == 0) {
        if (!current.raw.empty() && !current.end) next = read_batch(source);
      } else if (tile == 1) {
        take_in(converted);
      } else {
        ConvertedRow row = converter_.try_convert(current.raw[static_cast<size_t>(tile - 2)]);
        row.sample.text = {};
        row.sample.spans = {};
        current.rows[static_cast<size_t>(tile - 2)] = std::move(row);
      }
    });
    converted = std::move(current);
  }
  report("", 0, 0);
  tokens.store.finish();
  HEARTH_CHECK(source.digests().size() == 1, "a file that was read to its end");
  tokens.digest = source.digests()[0].second;
  return tokens;
}

FileTokens FileTokenizer::read_once(const std::string& path) {
  return tokenize(path, [&](TokenStore& store) {
    std::vector<std::string> places = {temporary_directory()};
    if (!cache_.directory.empty()) places.insert(places.begin(), cache_.directory);
    move_to_nameless_file(store, places);
  });
}

void FileTokenizer::try_first_row(const std::string& path) const {
  RawRow first;
  if (!RawRowSource({path}).next(first)) return;
  try {
    converter_.convert(first);
  } catch (const BadRow&) {
    if (bad_ >= options_.skip_bad_rows) throw;
  }
}

FileTokens FileTokenizer::read_through_cache(const RowCache& cache, const std::string& path) {
  try_first_row(path);
  const uint64_t size = size_of_file(path);
  const Digest content =
      digest_of_file(path, [&](uint64_t done) { report("reading " + path, done, size); });
  report("", 0, 0);
  if (!conversion_) conversion_ = conversion_key(options_);
  const Digest key = row_key(*conversion_, content, path);
  const auto found = [&]() -> std::optional<FileTokens> {
    auto opened = cache.find(key, options_.seq_len, options_.vocabulary);
    if (!opened) return std::nullopt;
    FileTokens tokens{std::move(opened->store), lines_of(opened->notes), content};
    for (const std::string& note : tokens.bad) pass_over(path, note);
    return tokens;
  };
  if (auto tokens = found()) return std::move(*tokens);

  const auto lock =
      cache.lock(key, [&] { report("waiting for another process that tokenizes " + path, 0, 0); });
  if (auto tokens = found()) return std::move(*tokens);  // made while this one waited
  const auto begin = [&](TokenStore& store) { cache.begin(key, store); };
  try {
    FileTokens tokens = tokenize(path, begin);
    if (tokens.digest != content) {
      throw input_error(path + ": changed while it was read; start again");
    }
    if (!tokens.store.in_file()) begin(tokens.store);
    cache.publish(key, tokens.store, joined(tokens.bad));
    return tokens;
  } catch (...) {
    cache.abandon(key);
    throw;
  }
}

FileTokens FileTokenizer::read(const std::string& path) {
  if (path == "-" || cache_.directory.empty() || cache_.most_bytes == 0) return read_once(path);
  const int64_t bad = bad_;
  try {
    return read_through_cache(RowCache(cache_.directory, cache_.most_bytes), path);
  } catch (const Error& error) {
    if (error.code() != ExitCode::storage) throw;
    log_warning("tokenized rows are not cached for the next start: " + std::string(error.what()));
  }
  bad_ = bad;
  return read_once(path);
}

}  // namespace hearth

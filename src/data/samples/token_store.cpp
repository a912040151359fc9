#include "data/samples/token_store.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"

namespace hearth {
namespace {

constexpr int64_t kRowsPerMark = 64;
constexpr size_t kMostWords = size_t{1} << 20;  // words that go to the file at once

constexpr uint32_t kNoLimit = std::numeric_limits<int32_t>::max();

}  // namespace

TokenStore::TokenStore(int64_t limit)
    : limit_(limit > 0 ? static_cast<uint32_t>(std::min<int64_t>(limit, kNoLimit)) : kNoLimit) {}

void TokenStore::add(std::span<const int32_t> ids, std::span<const int32_t> labels, int64_t line) {
  const uint32_t runs = append_row_words(ids, labels, words_);
  const auto given = std::min<size_t>(ids.size(), limit_);
  append({static_cast<uint32_t>(ids.size()), runs,
          static_cast<uint32_t>(count_trained(labels.first(given)))},
         static_cast<uint32_t>(count_trained(labels)), line);
  // Lines that do not fit are not known: nothing but a message needs them.
  lines_.push_back(line <= std::numeric_limits<uint32_t>::max() ? static_cast<uint32_t>(line) : 0);
  if (out_ && words_.size() >= kMostWords) flush();
}

void TokenStore::append(const Entry& entry, uint32_t whole_trained, int64_t line) {
  if (rows() % kRowsPerMark == 0) marks_.push_back(end_);
  if (entry.length > limit_ && !long_row_) long_row_ = {line, entry.length};
  end_ += uint64_t{entry.runs} + entry.length;
  whole_trained_ += whole_trained;
  index_.push_back(entry);
}

uint64_t TokenStore::begin(int64_t row) const {
  uint64_t begin = marks_[row / kRowsPerMark];
  for (int64_t i = row - row % kRowsPerMark; i < row; ++i) {
    begin += uint64_t{index_[i].runs} + index_[i].length;
  }
  return begin;
}

void TokenStore::read(int64_t row, std::vector<int32_t>& ids, std::vector<int32_t>& labels) const {
  const Entry& entry = index_[row];
  const size_t count = entry.runs + static_cast<size_t>(length(row));
  std::vector<uint32_t> from_file;
  std::span<const uint32_t> words;
  if (in_) {
    from_file.resize(count);
    in_->read(from_file.data(), count * sizeof(uint32_t), begin(row) * sizeof(uint32_t));
    words = from_file;
  } else {
    words = std::span(words_).subspan(begin(row), count);
  }
  const size_t before = ids.size();
  const auto given = words.subspan(entry.runs);
  ids.insert(ids.end(), given.begin(), given.end());
  append_labels(words.first(entry.runs), std::span(ids).subspan(before), labels);
}

int64_t TokenStore::bytes() const {
  return static_cast<int64_t>(index_.capacity() * sizeof(Entry) +
                              marks_.capacity() * sizeof(uint64_t) +
                              (words_.capacity() + lines_.capacity()) * sizeof(uint32_t));
}

void TokenStore::move_to_file(std::unique_ptr<OutputFile> out, InputFile in) {
  HEARTH_CHECK(!in_, "a store in memory");
  out_ = std::move(out);
  in_.emplace(std::move(in));
  flush();
}

void TokenStore::flush() {
  hasher_.update(words_.data(), words_.size() * sizeof(uint32_t));
  out_->write(words_.data(), words_.size() * sizeof(uint32_t));
  in_file_ += words_.size();
  words_.clear();
}

void TokenStore::finish() {
  if (out_) flush();
  index_.shrink_to_fit();
  marks_.shrink_to_fit();
  words_.shrink_to_fit();
}

}  // namespace hearth

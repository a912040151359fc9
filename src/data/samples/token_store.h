// The tokens of all rows of a run in two flat arrays: what the sampler cuts batches from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

/// The label of a token that is not trained.
inline constexpr int32_t kIgnoredLabel = -100;

/// How many labels of a document count: those from its second position on that are not ignored
/// (the first token has nothing before it that could predict it).
int64_t count_trained(std::span<const int32_t> labels);

/// Rows ("documents") in the order they were added. Labels stand beside their own ids, not yet
/// shifted. Owns its arrays; 8 bytes a token and 16 a row. Not changed after reading, so that
/// threads may share it.
class TokenStore {
 public:
  /// Appends a row of at least one id; labels are as many as ids.
  void add(std::span<const int32_t> ids, std::span<const int32_t> labels);

  int64_t rows() const { return static_cast<int64_t>(trained_.size()); }
  int64_t tokens() const { return static_cast<int64_t>(ids_.size()); }
  int64_t trained_tokens() const { return total_trained_; }

  int64_t length(int64_t row) const { return offsets_[row + 1] - offsets_[row]; }
  int64_t trained(int64_t row) const { return trained_[row]; }
  std::span<const int32_t> ids(int64_t row) const { return slice(ids_, row); }
  std::span<const int32_t> labels(int64_t row) const { return slice(labels_, row); }

  /// Length of the longest row; 0 without rows.
  int64_t longest() const { return longest_; }
  /// Bytes that the arrays hold, spare capacity included.
  int64_t bytes() const;

 private:
  std::span<const int32_t> slice(const std::vector<int32_t>& all, int64_t row) const {
    return {all.data() + offsets_[row], static_cast<size_t>(length(row))};
  }

  std::vector<int32_t> ids_, labels_;
  std::vector<int64_t> offsets_ = {0};
  std::vector<int64_t> trained_;
  int64_t total_trained_ = 0;
  int64_t longest_ = 0;
};

}  // namespace hearth

// The [rows, rank] products of the experts' low-rank pairs, per chunk of rows.
#pragma once

#include <array>

#include "cpu_kernels/expert_rows.h"
#include "cpu_kernels/low_rank.h"
#include "device/host_stream.h"

namespace hearth {

/// The maps of an expert by number: gate, up, down.
inline constexpr std::array kExpertMaps = {&ExpertView::gate, &ExpertView::up, &ExpertView::down};
inline constexpr std::array kExpertGradients = {&ExpertGradient::gate, &ExpertGradient::up,
                                                &ExpertGradient::down};

/// Whether all that reads the experts' rows rounds them to bf16. What dropout reads is f32.
bool round_all(std::span<const ExpertView> experts);

/// Takes its memory from the given scratch. Maps without a pair cost nothing.
class ExpertLowRank {
 public:
  /// A product for each expert's rows: scale * drop(from) A^T of a map, or, with `output`, scale *
  /// from B. `from` has the rows of the views, or those of the chunk.
  struct Product {
    int map;
    bool output;
    ExpertInput from;
    bool of_chunk = false;
  };

  ExpertLowRank(HostStream& host, Scratch& scratch, std::span<const ExpertView> experts,
                int64_t chunk_rows);

  bool any() const { return rank_ > 0; }
  void make(const ExpertChunks& chunk, std::span<const Product> products) const;

  /// The result of `make` for these rows of the chunk; no columns if the map has no pair.
  ConstView input(int map, int64_t expert, Range rows) const {
    return at(map, false, expert, rows);
  }
  ConstView output(int map, int64_t expert, Range rows) const {
    return at(map, true, expert, rows);
  }

  static size_t scratch_bytes(int64_t chunk_rows, int64_t rank);

 private:
  const LinearView& map_of(int map, int64_t expert) const {
    return experts_[static_cast<size_t>(expert)].*kExpertMaps[static_cast<size_t>(map)];
  }
  View at(int map, bool output, int64_t expert, Range rows) const;

  HostStream& host_;
  std::span<const ExpertView> experts_;
  int64_t rank_ = 0;  // the largest of all pairs
  std::array<float*, 6> products_{};
};

}  // namespace hearth

// Expert domains (HybridEP, section IV-A): which ranks hold the same experts, and
// which ranks exchange rows. Pure.
//
// Ranks lie on levels, the slowest links first: G_l units on level l, and together G = prod G_l ranks.
// Rank m has a number on each level, in mixed radix:
//
//   x_l = m / (G_{l+1} G_{l+2} ...) mod G_l
//
// On each level the units form domains of S_l, where S_l divides G_l. R_l = G_l / S_l is the number of
// domains. Unit x belongs to domain x mod R_l, and is number x / R_l in it. (The paper numbers them
// the other way round. Units of a level are alike, so nothing changes but this: ranks that exchange
// rows are neighbours, so their gradients add up in fewer pieces, comm/shard_tree.h.)
//
//   same domain on every level      these S = prod S_l ranks hold the same experts
//   same number on every level      these R = G / S ranks have each expert once, and exchange rows
//
// A row of rank s for an expert of rank t is computed by the rank with the domains of t and the numbers
// of s. S = 1: expert parallelism (`ep`). S = G: each rank has all experts (`dp`).
#pragma once

#include <cstdint>
#include <vector>

namespace hearth {

struct DomainLevel {
  int32_t ranks = 1;   // G_l
  int32_t domain = 1;  // S_l; divides `ranks`
  int32_t domains() const { return ranks / domain; }
  friend bool operator==(const DomainLevel&, const DomainLevel&) = default;
};

class ExpertDomains {
 public:
  /// One rank.
  ExpertDomains() = default;
  /// A bug unless each domain divides its level.
  explicit ExpertDomains(std::vector<DomainLevel> levels);
  /// Every choice of domain sizes for levels of so many ranks, by total size, small ones first; the
  /// first is that of one rank a domain.
  static std::vector<ExpertDomains> of_levels(const std::vector<int32_t>& ranks);
  /// Each `sharing` neighbours of `ranks` have the experts once. `sharing` divides `ranks`.
  static ExpertDomains of_neighbours(int32_t ranks, int32_t sharing);

  const std::vector<DomainLevel>& levels() const { return levels_; }
  int32_t ranks() const;    // G
  int32_t size() const;     // S, ranks that hold the same experts
  int32_t sharing() const;  // R, ranks that have each expert once

  /// Of a rank among those that it exchanges rows with: by its domains. In [0, sharing()).
  int32_t position(int32_t rank) const;
  /// Of a rank among those that hold the same experts. In [0, size()).
  int32_t offset(int32_t rank) const;
  int32_t rank_at(int32_t position, int32_t offset) const;
  /// The rank at a position among those that `rank` exchanges rows with. Rises with the position.
  int32_t member(int32_t rank, int32_t position) const { return rank_at(position, offset(rank)); }
  /// The rank that computes rows of `source` for experts of `owner`.
  int32_t server(int32_t owner, int32_t source) const { return member(source, position(owner)); }
  /// Levels on which rows of `source` change domain on their way to experts of `owner`.
  std::vector<int32_t> hops(int32_t owner, int32_t source) const;

  /// The paper's p = (G - S) / (G - 1), the share of pairs of ranks whose rows travel. 1 for one rank.
  double travelling_share() const;

 private:
  /// Numbers by level, the slowest first.
  std::vector<int32_t> numbers(int32_t rank) const;

  std::vector<DomainLevel> levels_;
};

}  // namespace hearth

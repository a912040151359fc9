// Tables of HybridEP's evaluation: VII, the pairs of ranks that talk to each other; IV, the best domain
// by the paper's model (plan/domains/stream_model.h); V, iterations on two and four data centres. Pure.
//
// Of Table V the paper gives what follows, and no more: 12 layers with experts, so 24 exchanges an
// iteration; data centres of 8 GPUs that share 10 Gb/s. So an iteration of expert parallelism is
//
//   rest + 24 exchanges x 8 GPUs x (share of the rows that cross) x D / 10 Gb/s
//
// with half of the rows crossing between two data centres (Cluster-M), three quarters between four
// (Cluster-L). `rest` is what the paper's 6 MB leave over. A domain of all data centres sends no row
// across, so its model is `rest` alone; the paper's own times rise with D, which it does not explain.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/domains/stream_model.h"

namespace hearth {

/// Pairs of ranks of Table VII, in one direction each.
struct DomainPairs {
  int32_t ranks = 1, domain = 1;
  int64_t exchange = 0;  // of rows
  int64_t gather = 0;    // of experts
};
std::vector<DomainPairs> domain_pairs(int32_t ranks);

/// A row of Table IV. The paper's p is 1 - S / G, or 1 for S = 1.
struct DomainCase {
  std::string name;
  StreamCase printed;  // times as the paper prints them
  double paper_p = 0;
  int32_t paper_domain() const;  // S
};
const std::vector<DomainCase>& domain_cases();
/// With ten times the computation before the experts, the paper's domains come out.
StreamCase with_more_computation(StreamCase of);

/// Table V: seconds of an iteration by megabytes of rows.
struct DomainIteration {
  std::string cluster;
  double megabytes = 0;
  double ep_s = 0, domains_s = 0;              // modelled
  double paper_ep_s = 0, paper_domains_s = 0;  // Tutel and HybridEP
};
std::vector<DomainIteration> domain_iterations();

}  // namespace hearth

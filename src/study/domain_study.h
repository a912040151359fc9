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
//
// The paper compresses experts to 1/50 (IV-B). Its tables have both sizes: P of Table IV's rows
// AG-only is 1/50 of that of the rows Mix, and the 0.36 MB of Table V are 1/50 of an expert of 768 x
// 3072, twice, in f32 (18 MiB). That expert's gradients travel, too, which the paper leaves out.
#pragma once

#include <algorithm>
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

/// Bytes of dense weights over bytes that travel, of all the paper's runs.
inline constexpr double kPaperRatio = 50;

/// A row of Table IV. The paper's p is 1 - S / G, or 1 for S = 1.
struct DomainCase {
  std::string name;
  StreamCase printed;  // times as the paper prints them
  double paper_p = 0;
  double dense_bytes = 0;  // of a rank's experts: printed.expert_bytes, or kPaperRatio times that
  int32_t paper_domain() const;  // S
};
const std::vector<DomainCase>& domain_cases();
/// With ten times the computation before the experts, the paper's domains come out.
StreamCase with_more_computation(StreamCase of);
/// With that, and with weights that travel compressed.
StreamCase compressed(const DomainCase& of);
/// With that, and experts that train: their gradients travel dense, and if weights are compressed, a
/// shared expert is made of the one expert that each rank has.
StreamCase trained(const DomainCase& of, bool compresses);

/// Table V: seconds of an iteration by megabytes of rows.
struct DomainIteration {
  std::string cluster;
  double megabytes = 0;
  double ep_s = 0, domains_s = 0;              // modelled
  double trained_s = 0;                        // DomainCluster::trained_s
  double paper_ep_s = 0, paper_domains_s = 0;  // Tutel and HybridEP
};
std::vector<DomainIteration> domain_iterations();

/// What travels for experts between the data centres of Table V in an iteration, in seconds of the link
/// of one. Each GPU has one expert of each layer, and all data centres are one domain.
struct DomainCluster {
  std::string name;
  double rest_s = 0;
  double dense_s = 0, weights_s = 0;  // weights, dense and compressed
  double shared_s = 0;                // the shared expert: sums to one place, and the mean back
  double gradients_s = 0;             // dense
  /// The least time of an iteration that trains compressed experts: all of that hides behind the rest,
  /// or the rest behind it.
  double trained_s() const { return std::max(rest_s, weights_s + shared_s + gradients_s); }
};
std::vector<DomainCluster> domain_clusters();

}  // namespace hearth

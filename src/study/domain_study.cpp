#include "study/domain_study.h"

#include <array>
#include <cmath>

#include "comm/expert_domains.h"

namespace hearth {

std::vector<DomainPairs> domain_pairs(int32_t ranks) {
  std::vector<DomainPairs> all;
  for (const ExpertDomains& domains : ExpertDomains::of_levels({ranks})) {
    DomainPairs pairs{ranks, domains.size(), 0, 0};
    for (int32_t a = 0; a < ranks; ++a) {
      for (int32_t b = 0; b < ranks; ++b) {
        if (a == b) continue;
        pairs.exchange += domains.offset(a) == domains.offset(b) ? 1 : 0;
        pairs.gather += domains.position(a) == domains.position(b) ? 1 : 0;
      }
    }
    all.push_back(pairs);
  }
  return all;
}

int32_t DomainCase::paper_domain() const {
  return static_cast<int32_t>(std::lround((1 - paper_p) * printed.ranks));
}

const std::vector<DomainCase>& domain_cases() {
  const auto of = [](double before_ms, double row_mb, double expert_mb) {
    StreamCase made;
    made.ranks = 8;
    made.bytes_per_s = 128e9 / 8;
    made.before_s = before_ms / 1e3;
    made.row_bytes = row_mb * 1e6;
    made.expert_bytes = expert_mb * 1e6;
    return made;
  };
  static const std::vector<DomainCase> cases{{"Mix-1", of(0.049, 8, 4.7), 0.75},
                                             {"Mix-2", of(0.049, 8, 2.35), 0.5},
                                             {"AG-only-1", of(0.099, 3, 0.094), 0},
                                             {"AG-only-2", of(0.099, 3, 0.047), 0}};
  return cases;
}

StreamCase with_more_computation(StreamCase of) {
  of.before_s *= 10;
  return of;
}

std::vector<DomainIteration> domain_iterations() {
  constexpr double kExchanges = 24, kGpus = 8, kBytesPerS = 10e9 / 8;
  constexpr std::array<double, 6> kMegabytes{6, 12, 24, 48, 96, 192};
  struct Cluster {
    const char* name;
    double crossing;
    std::array<double, 6> ep, domains;
  };
  static constexpr Cluster kClusters[] = {{"Cluster-M",
                                           0.5,
                                           {2.52, 4.26, 5.82, 7.62, 12.65, 20.35},
                                           {2.48, 2.63, 2.74, 2.82, 3.01, 3.78}},
                                          {"Cluster-L",
                                           0.75,
                                           {3.74, 7.30, 10.69, 13.54, 18.59, 28.46},
                                           {3.49, 3.53, 3.54, 3.85, 4.24, 5.20}}};
  std::vector<DomainIteration> all;
  for (const Cluster& cluster : kClusters) {
    const auto crossing_s = [&](double megabytes) {
      return kExchanges * kGpus * cluster.crossing * megabytes * 1e6 / kBytesPerS;
    };
    const double rest = cluster.ep[0] - crossing_s(kMegabytes[0]);
    for (size_t i = 0; i < kMegabytes.size(); ++i) {
      all.push_back({cluster.name, kMegabytes[i], rest + crossing_s(kMegabytes[i]), rest,
                     cluster.ep[i], cluster.domains[i]});
    }
  }
  return all;
}

}  // namespace hearth

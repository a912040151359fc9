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
  static const std::vector<DomainCase> cases{{"Mix-1", of(0.049, 8, 4.7), 0.75, 4.7e6},
                                             {"Mix-2", of(0.049, 8, 2.35), 0.5, 2.35e6},
                                             {"AG-only-1", of(0.099, 3, 0.094), 0, 4.7e6},
                                             {"AG-only-2", of(0.099, 3, 0.047), 0, 2.35e6}};
  return cases;
}

StreamCase with_more_computation(StreamCase of) {
  of.before_s *= 10;
  return of;
}

StreamCase compressed(const DomainCase& of) {
  StreamCase made = with_more_computation(of.printed);
  made.expert_bytes = of.dense_bytes / kPaperRatio;
  return made;
}

StreamCase trained(const DomainCase& of, bool compresses) {
  StreamCase made = compressed(of);
  made.gradient_bytes = of.dense_bytes;
  if (!compresses) {
    made.expert_bytes = of.dense_bytes;
    return made;
  }
  made.shared_bytes = 2 * of.dense_bytes * (made.ranks - 1) / made.ranks;
  return made;
}

namespace {

constexpr double kLayers = 12, kGpus = 8, kCentreBytesPerS = 10e9 / 8;
constexpr double kExpertBytes = 2.0 * 768 * 3072 * sizeof(float);
constexpr std::array<double, 6> kMegabytes{6, 12, 24, 48, 96, 192};

struct PaperCluster {
  const char* name;
  double centres;
  std::array<double, 6> ep, domains;  // seconds, by kMegabytes

  double crossing_s(double megabytes) const {
    const double exchanges = 2 * kLayers, crossing = 1 - 1 / centres;
    return exchanges * kGpus * crossing * megabytes * 1e6 / kCentreBytesPerS;
  }
  double rest_s() const { return ep[0] - crossing_s(kMegabytes[0]); }
};

constexpr PaperCluster kClusters[] = {
    {"Cluster-M", 2, {2.52, 4.26, 5.82, 7.62, 12.65, 20.35}, {2.48, 2.63, 2.74, 2.82, 3.01, 3.78}},
    {"Cluster-L",
     4,
     {3.74, 7.30, 10.69, 13.54, 18.59, 28.46},
     {3.49, 3.53, 3.54, 3.85, 4.24, 5.20}}};

DomainCluster modelled(const PaperCluster& of) {
  DomainCluster made;
  made.name = of.name;
  made.rest_s = of.rest_s();
  made.dense_s = kLayers * kGpus * (of.centres - 1) * kExpertBytes / kCentreBytesPerS;
  made.weights_s = made.dense_s / kPaperRatio;
  made.gradients_s = made.dense_s;
  made.shared_s = kLayers * 2 * kExpertBytes * (1 - 1 / of.centres) / kCentreBytesPerS;
  return made;
}

}  // namespace

std::vector<DomainIteration> domain_iterations() {
  std::vector<DomainIteration> all;
  for (const PaperCluster& cluster : kClusters) {
    const DomainCluster model = modelled(cluster);
    for (size_t i = 0; i < kMegabytes.size(); ++i) {
      all.push_back({cluster.name, kMegabytes[i], model.rest_s + cluster.crossing_s(kMegabytes[i]),
                     model.rest_s, model.trained_s(), cluster.ep[i], cluster.domains[i]});
    }
  }
  return all;
}

std::vector<DomainCluster> domain_clusters() {
  std::vector<DomainCluster> all;
  for (const PaperCluster& cluster : kClusters) all.push_back(modelled(cluster));
  return all;
}

}  // namespace hearth

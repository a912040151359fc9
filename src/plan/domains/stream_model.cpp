#include "plan/domains/stream_model.h"

#include <algorithm>

#include "comm/expert_domains.h"

namespace hearth {

StreamTimes stream_times(const StreamCase& of, int32_t domain) {
  const ExpertDomains domains({{of.ranks, domain}});
  StreamTimes times;
  times.domain = domain;
  times.p = domains.travelling_share();
  const double others = domain - 1;
  times.gather_s = others * of.expert_bytes / of.bytes_per_s;
  times.exchange_s = of.row_bytes * (1 - static_cast<double>(domain) / of.ranks) / of.bytes_per_s;
  times.reduce_s = others * of.gradient_bytes / of.bytes_per_s;
  times.shared_s = domain > 1 ? of.shared_bytes / of.bytes_per_s : 0;
  times.paper_s = std::max(of.before_s, times.gather_s) + 2 * times.exchange_s;
  const double forward =
      std::max(of.before_s, times.gather_s) + std::max(2 * times.exchange_s, of.experts_s);
  // Backward computes twice as much. Gradients and the shared expert go while the layer before it
  // computes.
  const double again = of.gathers_again ? times.gather_s : 0;
  const double backward = std::max(2 * of.before_s, again + times.reduce_s + times.shared_s) +
                          std::max(2 * times.exchange_s, 2 * of.experts_s);
  times.layer_s = forward + backward;
  return times;
}

std::vector<StreamTimes> all_stream_times(const StreamCase& of) {
  std::vector<StreamTimes> all;
  for (int32_t domain = 1; domain <= of.ranks; ++domain) {
    if (of.ranks % domain == 0) all.push_back(stream_times(of, domain));
  }
  return all;
}

int32_t best_domain_of_paper(const StreamCase& of) {
  const std::vector<StreamTimes> all = all_stream_times(of);
  return std::ranges::min_element(all, {}, &StreamTimes::paper_s)->domain;
}

int32_t best_domain(const StreamCase& of) {
  const std::vector<StreamTimes> all = all_stream_times(of);
  return std::ranges::min_element(all, {}, &StreamTimes::layer_s)->domain;
}

double best_p_of_paper(const StreamCase& of) {
  if (of.ranks == 1 || of.expert_bytes <= 0) return 0;
  if (2 * of.row_bytes >= of.ranks * of.expert_bytes) return 0;
  return std::max(0.0, 1 - of.bytes_per_s * of.before_s / (of.expert_bytes * (of.ranks - 1)));
}

}  // namespace hearth

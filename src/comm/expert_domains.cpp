#include "comm/expert_domains.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace hearth {

ExpertDomains::ExpertDomains(std::vector<DomainLevel> levels) : levels_(std::move(levels)) {
  for (const DomainLevel& level : levels_) {
    HEARTH_CHECK(level.ranks > 0 && level.domain > 0 && level.ranks % level.domain == 0,
                 "expert domains: a size that does not divide its level");
  }
}

ExpertDomains ExpertDomains::of_neighbours(int32_t ranks, int32_t sharing) {
  HEARTH_CHECK(sharing > 0 && ranks % sharing == 0,
               "expert domains: ranks that share experts divide the ranks");
  return ExpertDomains({{ranks / sharing, ranks / sharing}, {sharing, 1}});
}

std::vector<ExpertDomains> ExpertDomains::of_levels(const std::vector<int32_t>& ranks) {
  std::vector<std::vector<DomainLevel>> choices{{}};
  for (const int32_t of_level : ranks) {
    std::vector<std::vector<DomainLevel>> longer;
    for (const std::vector<DomainLevel>& choice : choices) {
      for (int32_t domain = 1; domain <= of_level; ++domain) {
        if (of_level % domain != 0) continue;
        longer.push_back(choice);
        longer.back().push_back({of_level, domain});
      }
    }
    choices = std::move(longer);
  }
  std::vector<ExpertDomains> all(choices.begin(), choices.end());
  std::ranges::stable_sort(all, {}, &ExpertDomains::size);
  return all;
}

int32_t ExpertDomains::ranks() const {
  int32_t ranks = 1;
  for (const DomainLevel& level : levels_) ranks *= level.ranks;
  return ranks;
}

int32_t ExpertDomains::size() const {
  int32_t size = 1;
  for (const DomainLevel& level : levels_) size *= level.domain;
  return size;
}

int32_t ExpertDomains::sharing() const { return ranks() / size(); }

std::vector<int32_t> ExpertDomains::numbers(int32_t rank) const {
  HEARTH_CHECK(rank >= 0 && rank < ranks(), "expert domains: no such rank");
  std::vector<int32_t> numbers(levels_.size());
  for (size_t l = levels_.size(); l-- > 0;) {
    numbers[l] = rank % levels_[l].ranks;
    rank /= levels_[l].ranks;
  }
  return numbers;
}

int32_t ExpertDomains::position(int32_t rank) const {
  const std::vector<int32_t> x = numbers(rank);
  int32_t position = 0;
  for (size_t l = 0; l < levels_.size(); ++l) {
    position = position * levels_[l].domains() + x[l] % levels_[l].domains();
  }
  return position;
}

int32_t ExpertDomains::offset(int32_t rank) const {
  const std::vector<int32_t> x = numbers(rank);
  int32_t offset = 0;
  for (size_t l = 0; l < levels_.size(); ++l) {
    offset = offset * levels_[l].domain + x[l] / levels_[l].domains();
  }
  return offset;
}

int32_t ExpertDomains::rank_at(int32_t position, int32_t offset) const {
  int32_t rank = 0, stride = 1;
  for (size_t l = levels_.size(); l-- > 0;) {
    const DomainLevel& level = levels_[l];
    const int32_t domain = position % level.domains(), number = offset % level.domain;
    rank += stride * (number * level.domains() + domain);
    stride *= level.ranks;
    position /= level.domains();
    offset /= level.domain;
  }
  HEARTH_CHECK(position == 0 && offset == 0, "expert domains: no such rank");
  return rank;
}

std::vector<int32_t> ExpertDomains::hops(int32_t owner, int32_t source) const {
  const std::vector<int32_t> to = numbers(owner), from = numbers(source);
  std::vector<int32_t> hops;
  for (size_t l = 0; l < levels_.size(); ++l) {
    const int32_t domains = levels_[l].domains();
    if (to[l] % domains != from[l] % domains) hops.push_back(static_cast<int32_t>(l));
  }
  return hops;
}

double ExpertDomains::travelling_share() const {
  return ranks() == 1 ? 1 : static_cast<double>(ranks() - size()) / (ranks() - 1);
}

}  // namespace hearth

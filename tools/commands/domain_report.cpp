#include "commands/domain_report.h"

#include <fmt/format.h>

#include "study/domain_study.h"

namespace hearth {

namespace {

constexpr int32_t kRanks[] = {8, 16, 32};  // of Table VII

}  // namespace

Json domain_study_json() {
  JsonArray pairs, best, iterations;
  for (const int32_t ranks : kRanks) {
    for (const DomainPairs& of : domain_pairs(ranks)) {
      pairs.emplace_back(JsonObject{{"ranks", int64_t{of.ranks}},
                                    {"domain", int64_t{of.domain}},
                                    {"exchange", of.exchange},
                                    {"gather", of.gather}});
    }
  }
  for (const DomainCase& of : domain_cases()) {
    const StreamCase more = with_more_computation(of.printed);
    best.emplace_back(JsonObject{{"case", of.name},
                                 {"printed", int64_t{best_domain_of_paper(of.printed)}},
                                 {"printed_p", best_p_of_paper(of.printed)},
                                 {"tenfold", int64_t{best_domain_of_paper(more)}},
                                 {"tenfold_p", best_p_of_paper(more)},
                                 {"paper", int64_t{of.paper_domain()}},
                                 {"paper_p", of.paper_p}});
  }
  for (const DomainIteration& of : domain_iterations()) {
    iterations.emplace_back(JsonObject{{"cluster", of.cluster},
                                       {"row_megabytes", of.megabytes},
                                       {"ep_s", of.ep_s},
                                       {"domains_s", of.domains_s},
                                       {"paper_ep_s", of.paper_ep_s},
                                       {"paper_domains_s", of.paper_domains_s}});
  }
  return JsonObject{{"simulated", true},
                    {"pairs", std::move(pairs)},
                    {"best_domain", std::move(best)},
                    {"iterations", std::move(iterations)}};
}

std::string domain_study_text() {
  std::string text =
      "simulated, not run: HybridEP\n\n"
      "Table VII: pairs of ranks that exchange rows / experts, by domain size\n";
  for (const int32_t ranks : kRanks) {
    text += fmt::format("  {:>2} ranks", ranks);
    for (const DomainPairs& of : domain_pairs(ranks)) {
      text += fmt::format("  {}: {}/{}", of.domain, of.exchange, of.gather);
    }
    text += "\n";
  }
  text += "\nTable IV: the domain with the least time in the paper's model, of 8 GPUs (and p*)\n" +
          fmt::format("  {:<10} {:>14} {:>22} {:>7}\n", "case", "as printed", "10 x computation",
                      "paper");
  for (const DomainCase& of : domain_cases()) {
    const StreamCase more = with_more_computation(of.printed);
    text += fmt::format("  {:<10} {:>6} ({:.3f}) {:>14} ({:.3f}) {:>7}\n", of.name,
                        best_domain_of_paper(of.printed), best_p_of_paper(of.printed),
                        best_domain_of_paper(more), best_p_of_paper(more), of.paper_domain());
  }
  text += "\nTable V: seconds of an iteration, model and paper\n" +
          fmt::format("  {:<10} {:>5} {:>8} {:>8} {:>10} {:>10}\n", "", "MB", "ep", "domains",
                      "paper: ep", "domains");
  for (const DomainIteration& of : domain_iterations()) {
    text += fmt::format("  {:<10} {:>5.0f} {:>8.2f} {:>8.2f} {:>10.2f} {:>10.2f}\n", of.cluster,
                        of.megabytes, of.ep_s, of.domains_s, of.paper_ep_s, of.paper_domains_s);
  }
  return text;
}

}  // namespace hearth

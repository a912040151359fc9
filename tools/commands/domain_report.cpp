#include "commands/domain_report.h"

#include <fmt/format.h>

#include "study/domain_study.h"

namespace hearth {

namespace {

constexpr int32_t kRanks[] = {8, 16, 32};  // of Table VII

/// The best domain of a case of Table IV whose experts train, and what it gains over expert parallelism.
struct Trained {
  int32_t domain = 1;
  double gain = 1;
};
Trained trained_best(const DomainCase& of, bool compresses) {
  const StreamCase made = trained(of, compresses);
  const int32_t domain = best_domain(made);
  return {domain, stream_times(made, 1).layer_s / stream_times(made, domain).layer_s};
}

Json case_json(const DomainCase& of) {
  const StreamCase more = with_more_computation(of.printed);
  const Trained dense = trained_best(of, false), wired = trained_best(of, true);
  return JsonObject{{"case", of.name},
                    {"printed", int64_t{best_domain_of_paper(of.printed)}},
                    {"printed_p", best_p_of_paper(of.printed)},
                    {"tenfold", int64_t{best_domain_of_paper(more)}},
                    {"tenfold_p", best_p_of_paper(more)},
                    {"compressed", int64_t{best_domain_of_paper(compressed(of))}},
                    {"trained", int64_t{dense.domain}},
                    {"trained_gain", dense.gain},
                    {"trained_compressed", int64_t{wired.domain}},
                    {"trained_compressed_gain", wired.gain},
                    {"paper", int64_t{of.paper_domain()}},
                    {"paper_p", of.paper_p}};
}

Json cluster_json(const DomainCluster& of) {
  return JsonObject{
      {"cluster", of.name},         {"rest_s", of.rest_s},     {"dense_weights_s", of.dense_s},
      {"weights_s", of.weights_s},  {"shared_s", of.shared_s}, {"gradients_s", of.gradients_s},
      {"trained_s", of.trained_s()}};
}

std::string table_7() {
  std::string text = "Table VII: pairs of ranks that exchange rows / experts, by domain size\n";
  for (const int32_t ranks : kRanks) {
    text += fmt::format("  {:>2} ranks", ranks);
    for (const DomainPairs& of : domain_pairs(ranks)) {
      text += fmt::format("  {}: {}/{}", of.domain, of.exchange, of.gather);
    }
    text += "\n";
  }
  return text;
}

std::string table_4() {
  std::string text =
      "\nTable IV: the domain with the least time, of 8 GPUs\n"
      "  in the paper's model (and p*); with 10 x the computation; and weights at 1/50 of the "
      "bytes\n"
      "  with backward, dense gradients and the shared expert (and the gain over ep)\n" +
      fmt::format("  {:<10} {:>12} {:>12} {:>5} {:>13} {:>13} {:>6}\n", "case", "as printed",
                  "10 x", "1/50", "trains", "trains, 1/50", "paper");
  for (const DomainCase& of : domain_cases()) {
    const StreamCase more = with_more_computation(of.printed);
    const Trained dense = trained_best(of, false), wired = trained_best(of, true);
    text += fmt::format(
        "  {:<10} {:>4} ({:.3f}) {:>4} ({:.3f}) {:>5} {:>6} ({:.2f}) {:>6} ({:.2f}) {:>6}\n",
        of.name, best_domain_of_paper(of.printed), best_p_of_paper(of.printed),
        best_domain_of_paper(more), best_p_of_paper(more), best_domain_of_paper(compressed(of)),
        dense.domain, dense.gain, wired.domain, wired.gain, of.paper_domain());
  }
  return text;
}

std::string table_5() {
  std::string text =
      "\nTable V: seconds of an iteration, model and paper; and how much faster than ep\n" +
      fmt::format("  {:<10} {:>5} {:>6} {:>8} {:>7} {:>10} {:>8} {:>8} {:>7} {:>7}\n", "", "MB",
                  "ep", "domains", "trains", "paper: ep", "domains", "domains", "trains", "paper");
  for (const DomainIteration& of : domain_iterations()) {
    text += fmt::format(
        "  {:<10} {:>5.0f} {:>6.2f} {:>8.2f} {:>7.2f} {:>10.2f} {:>8.2f} {:>8.2f} {:>7.2f} "
        "{:>7.2f}\n",
        of.cluster, of.megabytes, of.ep_s, of.domains_s, of.trained_s, of.paper_ep_s,
        of.paper_domains_s, of.ep_s / of.domains_s, of.ep_s / of.trained_s,
        of.paper_ep_s / of.paper_domains_s);
  }
  text += "\nTable V: seconds of a data centre's link for experts, in an iteration\n" +
          fmt::format("  {:<10} {:>8} {:>14} {:>13} {:>13} {:>16} {:>17}\n", "", "the rest",
                      "dense weights", "weights, 1/50", "shared expert", "dense gradients",
                      "trains, at least");
  for (const DomainCluster& of : domain_clusters()) {
    text += fmt::format("  {:<10} {:>8.2f} {:>14.2f} {:>13.2f} {:>13.2f} {:>16.2f} {:>17.2f}\n",
                        of.name, of.rest_s, of.dense_s, of.weights_s, of.shared_s, of.gradients_s,
                        of.trained_s());
  }
  return text;
}

}  // namespace

Json domain_study_json() {
  JsonArray pairs, best, iterations, clusters;
  for (const int32_t ranks : kRanks) {
    for (const DomainPairs& of : domain_pairs(ranks)) {
      pairs.emplace_back(JsonObject{{"ranks", int64_t{of.ranks}},
                                    {"domain", int64_t{of.domain}},
                                    {"exchange", of.exchange},
                                    {"gather", of.gather}});
    }
  }
  for (const DomainCase& of : domain_cases()) best.push_back(case_json(of));
  for (const DomainIteration& of : domain_iterations()) {
    iterations.emplace_back(JsonObject{{"cluster", of.cluster},
                                       {"row_megabytes", of.megabytes},
                                       {"ep_s", of.ep_s},
                                       {"domains_s", of.domains_s},
                                       {"trained_s", of.trained_s},
                                       {"paper_ep_s", of.paper_ep_s},
                                       {"paper_domains_s", of.paper_domains_s}});
  }
  for (const DomainCluster& of : domain_clusters()) clusters.push_back(cluster_json(of));
  return JsonObject{{"simulated", true},
                    {"pairs", std::move(pairs)},
                    {"best_domain", std::move(best)},
                    {"iterations", std::move(iterations)},
                    {"clusters", std::move(clusters)}};
}

std::string domain_study_text() {
  return "simulated, not run: HybridEP\n\n" + table_7() + table_4() + table_5();
}

}  // namespace hearth

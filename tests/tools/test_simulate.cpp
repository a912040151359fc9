// hearth simulate as a user calls it.
#include <algorithm>
#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <numeric>

#include "base/json.h"
#include "base/sanitized.h"
#include "support/program.h"
#include "support/temporary_directory.h"
#include "support/test_paths.h"

using namespace hearth;
using namespace hearth::test;
using Catch::Approx;

namespace {

ProgramResult simulate(std::vector<std::string> words) {
  words.insert(words.begin(), {"simulate", "routing"});
  return run_program(test_binary(), words);
}

}  // namespace

TEST_CASE("simulate: the same numbers as ever") {
  const ProgramResult told = simulate(
      {"--experts", "8", "--top-k", "2", "--skew", "0.2", "--tokens", "1000", "--layers", "2",
       "--steps", "3", "--persistence", "0.75", "--seed", "7", "--token-hit", "0.85", "--json"});
  CHECK(told.exit_code == 0);
  CHECK(told.err == "");
  CHECK(told.out == read_file(test_data() + "/routing/small.json"));
}

TEST_CASE("simulate: the document has what it says") {
  const ProgramResult told =
      simulate({"--experts=64", "--top-k=8", "--skew=0.05", "--tokens=65536", "--layers=3",
                "--steps=6", "--persistence=0.73", "--seed=1", "--json"});
  REQUIRE(told.exit_code == 0);
  const Json document = parse_json(told.out, "stdout");
  const Json& routing = *document.find("routing");
  CHECK(routing.find("skew")->as_double() == 0.05);
  CHECK(routing.find("g_all")->as_double() <= 0.125);
  CHECK(routing.find("persistence")->as_double() == Approx(.73).margin(.01));
  CHECK(routing.find("predicted") == nullptr);
  const JsonArray& steps = routing.find("counts")->as_array();
  REQUIRE(steps.size() == 6);
  double skew = 0;
  for (const Json& step : steps) {
    REQUIRE(step.as_array().size() == 3);
    for (const Json& layer : step.as_array()) {
      REQUIRE(layer.as_array().size() == 64);
      double sum = 0, squares = 0;
      for (const Json& n : layer.as_array()) {
        sum += n.as_double();
        squares += n.as_double() * n.as_double();
      }
      CHECK(sum == 65536);
      skew += squares / sum / sum / 18;
    }
  }
  CHECK(routing.find("g")->as_double() == Approx(skew).epsilon(1e-12));
  CHECK(skew == Approx(.05).epsilon(.02));
}

TEST_CASE("simulate: tables and a trace") {
  const TemporaryDirectory directory;
  const ProgramResult told = simulate({"--experts", "32", "--skew", "0.1", "--steps", "2",
                                       "--trace", directory / "t.json", "--verbose"});
  REQUIRE(told.exit_code == 0);
  for (const char* line : {"\nskew G of first choices        0.1000", "\npersistence  ",
                           "\n  rank  first choices", "\nstep 2 layer 0: "}) {
    INFO(line << told.out);
    CHECK(told.out.find(line) != std::string::npos);
  }
  const Json trace = parse_json(read_file(directory / "t.json"), "t.json");
  REQUIRE(trace.find("traceEvents")->as_array().size() == 2);
  const Json& event = trace.find("traceEvents")->as_array()[1];
  CHECK(event.find("ts")->as_int() == 1000);
  double tokens = 0;
  for (const auto& [expert, n] : event.find("args")->as_object()) tokens += n.as_double();
  CHECK(tokens == 8192);
}

TEST_CASE("simulate: what cannot be is refused by name") {
  const auto refused = [](const std::vector<std::string>& words, const std::string& line) {
    const ProgramResult told = simulate(words);
    INFO(told.err);
    CHECK(told.exit_code == 2);
    CHECK(told.out == "");
    CHECK(told.err.find(line) != std::string::npos);
  };
  refused({"--experts", "8", "--skew", "0.1"}, "--skew 0.1: expected at least 1/E, 0.125");
  refused({"--experts", "8", "--skew", "1.01"}, "--skew: expected");
  refused({"--experts", "8", "--skew", "0"}, "--skew: expected");
  CHECK(simulate({"--experts", "8", "--skew", "0"}).err.find("missing") == std::string::npos);
  refused({"--experts", "8", "--skew", "nan"}, "--skew: expected");
  refused({"--experts", "8"}, "--skew is missing");
  refused({"--skew", "0.3"}, "--experts is missing");
  refused({"--experts", "8", "--skew", "0.3", "--top-k", "9"}, "--top-k 9: expected at most");
  refused({"--experts", "8", "--skew", "0.3", "--persistence", "1.1"}, "--persistence: expected");
  refused({"--experts", "64", "--skew", "0.02", "--tokens", "10"},
          "--tokens 10: too few for --skew 0.02: ");
  // Fewer tokens would do as well here, but the line says that these are too few.
  refused({"--experts", "128", "--skew", "0.029151914243579706", "--tokens", "100"},
          "the nearest that they can have is 0.029800; 128 would do");
  refused({"--experts", "4096", "--skew", "0.3", "--layers", "65536"},
          "--layers 65536: expected at most 4096 with --experts 4096");
  refused({"--experts", "4096", "--skew", "0.3", "--layers", "4", "--steps", "1025"},
          "--steps 1025: expected at most 1024 with these --layers and --experts");
  refused({"--experts", "8", "--skew", "0.3", "--gpus", "4"},
          "--gpus: no option of simulate routing; step has it");
  // What is wrong with the study is all that is told: no option of it counts.
  const auto study = [](std::vector<std::string> words, const std::string& problem) {
    words.insert(words.begin(), "simulate");
    const ProgramResult told = run_program(test_binary(), words);
    INFO(told.err);
    CHECK(told.exit_code == 2);
    CHECK(told.err.starts_with("hearth: " + problem));
    CHECK(std::ranges::count(told.err, '\n') == 1);
  };
  study({}, "expected a study: hearth simulate routing --experts E --skew G");
  study({"rooting", "--tokens", "0"},
        "expected routing, step, figure, zebra or domains, found 'rooting'");
  study({"figure"}, "simulate figure: expected 11, 12, 13 or 14\n");
  study({"figure", "15"}, "simulate figure: expected 11, 12, 13 or 14, found '15'");
  // The ends of the range are in it.
  CHECK(simulate({"--experts", "8", "--skew", "0.125", "--json"}).exit_code == 0);
  CHECK(simulate({"--experts", "8", "--skew", "1", "--json"}).exit_code == 0);
}

namespace {

ProgramResult step(std::vector<std::string> words) {
  words.insert(words.begin(), {"simulate", "step"});
  return run_program(test_binary(), words);
}

Json rows_of(const std::vector<std::string>& words) {
  const ProgramResult told = step(words);
  INFO(told.err);
  REQUIRE(told.exit_code == 0);
  const Json json = parse_json(told.out, "simulate step");
  CHECK(json.find("simulated")->as_bool());
  CHECK(json.find("tasks")->as_int() > 0);
  CHECK(json.find("seconds")->as_double() >= 0);
  return *json.find("rows");
}

double step_s(const Json& rows, const std::string& policy) {
  for (const Json& row : rows.as_array()) {
    if (row.find("policy")->as_string() == policy) return row.find("step_s")->as_double();
  }
  FAIL("no row of " << policy);
  return 0;
}

}  // namespace

TEST_CASE("simulate step: rows of all policies, the same in every run") {
  if (kSanitized) SKIP("steps of 64 layers under four policies, for minutes");
  const std::vector<std::string> words{"--shape", "S-8", "--gpus", "2", "--skew", "0.6", "--json"};
  const Json rows = rows_of(words);
  CHECK(rows.dump() == rows_of(words).dump());
  REQUIRE(rows.as_array().size() == 4);
  for (const Json& row : rows.as_array()) {
    INFO(row.dump());
    CHECK(row.find("shape")->as_string() == "S-8");
    CHECK(row.find("gpus")->as_int() == 2);
    CHECK(row.find("cores_per_gpu")->as_int() == 14);
    CHECK(row.find("batch")->as_int() == 128);
    CHECK(row.find("skew")->as_double() == 0.6);
    const double time = row.find("step_s")->as_double();
    CHECK(time > 0);
    CHECK(row.find("bound_s")->as_double() <= 1.02 * time);
    CHECK(row.find("tokens_per_s")->as_double() == Approx(128 * 128 / time));
    CHECK(row.find("bytes")->find("host->virtual:1") != nullptr);
  }
  CHECK(step_s(rows, "mobius") < step_s(rows, "gpipe-offload"));
  // A load to each GPU takes at least the time of its bytes.
  const Json& mobius = rows.as_array()[1];
  CHECK(mobius.find("bytes")->find("host->virtual:0")->as_double() / 10.5e9 <=
        mobius.find("step_s")->as_double());
}

TEST_CASE("simulate step: what changes a step, changes its time") {
  if (kSanitized) SKIP("eight steps of 64 layers, for minutes");
  const auto time = [](std::vector<std::string> more, const std::string& policy) {
    std::vector<std::string> words{"--shape", "S-8", "--gpus", "2", "--policy", policy, "--json"};
    if (std::ranges::find(more, "--skew") == more.end()) more.insert(more.end(), {"--skew", "0.6"});
    words.insert(words.end(), more.begin(), more.end());
    return step_s(rows_of(words), policy);
  };
  const double usual = time({}, "aptmoe");
  CHECK(time({"--link", "2G"}, "aptmoe") > 1.1 * usual);
  CHECK(time({"--root-link", "3G", "--roots", "1"}, "aptmoe") > 1.1 * usual);
  CHECK(time({"--cores-per-gpu", "4"}, "aptmoe") > usual);
  CHECK(time({"--batch", "256"}, "aptmoe") > 1.2 * usual);
  // Equal bytes and operations of a token: skew is nothing to a policy that loads all experts.
  CHECK(time({"--skew", "0.2"}, "mobius") == Approx(time({}, "mobius")).epsilon(0.02));
}

TEST_CASE("simulate step: auto becomes what the routing of the study makes fastest") {
  const Json rows = rows_of({"--shape", "S-8", "--gpus", "2", "--skew", "0.6", "--batch", "64",
                             "--policy", "aptmoe,mobius,auto", "--json"});
  const double own = step_s(rows, "auto");
  for (const char* other : {"aptmoe", "mobius"}) {
    INFO(other);
    CHECK(own <= 1.0101 * step_s(rows, other));
  }
  const std::string became = rows.as_array().back().find("became")->as_string();
  if (became == "aptmoe" || became == "mobius") CHECK(own == Approx(step_s(rows, became)));
}

TEST_CASE("simulate step: without updates, and with little memory") {
  const std::vector<std::string> words{"--shape", "S-8",      "--gpus", "2",     "--skew",
                                       "0.6",     "--policy", "mobius", "--json"};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return more;
  };
  if (!kSanitized) {
    const double usual = step_s(rows_of(words), "mobius");
    CHECK(step_s(rows_of(with({"--updates", "off"})), "mobius") < 0.99 * usual);
    CHECK(step_s(rows_of(with({"--updates", "on"})), "mobius") == usual);
    CHECK(step_s(rows_of(with({"--gpu-memory", "3G"})), "mobius") > 1.01 * usual);
  }
  const ProgramResult told = step(with({"--gpu-memory", "10M"}));
  CHECK(told.exit_code == 2);
  CHECK(told.err.find("does not fit 2 GPUs of 0.01 GB") != std::string::npos);
}

TEST_CASE("simulate step: cost tables and a trace") {
  const TemporaryDirectory dir;
  const std::string table = dir.path() + "/slow.json", trace = dir.path() + "/trace.json";
  std::ofstream(table) << R"({"format": "hearth-costs-1", "device": "cuda:0", "machine": "m",
    "made": "2026", "links": [], "entries": [
    {"kind": "experts", "phase": "forward", "dtype": "f32", "units": [1, 1000], "seconds": [1, 2]},
    {"kind": "experts", "phase": "backward", "dtype": "f32", "units": [1, 1000],
     "seconds": [1, 2]}]})";
  const std::vector<std::string> words{"--shape", "S-8",      "--gpus", "2",       "--skew", "0.6",
                                       "--json",  "--policy", "mobius", "--costs", table};
  // 64 layers, in each of 4 passes a second at least.
  CHECK(step_s(rows_of(words), "mobius") > 64);
  CHECK(step({"--shape", "S-8", "--skew", "0.6", "--costs", dir.path() + "/none"}).exit_code == 3);
  REQUIRE(step({"--shape", "S-8", "--gpus", "2", "--skew", "0.6", "--policy", "aptmoe", "--trace",
                trace})
              .exit_code == 0);
  const std::string text = read_file(trace);
  CHECK(text.find("experts backward layer 63") != std::string::npos);
  CHECK(text.find("decide forward layer 0") != std::string::npos);
}

TEST_CASE("simulate step: what cannot be is refused by name") {
  const auto refused = [](const std::vector<std::string>& words, const std::string& line) {
    const ProgramResult told = step(words);
    INFO(told.err);
    CHECK(told.exit_code == 2);
    CHECK(told.out == "");
    CHECK(told.err.find(line) != std::string::npos);
  };
  refused({"--skew", "0.3"}, "--shape is missing");
  refused({"--shape", "S-8"}, "--skew is missing");
  refused({"--shape", "S-9", "--skew", "0.3"}, "--shape: expected S-8, S-16,");
  refused({"--shape", "S-8", "--skew", "0.1"}, "--skew 0.1: expected at least 1/E, 0.125");
  refused({"--shape", "S-8", "--skew", "0.3", "--roots", "5"}, "--roots 5: expected at most");
  refused({"--shape", "S-8", "--skew", "0.3", "--batch", "127"},
          "--batch 127: expected a multiple of 4 micro-batches");
  refused({"--shape", "S-8", "--skew", "0.3", "--policy", "best"},
          "--policy: expected static, gpipe-offload,");
  refused({"--shape", "S-8", "--skew", "0.3", "--link", "0"}, "--link: expected more than 0");
  refused({"--shape", "S-8", "--skew", "0.3", "--tokens", "9"},
          "--tokens: no option of simulate step; routing has it");
}

namespace {

Json zebra_study() {
  const ProgramResult told = run_program(test_binary(), {"simulate", "zebra", "--json"});
  REQUIRE(told.exit_code == 0);
  return parse_json(told.out, "zebra");
}

double percent(const Json& use, const char* role) { return 100 * use.find(role)->as_double(); }

}  // namespace

TEST_CASE("simulate zebra: HeterMoE's models have the parameters of Table 2") {
  const Json study = zebra_study();
  CHECK(study.find("simulated")->as_bool());
  const JsonArray& models = study.find("models")->as_array();
  REQUIRE(models.size() == 5);
  for (const Json& model : models) {  // experts alone; the paper counts all, to two digits
    const double experts = model.find("expert_parameters")->as_double();
    const double paper = model.find("paper_parameters")->as_double();
    INFO(model.dump());
    CHECK(experts < paper * 1.025);
    CHECK(experts > paper * 0.95);
  }
  CHECK(models[2].find("expert_parameters")->as_double() == Approx(8 * 24 * 10.5 * 1024 * 1024));
}

TEST_CASE("simulate zebra: Table 3 without communication is above the paper's\\, in its order") {
  const JsonArray rows = zebra_study().find("utilisation")->as_array();
  REQUIRE(rows.size() == 2);
  const auto near = [](const Json& use, double attention, double experts) {
    CHECK(percent(use, "attention") == Approx(attention).margin(0.6));
    CHECK(percent(use, "experts") == Approx(experts).margin(0.6));
  };
  near(*rows[0].find("zebra"), 61, 98);
  near(*rows[0].find("algorithm_1"), 92, 97);
  near(*rows[1].find("zebra"), 84, 97);
  near(*rows[1].find("algorithm_1"), 95, 97);
  for (const Json& row : rows) {
    const double apart = percent(*row.find("apart"), "attention");
    const double zebra = percent(*row.find("zebra"), "attention");
    const double seed = percent(*row.find("algorithm_1"), "attention");
    const double shifted = percent(*row.find("shifted"), "attention");
    CHECK(apart < zebra);
    CHECK(zebra < seed);
    CHECK(seed <= shifted);
    CHECK(zebra > percent(*row.find("paper_zebra"), "attention"));
    CHECK(shifted > percent(*row.find("paper_shifted"), "attention"));
  }
}

TEST_CASE("simulate zebra: the gain of experts that move falls with the length") {
  const JsonArray rows = zebra_study().find("gain")->as_array();
  const double expected[] = {1.33, 1.22, 1.14, 1.07, 1.00, 1.00};
  REQUIRE(rows.size() == std::size(expected));
  double before = 2;
  for (size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].find("algorithm_1")->as_double() == Approx(expected[i]).margin(0.006));
    const double searched = rows[i].find("shifted")->as_double();
    CHECK(searched >= rows[i].find("algorithm_1")->as_double() - 1e-9);
    CHECK(searched < before);
    before = searched;
  }
}

TEST_CASE("simulate zebra: a table for people\\, and no option of other studies") {
  const ProgramResult told = run_program(test_binary(), {"simulate", "zebra"});
  CHECK(told.exit_code == 0);
  CHECK(told.out.starts_with("simulated, not run: HeterMoE"));
  CHECK(told.out.find("Mixtral-D3") != std::string::npos);
  const ProgramResult refused = run_program(test_binary(), {"simulate", "zebra", "--gpus", "4"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.err.find("--gpus: no option of simulate zebra; step has it") != std::string::npos);
}

TEST_CASE("simulate domains: the 30 numbers of HybridEP's Table VII") {
  const ProgramResult told = run_program(test_binary(), {"simulate", "domains", "--json"});
  REQUIRE(told.exit_code == 0);
  const Json study = parse_json(told.out, "domains");
  CHECK(study.find("simulated")->as_bool());
  std::string exchange, gather;
  for (const Json& of : study.find("pairs")->as_array()) {
    exchange += of.find("exchange")->dump() + " ";
    gather += of.find("gather")->dump() + " ";
  }
  CHECK(exchange == "56 24 8 0 240 112 48 16 0 992 480 224 96 32 0 ");
  CHECK(gather == "0 8 24 56 0 16 48 112 240 0 32 96 224 480 992 ");
}

TEST_CASE("simulate domains: Table IV with ten times the computation\\, Table V in its slope") {
  const ProgramResult told = run_program(test_binary(), {"simulate", "domains", "--json"});
  REQUIRE(told.exit_code == 0);
  const Json study = parse_json(told.out, "domains");
  std::string printed;
  for (const Json& of : study.find("best_domain")->as_array()) {
    printed += of.find("printed")->dump() + " ";
    CHECK(of.find("tenfold")->as_int() == of.find("paper")->as_int());
  }
  CHECK(printed == "1 2 8 8 ");
  const JsonArray& iterations = study.find("iterations")->as_array();
  REQUIRE(iterations.size() == 12);
  for (size_t i = 0; i < iterations.size(); i += 6) {
    const auto slope = [&](const char* key) {
      return (iterations[i + 5].find(key)->as_double() - iterations[i + 3].find(key)->as_double()) /
             144;
    };
    CHECK(slope("ep_s") == Approx(slope("paper_ep_s")).epsilon(0.15));
  }
  const ProgramResult table = run_program(test_binary(), {"simulate", "domains"});
  CHECK(table.exit_code == 0);
  CHECK(table.out.starts_with("simulated, not run: HybridEP"));
}

TEST_CASE("simulate domains: with compression the paper takes all\\, gradients do not let it") {
  const ProgramResult told = run_program(test_binary(), {"simulate", "domains", "--json"});
  REQUIRE(told.exit_code == 0);
  const Json study = parse_json(told.out, "domains");
  std::string trained;
  for (const Json& of : study.find("best_domain")->as_array()) {
    CHECK(of.find("compressed")->as_int() == 8);
    trained += of.find("trained")->dump() + "/" + of.find("trained_compressed")->dump() + " ";
    CHECK(of.find("trained_gain")->as_double() > 1);
    CHECK(of.find("trained_compressed_gain")->as_double() > 1);
  }
  // The first and the third have experts of 4.7 MB.
  CHECK(trained == "4/4 8/8 4/4 8/8 ");
  const JsonArray& clusters = study.find("clusters")->as_array();
  REQUIRE(clusters.size() == 2);
  // 12 layers of 8 GPUs with an expert of 18 MiB each, over 10 Gb/s; to one data centre, and to three.
  const double once = 12 * 8 * 18.0 * (1 << 20) / 1.25e9;
  for (size_t i = 0; i < clusters.size(); ++i) {
    const auto of = [&](const char* key) { return clusters[i].find(key)->as_double(); };
    const double centres = i == 0 ? 2 : 4;
    CHECK(of("gradients_s") == Approx((centres - 1) * once));
    CHECK(of("dense_weights_s") == Approx(of("gradients_s")));
    CHECK(of("weights_s") == Approx(of("gradients_s") / 50));
    CHECK(of("shared_s") == Approx(2 * (1 - 1 / centres) * once / 8));
    CHECK(of("trained_s") ==
          Approx(std::max(of("rest_s"), of("weights_s") + of("shared_s") + of("gradients_s"))));
  }
  // Four data centres take longer for gradients alone than the paper's whole iteration with domains.
  const Json& six_megabytes = study.find("iterations")->as_array()[6];
  CHECK(six_megabytes.find("cluster")->as_string() == "Cluster-L");
  CHECK(clusters[1].find("gradients_s")->as_double() >
        six_megabytes.find("paper_domains_s")->as_double());
}

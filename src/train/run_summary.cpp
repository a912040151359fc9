#include "train/run_summary.h"

#include <cmath>
#include <optional>

#include "data/rows/line_reader.h"
#include "record/journal.h"

namespace hearth {

namespace {

struct LoggedSteps {
  Json first, last;  // losses
  double seconds = 0;
};

LoggedSteps read_steps(const std::string& path) {
  LoggedSteps steps;
  ByteStream bytes(path);
  LineReader lines(bytes);
  while (const auto line = lines.next()) {
    const Json json = parse_json(*line, lines.where());
    const Json* loss = json.find("loss");
    const Json* seconds = json.find("time_s");
    steps.last = loss == nullptr ? Json() : *loss;
    if (lines.number() == 1) steps.first = steps.last;
    if (seconds != nullptr && seconds->is_number()) steps.seconds += seconds->as_double();
  }
  return steps;
}

Json loss_or_null(std::optional<double> loss) { return loss ? Json(*loss) : Json(); }

}  // namespace

Json run_summary(const TrainConfig& config) {
  const JournaledRun run = read_journaled_run(config.out + "/journal.jsonl");
  const LoggedSteps steps = read_steps(config.out + "/metrics.jsonl");
  std::optional<std::pair<int64_t, double>> best;
  for (const auto& [step, loss] : run.evaluation_losses) {
    if (step > 0 && std::isfinite(loss) && (!best || loss < best->second)) best = {step, loss};
  }
  std::optional<double> after = run.loss_at(run.end.value_or(0));
  if (config.load_best && best) after = best->second;
  Json of_best;
  if (best) of_best = JsonObject{{"step", best->first}, {"eval_loss", best->second}};
  return JsonObject{
      {"result", config.out + (config.method == Method::lora ? "/adapter" : "/model")},
      {"verdict", run.alarm ? "alarm" : "ok"},
      {"steps", run.end ? Json(*run.end) : Json()},
      {"loss", JsonObject{{"first", steps.first}, {"last", steps.last}}},
      {"eval_loss",
       JsonObject{{"before", loss_or_null(run.loss_at(0))}, {"after", loss_or_null(after)}}},
      {"best", std::move(of_best)},
      {"time_s", steps.seconds}};
}

}  // namespace hearth

// hearth report: one HTML page of a run, or of two over each other.
#include "base/error.h"
#include "base/file_ops.h"
#include "commands/commands.h"
#include "commands/output.h"
#include "options/option_lookup.h"
#include "options/option_table.h"
#include "report/comparison.h"
#include "report/page.h"

namespace hearth {
namespace {

OptionDefaults defaults_of_train() {
  OptionDefaults defaults;
  for (const TrainConfig::Recorded& option : recorded_options(Options{})) {
    defaults.emplace(option.name, option.value);
  }
  return defaults;
}

}  // namespace

ExitCode run_report(const Options& options) {
  if (file_info(options.out).kind == FileKind::directory) {
    throw usage_error("--out " + quoted(options.out) + ": is a directory; give the name of a file");
  }
  const bool compares = !options.compare.empty();
  const std::string& directory = compares ? options.compare[0] : options.operand;
  const RunHistory run = read_run(directory);
  const std::string page =
      compares ? comparison_page(run, read_run(options.compare[1]), defaults_of_train())
               : report_page(run, defaults_of_train());
  const std::string path = options.out.empty() ? directory + "/report.html" : options.out;
  write_file_atomically(path, page);
  if (options.json) {
    print_json(JsonObject{{"out", path}});
  } else {
    print(path + "\n");
  }
  return ExitCode::done;
}

}  // namespace hearth

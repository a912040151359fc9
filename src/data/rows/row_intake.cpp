#include "data/rows/row_intake.h"

#include <algorithm>

#include "base/counted.h"
#include "base/error_format.h"
#include "base/log.h"
#include "base/setting.h"

namespace hearth {

void RowTotals::count(int64_t whole, int64_t given, int64_t trained_here) {
  ++rows;
  tokens += given;
  trained_tokens += trained_here;
  untrained += trained_here == 0 ? 1 : 0;
  truncated += given < whole ? 1 : 0;
  truncated_tokens += whole - given;
}

bool is_dropped(const RowOptions& options, int64_t length) {
  return options.overflow == Overflow::drop && options.seq_len != 0 && length > options.seq_len;
}

void check_length(const RowOptions& options, int64_t length, const std::string& file,
                  int64_t line) {
  if (options.overflow != Overflow::error || options.seq_len == 0 || length <= options.seq_len) {
    return;
  }
  throw input_error("{}:{}: {} ids, more than {}", file, line, length,
                    spelled(Setting::seq_len, std::to_string(options.seq_len)));
}

void pass_over_bad_row(const RowOptions& options, int64_t& bad, const std::string& message) {
  if (bad >= options.skip_bad_rows) throw input_error(message);
  ++bad;
  log_warning("skipped a bad row: " + message);
}

bool RowIntake::take(ConvertedRow& row) {
  if (row.error) {
    try {
      std::rethrow_exception(row.error);
    } catch (const BadRow& error) {  // only what is wrong with this row is tolerated
      pass_over_bad_row(options_, totals_.bad, error.what());
    }
    return false;
  }
  Sample& sample = row.sample;
  const auto whole = static_cast<int64_t>(sample.ids.size());
  check_length(options_, whole, sample.file, sample.line);
  if (is_dropped(options_, whole)) {
    ++totals_.dropped;
    return false;
  }
  const int64_t given = options_.seq_len == 0 ? whole : std::min(whole, options_.seq_len);
  sample.ids.resize(given);
  sample.labels.resize(given);
  if (!sample.spans.empty()) sample.spans.resize(given);
  totals_.count(whole, given, count_trained(sample.labels));
  return true;
}

void require_trained_rows(const RowTotals& totals, const std::vector<std::string>& files) {
  const std::string what =
      files.size() == 1 ? files[0] : std::to_string(files.size()) + " data files";
  if (totals.rows == 0) {
    throw input_error("{}: no rows{}", what,
                      totals.dropped > 0
                          ? fmt::format(" (all {} are longer than {} and were dropped)",
                                        totals.dropped, spelled(Setting::seq_len))
                          : "");
  }
  if (totals.trained_tokens == 0) {
    throw input_error(
        "{}: no trained token in any row{}", what,
        totals.truncated > 0
            ? fmt::format("; {} of {} are cut before what is trained: raise {}", totals.truncated,
                          counted(totals.rows, "row"), spelled(Setting::seq_len))
            : "");
  }
}

}  // namespace hearth

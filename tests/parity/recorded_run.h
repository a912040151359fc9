// Runs of the program on recorded cases.
#pragma once

#include <string>
#include <vector>

#include "parity/recorded_case.h"

namespace hearth::test {

/// Runs the program of this build, or the one that HEARTH_TEST_PROGRAM names, with these words and
/// those options of the case; it must end with 0. On one worker: results do not depend on how many,
/// and on such small models workers mostly wait for each other. Returns what it printed.
std::string run_case(const RecordedCase& c, std::vector<std::string> words,
                     const std::vector<std::string>& options);

/// `train` with the case's options and the given words; the result goes to `out`.
void train_case(const RecordedCase& c, const std::string& out,
                const std::vector<std::string>& words = {});

/// `export` of the case's model with an adapter merged.
void export_case(const RecordedCase& c, const std::string& adapter, const std::string& out);

/// The lines of metrics.jsonl of a run.
std::vector<Json> read_metrics(const std::string& run);

/// A failed check names the value, both numbers and the error.
void check_close(const std::string& what, double actual, double expected, double tolerance);

/// The cases on the first GPU; skips the test, with the reason, where there is none.
std::vector<RecordedCase> on_a_gpu(std::vector<RecordedCase> cases);

}  // namespace hearth::test

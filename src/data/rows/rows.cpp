#include "data/rows/rows.h"

#include "data/rows/raw_rows.h"
#include "data/rows/row_converter.h"
#include "data/rows/row_intake.h"

namespace hearth {

std::vector<uint8_t> Sample::trained() const {
  std::vector<uint8_t> flags(labels.size());
  for (size_t i = 1; i < labels.size(); ++i) flags[i] = labels[i] != kIgnoredLabel;
  return flags;
}

struct RowReader::State {
  RawRowSource source;
  RowConverter converter;
  RowIntake intake;
  RawRow raw;
};

RowReader::RowReader(std::vector<std::string> files, const RowOptions& options) {
  check_data_files(files);
  state_.reset(new State{RawRowSource(std::move(files), options.max_samples),
                         RowConverter(options),
                         RowIntake(options),
                         {}});
}

RowReader::~RowReader() = default;

bool RowReader::next(Sample& sample) {
  while (state_->source.next(state_->raw)) {
    ConvertedRow row = state_->converter.try_convert(state_->raw);
    if (!state_->intake.take(row)) continue;
    sample = std::move(row.sample);
    return true;
  }
  return false;
}

const RowTotals& RowReader::totals() const { return state_->intake.totals(); }

const std::vector<std::pair<std::string, Digest>>& RowReader::digests() const {
  return state_->source.digests();
}

}  // namespace hearth

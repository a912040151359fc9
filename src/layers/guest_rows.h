// Rows that go to the rank that computes them and come back, if ranks share the experts: what the tasks
// of both ways have in common.
#pragma once

#include <span>
#include <vector>

#include "layers/body.h"

namespace hearth {

/// A value that goes to another rank, where it is another value: of the two, one is of guests' rows.
struct SentValue {
  Value from, to;
  int64_t cols = 1;
  bool is_number = false;  // i32
};

/// The ports of a round that sends these values, as far as this rank sends or gets them: the counts of
/// rows, then both sides of each value. `received`: how it writes what comes.
std::vector<Port> exchange_ports(const TaskShape& s, std::span<const SentValue> values,
                                 Access received);
/// Exchanges them: the rows of the guests of the task's part, and those of this rank that another one
/// computes in this round.
void exchange_rows(const BodyContext& c, RowsGo go, std::span<const SentValue> values);

/// Rows [begin, end) of a micro-batch of a task, of a value that lies apart for each (BoundPort): of one
/// that the task reads, and of one that it writes.
ConstView read_rows(const BodyContext& c, Value value, int64_t segment, int64_t begin, int64_t end);
View written_rows(const BodyContext& c, Value value, int64_t segment, int64_t begin, int64_t end);

}  // namespace hearth

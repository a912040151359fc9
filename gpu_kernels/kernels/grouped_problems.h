// The products of groups as tables in device memory, in the form that libraries take. Computed on
// the device, because only the device knows the rows of each group.
#pragma once

#include <cstddef>

#include "base/arena.h"
#include "gpu_kernels/libraries/grouped_libraries.h"

namespace hearth::HEARTH_GPU {

/// c[rows, columns] (+)= a b, summed over depth.
struct GroupedShape {
  int32_t rows = 0, columns = 0, depth = 0;
  bool operator==(const GroupedShape&) const = default;
};

/// Arrays in device memory, with one element per group. Matrices are row-major, with strides in
/// elements: a is [rows, depth], in wgrad [depth, rows]; b is [columns, depth] in forward, else
/// [depth, columns]. A group with nothing to compute has the shape 0, 0, 0.
struct GroupedProblems {
  GroupedShape* shape = nullptr;
  const void** a = nullptr;
  const void** b = nullptr;
  float** c = nullptr;
  int64_t *a_stride = nullptr, *b_stride = nullptr, *c_stride = nullptr;
};

/// Takes uninitialised tables.
GroupedProblems take_grouped_problems(Scratch& scratch, int64_t groups);
/// The scratch that take_grouped_problems takes.
size_t grouped_problem_bytes(int64_t groups);

/// A product as the kernel takes it; `groups` is device memory.
struct GroupedProblemArgs {
  Form form = Form::forward;
  int32_t segment = 0;
  int32_t group_count = 0;
  const ProductGroup* groups = nullptr;
  const int32_t* offsets = nullptr;
  int32_t offset_step = 1;
  Operand a, b;
  float* c = nullptr;
  int64_t c_stride = 0;
  GroupedProblems to;
};
GroupedProblemArgs grouped_problem_args(const GroupedProduct& product, const ProductGroup* groups,
                                        const GroupedProblems& to);

/// Enqueues and returns.
void grouped_problems_on(void* stream, const GroupedProblemArgs& args);

}  // namespace hearth::HEARTH_GPU

// Where the environment plants a fault, the files of a test program are read with it.
#include <memory>

#include "support/faulty_files.h"
#include "support/planted.h"

namespace hearth::test {
namespace {

const std::unique_ptr<FileCallsOverride> for_ever =
    any_planted() ? std::make_unique<FileCallsOverride>(faulty_files()) : nullptr;

}  // namespace
}  // namespace hearth::test

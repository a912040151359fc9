// A test program does not wait for the disk: no power is lost there, and it makes thousands of calls.
// Which call comes before which sync is tested by crash states (support/crash_states.h).
#include <memory>

#include "support/layered_calls.h"
#include "support/planted.h"

namespace hearth::test {
namespace {

class UnsyncedFiles final : public LayeredCalls {
 public:
  int sync(int) override { return 0; }
};

UnsyncedFiles unsynced_files;
// Planted faults have calls of their own (support/install_faulty_files.cpp).
const std::unique_ptr<FileCallsOverride> unsynced_for_ever =
    any_planted() ? nullptr : std::make_unique<FileCallsOverride>(unsynced_files);

}  // namespace
}  // namespace hearth::test

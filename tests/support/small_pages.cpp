// No huge pages for a test program that compares memory with what was planned: the system makes them of
// pages that are in use and those beside them, at any time, and then what a run takes is not what it has
// touched.
#include <sys/prctl.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>

namespace hearth::test {
namespace {

class SmallPages final : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;
  void testRunStarting(const Catch::TestRunInfo&) override {
    ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  }
};
CATCH_REGISTER_LISTENER(SmallPages)

}  // namespace
}  // namespace hearth::test

#include "base/version.h"

#include "build_info.inc"  // written by the build, see cmake/HearthBuildInfo.cmake

namespace hearth {

const BuildInfo& build_info() {
  static const BuildInfo info{HEARTH_BUILD_VERSION,  HEARTH_BUILD_REVISION, HEARTH_BUILD_BUILD_TYPE,
                              HEARTH_BUILD_COMPILER, HEARTH_BUILD_FLAGS,    HEARTH_BUILD_SANITIZE,
                              HEARTH_BUILD_CUDA,     HEARTH_BUILD_CUTLASS,  HEARTH_BUILD_CUDNN};
  return info;
}

}  // namespace hearth

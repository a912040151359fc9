#pragma once

#include <string>

namespace hearth {

// Facts about the build. `hearth --version` and a run's recorded configuration show them, with
// library versions and instruction sets that other rooms add.
struct BuildInfo {
  std::string version;     // of the project, e.g. "0.1.0"
  std::string revision;    // git commit, 12 digits, "-modified" with local changes; or "unknown"
  std::string build_type;  // Release, Debug, ...
  std::string compiler;    // e.g. "GNU 12.2.0"
  std::string flags;       // of the build type, without the project's fixed flags
  std::string sanitizers;  // e.g. "address,undefined"; empty in plain builds
  // Versions that GPU code was compiled with, or "none: " and the reason.
  std::string cuda;     // toolkit version, and the GPU architectures
  std::string cutlass;  // version of its headers
  std::string cudnn;    // versions of its header and its frontend's
};

const BuildInfo& build_info();

}  // namespace hearth

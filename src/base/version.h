#pragma once

#include <string>

namespace hearth {

// What the build knows about itself. `hearth --version` and the recorded configuration of a run
// show it; library versions and the machine's instruction set are added by those who know them.
struct BuildInfo {
  std::string version;     // of the project, e.g. "0.1.0"
  std::string revision;    // git commit, 12 digits, "-modified" with local changes; or "unknown"
  std::string build_type;  // Release, Debug, ...
  std::string compiler;    // e.g. "GNU 12.2.0"
  std::string flags;       // compiler flags of the build type, without the project's fixed ones
  std::string sanitizers;  // e.g. "address,undefined"; empty in plain builds
  // Of GPU code: versions that it was compiled with, or "none: " and the reason.
  std::string cuda;     // the toolkit, and the GPUs that there is code for
  std::string cutlass;  // its headers
  std::string cudnn;    // its header and its frontend's
};

const BuildInfo& build_info();

}  // namespace hearth

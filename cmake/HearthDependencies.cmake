# Third-party libraries; scripts/setup installs them by name. None is downloaded by the build.
set(hearth_setup_hint "Run scripts/setup, which installs what is missing.")

find_package(Threads REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc>=2.9)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(PCRE2 REQUIRED IMPORTED_TARGET libpcre2-8)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(ZSTD REQUIRED IMPORTED_TARGET libzstd>=1.4)
pkg_check_modules(LZMA REQUIRED IMPORTED_TARGET liblzma)

foreach(package fmt spdlog nlohmann_json yaml-cpp CLI11)
  find_package(${package} CONFIG QUIET)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${package} not found. ${hearth_setup_hint}")
  endif()
endforeach()

if(NOT TARGET yaml-cpp::yaml-cpp)  # its name since 0.8
  add_library(yaml-cpp::yaml-cpp ALIAS yaml-cpp)
endif()

# No version in the call: the package file accepts the same major only, so 2.6 would refuse 3.x.
find_package(dnnl CONFIG QUIET)
if(NOT TARGET DNNL::dnnl OR dnnl_VERSION VERSION_LESS 2.6)
  message(FATAL_ERROR
    "oneDNN 2.6 or newer not found. ${hearth_setup_hint} Debian: libdnnl-dev ocl-icd-opencl-dev; "
    "elsewhere set -Ddnnl_DIR=<prefix>/lib/cmake/dnnl.")
endif()

if(HEARTH_TESTS)
  find_package(Catch2 3 CONFIG QUIET)
  if(NOT Catch2_FOUND)
    message(FATAL_ERROR "Catch2 3 not found. ${hearth_setup_hint} "
                        "-DHEARTH_TESTS=OFF builds without the tests.")
  endif()
endif()

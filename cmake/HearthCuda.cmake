# Whether the CUDA back end is built, and how. nvcc takes as long as all the rest together, so
# HEARTH_CUDA=AUTO builds it only if this machine has an NVIDIA driver or `scripts/setup --cuda` asked
# for it, and only if it can be built. ON (preset cuda) always builds it, or fails; OFF leaves it out.
# Sets HEARTH_CUDA_FOUND, or gives the reason in HEARTH_CUDA_WHY_NOT. Without CUDA the null back ends
# are built.
set(HEARTH_CUDA AUTO CACHE STRING "CUDA back end: AUTO, ON or OFF")
set_property(CACHE HEARTH_CUDA PROPERTY STRINGS AUTO ON OFF)
set(HEARTH_CUDA_ARCHITECTURES 80-real 89-real 90a-real 120-real 90-virtual
    CACHE STRING "GPUs that there is code for; -virtual: PTX, which newer ones compile")
set(hearth_cuda_oldest 12.8)

set(HEARTH_CUDA_FOUND OFF)
set(HEARTH_CUDA_WHY_NOT "")
if(NOT HEARTH_CUDA MATCHES "^(AUTO|ON|TRUE|1)$")
  set(HEARTH_CUDA_WHY_NOT "HEARTH_CUDA is ${HEARTH_CUDA}")
elseif(HEARTH_CUDA STREQUAL "AUTO" AND NOT EXISTS "/proc/driver/nvidia/version" AND
       NOT EXISTS "/dev/dxg" AND NOT EXISTS "${PROJECT_SOURCE_DIR}/build/with_cuda")
  set(HEARTH_CUDA_WHY_NOT "this machine has no NVIDIA driver (scripts/setup --cuda asks for it)")
elseif(HEARTH_SANITIZE OR HEARTH_COVERAGE)
  set(HEARTH_CUDA_WHY_NOT "instrumented builds have no CUDA")
elseif(NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(HEARTH_CUDA_WHY_NOT "nvcc is used with g++ alone, not with ${CMAKE_CXX_COMPILER_ID}")
else()
  find_package(CUDAToolkit ${hearth_cuda_oldest} QUIET)
  if(NOT CUDAToolkit_NVCC_EXECUTABLE)
    set(HEARTH_CUDA_WHY_NOT "no nvcc ${hearth_cuda_oldest} or newer was found")
  elseif(NOT TARGET CUDA::cudart_static)
    set(HEARTH_CUDA_WHY_NOT "the CUDA toolkit has no libcudart_static.a")
  endif()
endif()

if(HEARTH_CUDA_WHY_NOT STREQUAL "")
  set(HEARTH_CUDA_FOUND ON)
  set(CMAKE_CUDA_COMPILER "${CUDAToolkit_NVCC_EXECUTABLE}" CACHE FILEPATH "nvcc")
  set(CMAKE_CUDA_HOST_COMPILER "${CMAKE_CXX_COMPILER}" CACHE FILEPATH "g++ for nvcc")
  set(CMAKE_CUDA_ARCHITECTURES ${HEARTH_CUDA_ARCHITECTURES})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)  # one binary for machines with and without a driver
  if(CCACHE_PROGRAM AND NOT CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
  endif()
  enable_language(CUDA)
  if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 knows no nvcc 13
    set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
  endif()
  # No fast-math. The host's part of a kernel file is held to the warnings of the rest, but for
  # -Wpedantic, which nvcc's own output does not pass.
  set(CMAKE_CUDA_FLAGS_RELEASE "-O3 -DNDEBUG")
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler=-Wall,-Wextra,-Wshadow,-Werror,-ffp-contract=off>"
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Xcompiler=-march=x86-64-v3>"
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror=all-warnings>"
    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:--expt-relaxed-constexpr --extended-lambda>")
  message(STATUS "CUDA ${CUDAToolkit_VERSION} for ${HEARTH_CUDA_ARCHITECTURES}")
elseif(HEARTH_CUDA STREQUAL "AUTO" OR HEARTH_CUDA STREQUAL "OFF")
  message(STATUS "No CUDA back end: ${HEARTH_CUDA_WHY_NOT}")
else()
  message(FATAL_ERROR "HEARTH_CUDA is ON, but ${HEARTH_CUDA_WHY_NOT}. "
                      "-DHEARTH_CUDA=OFF builds without it.")
endif()

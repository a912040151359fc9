# Language, warnings and code generation for every target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, Debug or RelWithDebInfo" FORCE)
endif()

# -O2 keeps builds short and warnings honest; the rooms of hot loops ask for -O3 (OPTIMIZE).
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

# x86-64-v3 is the oldest machine supported; faster loops are chosen at run time. Contraction of
# a*b+c would make results depend on the optimizer, so it is off for the whole program. (What nvcc
# gets is said in HearthCuda.)
foreach(flag -Wall -Wextra -Wpedantic -Wshadow -Werror -ffp-contract=off -march=x86-64-v3)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${flag}>)
endforeach()
add_compile_options($<$<CONFIG:Debug>:-D_GLIBCXX_ASSERTIONS>)
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc takes the sources of a unity file for headers, where an anonymous namespace would be a fault.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION MATCHES "^13\\.")
  # Ubuntu 24.04's. Its flow analysis finds faults in fmt's headers that no run has; gcc 12 and 14
  # do not, and they check the same sources.
  foreach(warning array-bounds stringop-overflow stringop-overread maybe-uninitialized)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-error=${warning}>)
  endforeach()
endif()

# Checks name their source relative to the source folder, so that clones share compiled objects.
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=>)

if(HEARTH_SANITIZE)
  add_compile_options(-fsanitize=${HEARTH_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${HEARTH_SANITIZE})
  find_program(HEARTH_LLD ld.lld)
  if(HEARTH_LLD)  # programs of 100 MB, in a quarter of the time
    add_link_options(-fuse-ld=lld)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Instrumentation hides initialisations from gcc's flow analysis; the plain builds check them.
    add_compile_options(-Wno-maybe-uninitialized)
  else()
    # Nor does an instrumented loop become a vectorised one.
    add_compile_options(-Wno-pass-failed)
  endif()
endif()

if(HEARTH_COVERAGE)
  # Counters in the rooms that scripts/coverage reports of, wherever their headers are compiled;
  # paths relative to the source folder, as clones share the cache. Atomic: threads lose no counts,
  # and neither do exceptions that leave a loop, whose counts are else added at its end.
  add_compile_options(-fprofile-instr-generate -fprofile-update=atomic -fcoverage-mapping
                      "-fprofile-list=${PROJECT_SOURCE_DIR}/cmake/coverage_rooms.txt"
                      "-fcoverage-prefix-map=${PROJECT_SOURCE_DIR}=." -Wno-pass-failed)
  add_link_options(-fprofile-instr-generate)
endif()

if(HEARTH_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "HEARTH_FUZZ needs clang: set -DCMAKE_CXX_COMPILER=clang++")
  endif()
endif()

# Paths below the source folder are cached relative to it, so that clones share the cache.
find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}"
      "${CCACHE_PROGRAM}")
endif()

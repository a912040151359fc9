# Writes generated/build_info.inc, the facts behind `hearth --version` that only the build knows.
# The revision is looked up at every build, and the file is touched only when something changed.
set(build_info_file "${PROJECT_BINARY_DIR}/generated/build_info.inc")
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type_upper)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type_upper}}" build_flags)

add_custom_target(hearth_build_info
  COMMAND "${CMAKE_COMMAND}"
    "-DOUTPUT=${build_info_file}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}"
    "-DVERSION=${PROJECT_VERSION}" "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}"
    "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    "-DFLAGS=${build_flags}" "-DSANITIZE=${HEARTH_SANITIZE}"
    -P "${PROJECT_SOURCE_DIR}/cmake/WriteBuildInfo.cmake"
  BYPRODUCTS "${build_info_file}"
  VERBATIM
  COMMENT "Build information")

get_property(base_type TARGET hearth_base PROPERTY TYPE)
if(NOT base_type STREQUAL "INTERFACE_LIBRARY")
  add_dependencies(hearth_base hearth_build_info)
  target_include_directories(hearth_base PRIVATE "${PROJECT_BINARY_DIR}/generated")
endif()

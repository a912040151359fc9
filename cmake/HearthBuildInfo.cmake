# Writes generated/build_info.inc, the facts behind `hearth --version` that only the build knows.
# The revision is looked up at every build, and the file is touched only when something changed.
set(build_info_file "${PROJECT_BINARY_DIR}/generated/build_info.inc")
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type_upper)
string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type_upper}}" build_flags)

# Of GPU code: versions, or why it is left out.
set(build_cuda "none: ${HEARTH_CUDA_WHY_NOT}")
if(HEARTH_CUDA_FOUND)
  set(gpus "")  # "80-real;90-virtual" as "sm_80, PTX 90"
  foreach(architecture IN LISTS HEARTH_CUDA_ARCHITECTURES)
    string(REGEX REPLACE "-real$" "" architecture "sm_${architecture}")
    string(REGEX REPLACE "^sm_(.*)-virtual$" "PTX \\1" architecture "${architecture}")
    list(APPEND gpus "${architecture}")
  endforeach()
  string(JOIN ", " gpus ${gpus})
  set(build_cuda "${CUDAToolkit_VERSION} for ${gpus}")
endif()
set(build_cutlass "none: ${HEARTH_CUTLASS_WHY_NOT}")
if(HEARTH_CUTLASS_FOUND)
  set(build_cutlass "headers ${hearth_cutlass_version}")
endif()
set(build_cudnn "none: ${HEARTH_CUDNN_WHY_NOT}")
if(HEARTH_CUDNN_FOUND)
  set(build_cudnn "headers ${hearth_cudnn_version}, frontend ${hearth_frontend_version}")
endif()

add_custom_target(hearth_build_info
  COMMAND "${CMAKE_COMMAND}"
    "-DOUTPUT=${build_info_file}" "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}"
    "-DVERSION=${PROJECT_VERSION}" "-DBUILD_TYPE=${CMAKE_BUILD_TYPE}"
    "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    "-DFLAGS=${build_flags}" "-DSANITIZE=${HEARTH_SANITIZE}"
    "-DCUDA=${build_cuda}" "-DCUTLASS=${build_cutlass}" "-DCUDNN=${build_cudnn}"
    -P "${PROJECT_SOURCE_DIR}/cmake/WriteBuildInfo.cmake"
  BYPRODUCTS "${build_info_file}"
  VERBATIM
  COMMENT "Build information")

get_property(base_type TARGET hearth_base PROPERTY TYPE)
if(NOT base_type STREQUAL "INTERFACE_LIBRARY")
  add_dependencies(hearth_base hearth_build_info)
  target_include_directories(hearth_base PRIVATE "${PROJECT_BINARY_DIR}/generated")
endif()

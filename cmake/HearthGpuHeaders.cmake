# Libraries of headers whose kernels may take the place of ours: CUTLASS, and cuDNN's frontend with the
# header of cuDNN. For each of them, NAME being CUTLASS or CUDNN:
#   HEARTH_<NAME>        AUTO takes it where it is found, ON makes it an error where not, OFF leaves
#                        it out
#   HEARTH_CUTLASS_DIR, HEARTH_CUDNN_FRONTEND_DIR
#                        the folder with cutlass/cutlass.h, with cudnn_frontend.h; else
#                        build/gpu_headers, which `scripts/setup --gpu-headers` fills, the toolkit's
#                        folder and the compiler's own
# Sets HEARTH_<NAME>_FOUND and HEARTH_<NAME>_INCLUDE, the folders; or says in HEARTH_<NAME>_WHY_NOT.
# If it is not found, its null twin is compiled (gpu_kernels/libraries/cutlass/no_cutlass.cpp, ...).
set(HEARTH_CUTLASS AUTO CACHE STRING "Experts' products by CUTLASS: AUTO, ON or OFF")
set(HEARTH_CUDNN AUTO CACHE STRING "Attention by cuDNN: AUTO, ON or OFF")
set_property(CACHE HEARTH_CUTLASS HEARTH_CUDNN PROPERTY STRINGS AUTO ON OFF)
set(HEARTH_CUTLASS_DIR "" CACHE PATH "Folder that holds cutlass/cutlass.h")
set(HEARTH_CUDNN_FRONTEND_DIR "" CACHE PATH "Folder that holds cudnn_frontend.h")

# The oldest that the code here was compiled with; cuDNN's own is what its frontend asks for.
set(hearth_cutlass_oldest 4.2)
set(hearth_cudnn_oldest 9.8)
set(hearth_cudnn_frontend_oldest 1.32)

# Sets <out> to the folder that holds `header`, empty where there is none. A DIR that lacks it is an
# error of who named it, not a reason to take another.
function(hearth_find_header out header dir package)
  if(dir)
    find_path(found "${header}" PATHS "${dir}" NO_DEFAULT_PATH NO_CACHE)
  else()
    find_path(found "${header}" NO_CACHE
      HINTS "${PROJECT_SOURCE_DIR}/build/gpu_headers/${package}/include" ${CUDAToolkit_INCLUDE_DIRS})
  endif()
  if(found)
    string(REGEX REPLACE "/+$" "" found "${found}")
    set(${out} "${found}" PARENT_SCOPE)
  else()
    set(${out} "" PARENT_SCOPE)
  endif()
endfunction()

# Sets <out> to "major.minor.patch", from a header that defines three numbers of these names.
function(hearth_header_version out file major minor patch)
  set(version "")
  foreach(name IN ITEMS ${major} ${minor} ${patch})
    file(STRINGS "${file}" line REGEX "^#define ${name} +[0-9]+" LIMIT_COUNT 1)
    string(REGEX REPLACE "^#define ${name} +([0-9]+).*" "\\1" number "${line}")
    list(APPEND version "${number}")
  endforeach()
  string(JOIN "." version ${version})
  set(${out} "${version}" PARENT_SCOPE)
endfunction()

# Sets HEARTH_<name>_WHY_NOT for what needs no look at files.
macro(hearth_begin_headers name)
  set(HEARTH_${name}_FOUND OFF)
  set(HEARTH_${name}_INCLUDE "")
  set(HEARTH_${name}_WHY_NOT "")
  if(NOT HEARTH_${name} MATCHES "^(AUTO|ON|TRUE|1)$")
    set(HEARTH_${name}_WHY_NOT "HEARTH_${name} is ${HEARTH_${name}}")
  elseif(NOT HEARTH_CUDA_FOUND)
    set(HEARTH_${name}_WHY_NOT "there is no CUDA back end")
  endif()
endmacro()

# Says what was found, as `what`.
macro(hearth_end_headers name what)
  if(HEARTH_${name}_WHY_NOT STREQUAL "")
    set(HEARTH_${name}_FOUND ON)
    message(STATUS "${what}")
  elseif(HEARTH_${name} STREQUAL "AUTO" OR HEARTH_${name} STREQUAL "OFF")
    message(STATUS "No ${name}: ${HEARTH_${name}_WHY_NOT}")
  else()
    message(FATAL_ERROR "HEARTH_${name} is ON, but ${HEARTH_${name}_WHY_NOT}. `scripts/setup "
                        "--gpu-headers` fetches the headers; -DHEARTH_${name}=OFF builds without.")
  endif()
endmacro()

hearth_begin_headers(CUTLASS)
set(hearth_cutlass_version "")
if(HEARTH_CUTLASS_WHY_NOT STREQUAL "")
  hearth_find_header(HEARTH_CUTLASS_INCLUDE cutlass/cutlass.h "${HEARTH_CUTLASS_DIR}" cutlass)
  if(NOT HEARTH_CUTLASS_INCLUDE)
    set(HEARTH_CUTLASS_WHY_NOT "cutlass/cutlass.h was not found")
  else()
    hearth_header_version(hearth_cutlass_version "${HEARTH_CUTLASS_INCLUDE}/cutlass/version.h"
                          CUTLASS_MAJOR CUTLASS_MINOR CUTLASS_PATCH)
    if(hearth_cutlass_version VERSION_LESS hearth_cutlass_oldest)
      set(HEARTH_CUTLASS_WHY_NOT "${HEARTH_CUTLASS_INCLUDE} holds version ${hearth_cutlass_version}, \
older than ${hearth_cutlass_oldest}")
    endif()
  endif()
endif()
hearth_end_headers(CUTLASS "CUTLASS ${hearth_cutlass_version} in ${HEARTH_CUTLASS_INCLUDE}")

hearth_begin_headers(CUDNN)
if(HEARTH_CUDNN_WHY_NOT STREQUAL "")
  hearth_find_header(hearth_frontend cudnn_frontend.h "${HEARTH_CUDNN_FRONTEND_DIR}" cudnn_frontend)
  hearth_find_header(hearth_cudnn cudnn_version.h "" cudnn)
  if(NOT hearth_frontend)
    set(HEARTH_CUDNN_WHY_NOT "cudnn_frontend.h was not found")
  elseif(NOT hearth_cudnn)
    set(HEARTH_CUDNN_WHY_NOT "cudnn.h was not found")
  else()
    hearth_header_version(hearth_frontend_version "${hearth_frontend}/cudnn_frontend_version.h"
      CUDNN_FRONTEND_MAJOR_VERSION CUDNN_FRONTEND_MINOR_VERSION CUDNN_FRONTEND_PATCH_VERSION)
    hearth_header_version(hearth_cudnn_version "${hearth_cudnn}/cudnn_version.h"
      CUDNN_MAJOR CUDNN_MINOR CUDNN_PATCHLEVEL)
    if(hearth_frontend_version VERSION_LESS hearth_cudnn_frontend_oldest)
      set(HEARTH_CUDNN_WHY_NOT "the frontend in ${hearth_frontend} is version \
${hearth_frontend_version}, older than ${hearth_cudnn_frontend_oldest}")
    elseif(hearth_cudnn_version VERSION_LESS hearth_cudnn_oldest)
      set(HEARTH_CUDNN_WHY_NOT "cudnn.h in ${hearth_cudnn} is of version ${hearth_cudnn_version}, \
older than ${hearth_cudnn_oldest}")
    endif()
    set(HEARTH_CUDNN_INCLUDE "${hearth_frontend}" "${hearth_cudnn}")
  endif()
endif()
hearth_end_headers(CUDNN "cuDNN ${hearth_cudnn_version} in ${hearth_cudnn}, frontend \
${hearth_frontend_version} in ${hearth_frontend}")

# Adds the kernels of gpu_kernels/libraries/cutlass/<folder> to the room gpu_kernels, as code for one kind of GPU
# whatever HEARTH_CUDA_ARCHITECTURES is: each takes a minute to compile.
function(hearth_cutlass_kernels folder architecture)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/gpu_kernels/libraries/cutlass/${folder}/*.cu")
  set(target hearth_cutlass_${folder})
  add_library(${target} OBJECT ${sources})
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architecture}-real" UNITY_BUILD OFF)
  target_compile_definitions(${target} PRIVATE HEARTH_GPU=gpu)
  target_include_directories(${target} PRIVATE "${PROJECT_BINARY_DIR}/rooms/gpu_kernels")
  target_include_directories(${target} SYSTEM PRIVATE ${HEARTH_CUTLASS_INCLUDE})
  target_link_libraries(${target} PRIVATE hearth_ops)
  target_sources(hearth_gpu_kernels PRIVATE $<TARGET_OBJECTS:${target}>)
  list(LENGTH sources files)
  set_property(GLOBAL PROPERTY "HEARTH_FILES_FOR_${architecture}" "+${files}")  # tests/gpu_check
endfunction()

# NCCL, for messages between GPUs (src/comm/nccl_world.h). Compiled against its header, and opened when
# the program runs. Sets HEARTH_NCCL_FOUND and HEARTH_NCCL_INCLUDE, or says in HEARTH_NCCL_WHY_NOT why
# there is none. Needs HearthGpuHeaders.
set(HEARTH_NCCL AUTO CACHE STRING "Messages between GPUs by NCCL: AUTO, ON or OFF")
set_property(CACHE HEARTH_NCCL PROPERTY STRINGS AUTO ON OFF)

set(hearth_nccl_oldest 2.18)  # has ncclCommFinalize, and communicators that do not block
set(HEARTH_NCCL_FOUND OFF)
set(HEARTH_NCCL_INCLUDE "")
set(HEARTH_NCCL_WHY_NOT "")
if(NOT HEARTH_NCCL MATCHES "^(AUTO|ON|TRUE|1)$")
  set(HEARTH_NCCL_WHY_NOT "HEARTH_NCCL is ${HEARTH_NCCL}")
elseif(NOT HEARTH_CUDA_FOUND)
  set(HEARTH_NCCL_WHY_NOT "there is no CUDA back end")
else()
  hearth_find_header(HEARTH_NCCL_INCLUDE nccl.h "" nccl)
  if(NOT HEARTH_NCCL_INCLUDE)
    set(HEARTH_NCCL_WHY_NOT "nccl.h was not found")
  else()
    hearth_header_version(hearth_nccl_version "${HEARTH_NCCL_INCLUDE}/nccl.h"
                          NCCL_MAJOR NCCL_MINOR NCCL_PATCH)
    if(hearth_nccl_version VERSION_LESS hearth_nccl_oldest)
      set(HEARTH_NCCL_WHY_NOT
          "${HEARTH_NCCL_INCLUDE} holds version ${hearth_nccl_version}, older than ${hearth_nccl_oldest}")
    endif()
  endif()
endif()

if(HEARTH_NCCL_WHY_NOT STREQUAL "")
  set(HEARTH_NCCL_FOUND ON)
  message(STATUS "NCCL ${hearth_nccl_version} in ${HEARTH_NCCL_INCLUDE}")
elseif(HEARTH_NCCL STREQUAL "AUTO" OR HEARTH_NCCL STREQUAL "OFF")
  message(STATUS "No NCCL: ${HEARTH_NCCL_WHY_NOT}")
else()
  message(FATAL_ERROR "HEARTH_NCCL is ON, but ${HEARTH_NCCL_WHY_NOT}. -DHEARTH_NCCL=OFF builds without.")
endif()

# A room is a folder of src/ built as one object library: its flags stand here once, its files in its own CMakeLists.txt.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(quatrain_options INTERFACE)
target_compile_features(quatrain_options INTERFACE cxx_std_20)
target_compile_options(quatrain_options INTERFACE -Wall -Wextra $<$<BOOL:${QUATRAIN_WERROR}>:-Werror>)
# GCC collects its garbage at 128 MB, of which LibTorch's headers take more than half.
target_compile_options(quatrain_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1048576>)
target_include_directories(quatrain_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(QUATRAIN_SANITIZE)
  target_compile_options(quatrain_options INTERFACE -fsanitize=${QUATRAIN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(quatrain_options INTERFACE -fsanitize=${QUATRAIN_SANITIZE})
endif()

# Compiles files of a target together, those of one folder and at most `most` at a time: each batch pays for its headers
# once. Where QUATRAIN_UNITY is off (for who edits) each file stands alone. What a file keeps in an
# anonymous namespace therefore has a name that no other file of its folder uses.
function(quatrain_batches name most prefix)
  if(NOT QUATRAIN_UNITY)
    return()
  endif()
  set(folders "")
  foreach(source ${ARGN})
    cmake_path(GET source PARENT_PATH folder)
    string(MAKE_C_IDENTIFIER "${prefix}_${folder}_" folder)
    list(APPEND folders ${folder})
    list(APPEND ${folder} ${source})
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder ${folders})
    list(LENGTH ${folder} count)
    if(count EQUAL 1)
      continue()
    endif()
    math(EXPR batches "(${count} + ${most} - 1) / ${most}")
    set(number 0)
    foreach(source ${${folder}})
      math(EXPR batch "${number} * ${batches} / ${count}")  # as even as they go
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder}${batch})
      math(EXPR number "${number} + 1")
    endforeach()
  endforeach()
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# Objects go into shared libraries and into executables alike, and a precompiled header is only reused under equal flags.
function(quatrain_flags name)
  target_link_libraries(${name} PRIVATE quatrain_options)
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                           VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF)
endfunction()

# quatrain_room(NAME [TORCH none|aten|frontend] [SOON] [BATCH most] SOURCES ... [PLAIN ...] [ALONE ...])
#   none: plain C++.  aten: tensors and operators.  frontend: modules too.
#   SOON: what runs seldom is compiled to be compiled soon.
#   PLAIN: files of a frontend room that include nothing of torch (or <c10/util/Exception.h> alone): they compile in a second
#   without that header.
#   ALONE: files that are never compiled together with others.
function(quatrain_room name)
  cmake_parse_arguments(ROOM "SOON" "TORCH;BATCH" "SOURCES;PLAIN;ALONE" ${ARGN})
  if(NOT ROOM_BATCH)
    set(ROOM_BATCH 16)
  endif()
  add_library(${name} OBJECT ${ROOM_SOURCES} ${ROOM_PLAIN} ${ROOM_ALONE})
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)  # of CMake's own kind, which knows nothing of these rules
  quatrain_batches(${name} ${ROOM_BATCH} batch ${ROOM_SOURCES})
  quatrain_batches(${name} ${ROOM_BATCH} plain ${ROOM_PLAIN})
  foreach(source ${ROOM_PLAIN})
    set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    get_source_file_property(batch ${source} UNITY_GROUP)
    if(batch)
      set_source_files_properties(${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/Unity/unity_${batch}_cxx.cxx
                                  PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
  quatrain_flags(${name})
  if(ROOM_SOON)
    target_compile_options(${name} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O1>)
  endif()
  if(ROOM_TORCH STREQUAL "none")
    return()
  endif()
  target_link_libraries(${name} PRIVATE quatrain::torch)
  if(ROOM_TORCH STREQUAL "frontend")
    quatrain_precompile(${name} modules <torch/types.h> <torch/utils.h> <torch/nn/cloneable.h> <torch/nn/module.h>
                        <torch/nn/pimpl.h>)
  elseif(QUATRAIN_UNITY)
    quatrain_precompile(${name} tensors <ATen/ATen.h> <torch/library.h> <torch/csrc/autograd/custom_function.h>)
  endif()
endfunction()

# Headers of torch, compiled once for all targets under the name of that set. As few as most files need: in every file
# that begins with them GCC instantiates what their inline functions use, which takes five seconds of all of
# <torch/torch.h>.
function(quatrain_precompile name set)
  if(NOT TARGET quatrain_${set})
    file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${set}.cpp CONTENT "")
    add_library(quatrain_${set} OBJECT ${PROJECT_BINARY_DIR}/${set}.cpp)
    quatrain_flags(quatrain_${set})
    target_link_libraries(quatrain_${set} PRIVATE quatrain::torch)
    target_precompile_headers(quatrain_${set} PRIVATE ${ARGN})
  endif()
  target_precompile_headers(${name} REUSE_FROM quatrain_${set})
endfunction()

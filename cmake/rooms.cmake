# A room is a folder of src/ built as one object library: its flags stand here once, its files in its own CMakeLists.txt.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(quatrain_options INTERFACE)
target_compile_features(quatrain_options INTERFACE cxx_std_20)
target_compile_options(quatrain_options INTERFACE -Wall -Wextra $<$<BOOL:${QUATRAIN_WERROR}>:-Werror>)
target_include_directories(quatrain_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
if(QUATRAIN_SANITIZE)
  target_compile_options(quatrain_options INTERFACE -fsanitize=${QUATRAIN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(quatrain_options INTERFACE -fsanitize=${QUATRAIN_SANITIZE})
endif()

# quatrain_room(NAME [TORCH none|aten|frontend] SOURCES ... [PLAIN ...])
#   none: plain C++.  aten: tensors and operators.  frontend: <torch/torch.h>, through the precompiled header.
#   PLAIN: files of a frontend room that include nothing of torch; they compile in a second without that header.
function(quatrain_room name)
  cmake_parse_arguments(ROOM "" "TORCH" "SOURCES;PLAIN" ${ARGN})
  add_library(${name} OBJECT ${ROOM_SOURCES} ${ROOM_PLAIN})
  set_source_files_properties(${ROOM_PLAIN} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  target_link_libraries(${name} PRIVATE quatrain_options)
  # Objects go into shared libraries and into executables alike, and a precompiled header is only reused under equal flags.
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                           VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF)
  if(NOT ROOM_TORCH STREQUAL "none")
    target_link_libraries(${name} PRIVATE quatrain::torch)
  endif()
  if(ROOM_TORCH STREQUAL "frontend")
    if(NOT TARGET quatrain_frontend)
      file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/frontend.cpp CONTENT "")
      add_library(quatrain_frontend OBJECT ${PROJECT_BINARY_DIR}/frontend.cpp)
      target_link_libraries(quatrain_frontend PRIVATE quatrain_options quatrain::torch)
      set_target_properties(quatrain_frontend PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden
                                                         VISIBILITY_INLINES_HIDDEN ON CXX_EXTENSIONS OFF)
      target_precompile_headers(quatrain_frontend PRIVATE <torch/torch.h>)
    endif()
    target_precompile_headers(${name} REUSE_FROM quatrain_frontend)
  endif()
endfunction()

# Finds torch without importing it and makes the imported target quatrain::torch.
#
# Torch's own package refuses a CUDA build of torch on a machine without the CUDA toolkit, although CPU code needs no more
# than libtorch_cpu, libc10 and their headers; so the targets are made here from the folder itself.
#
# Order: the torch that the including project has found already (targets torch_cpu and c10), Torch_ROOT (cache or
# environment), QUATRAIN_TORCH_HINT (set by the installed package: the torch it was built with), the active Python, .venv.
# As a script, `cmake -P cmake/find_torch.cmake`, it prints the folder that a build would use, or says why there is none.
# The same file serves the build, the installed package and scripts/setup.

set(QUATRAIN_TORCH_MINIMUM 2.11)

# The folder of the torch that `python` would import, or "".
function(quatrain_torch_of_python python result)
  execute_process(
    COMMAND "${python}" -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${result} "${folder}" PARENT_SCOPE)
endfunction()

# The version of the torch in `folder`, or "" where there is no torch to compile against.
function(quatrain_torch_version folder result)
  set(${result} "" PARENT_SCOPE)
  set(header "${folder}/include/torch/headeronly/version.h")
  if(NOT EXISTS "${folder}/lib/libtorch_cpu.so")
    return()
  elseif(NOT EXISTS "${header}")
    set(${result} 0 PARENT_SCOPE)  # older than 2.9, where this header came
    return()
  endif()
  file(STRINGS "${header}" lines REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
  string(REGEX REPLACE "[^0-9]+" "." version "${lines}")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" version "${version}")
  set(${result} "${version}" PARENT_SCOPE)
endfunction()

# Sets quatrain_torch_folder, quatrain_torch_version and quatrain_torch_python (an interpreter that imports this torch, or ""),
# or, where no torch serves, an empty folder and the reason in quatrain_torch_missing.
function(quatrain_find_torch)
  set(pythons python3 "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../.venv/bin/python")
  if(DEFINED ENV{VIRTUAL_ENV})
    list(PREPEND pythons "$ENV{VIRTUAL_ENV}/bin/python")
  endif()
  set(folders "")
  foreach(python ${pythons})
    quatrain_torch_of_python("${python}" folder)
    list(APPEND folders "${folder}/")
  endforeach()

  if(TARGET torch_cpu AND TARGET c10)
    get_target_property(library torch_cpu LOCATION)
    cmake_path(GET library PARENT_PATH candidates)
    cmake_path(GET candidates PARENT_PATH candidates)
  elseif(Torch_ROOT)
    set(candidates "${Torch_ROOT}")
  elseif(DEFINED ENV{Torch_ROOT})
    set(candidates "$ENV{Torch_ROOT}")
  else()
    set(candidates ${QUATRAIN_TORCH_HINT} ${folders})
    list(REMOVE_ITEM candidates "/")
  endif()

  set(looked "")
  foreach(candidate ${candidates})
    string(REGEX REPLACE "/$" "" candidate "${candidate}")
    quatrain_torch_version("${candidate}" version)
    if(version AND version VERSION_GREATER_EQUAL QUATRAIN_TORCH_MINIMUM)
      set(quatrain_torch_folder "${candidate}" PARENT_SCOPE)
      set(quatrain_torch_version "${version}" PARENT_SCOPE)
      set(quatrain_torch_python "" PARENT_SCOPE)
      file(REAL_PATH "${candidate}" wanted)
      foreach(python folder IN ZIP_LISTS pythons folders)
        file(REAL_PATH "${folder}" folder)
        if(folder STREQUAL wanted)
          set(quatrain_torch_python "${python}" PARENT_SCOPE)
          break()
        endif()
      endforeach()
      return()
    endif()
    if(version STREQUAL "")
      set(version "no libtorch_cpu.so in its lib/")
    elseif(version STREQUAL "0")
      set(version "too old")
    endif()
    string(APPEND looked "\n  ${candidate}: ${version}")
  endforeach()
  if(NOT looked)
    set(looked "\n  Torch_ROOT is not set, and neither the active Python nor .venv has a torch")
  endif()
  set(quatrain_torch_folder "" PARENT_SCOPE)
  string(CONCAT message
    "quatrain: found no torch ${QUATRAIN_TORCH_MINIMUM} or newer. Looked at:${looked}\n"
    "Run scripts/setup, which installs one into .venv, or pass -DTorch_ROOT=FOLDER: the folder that holds torch's include/ and lib/.")
  set(quatrain_torch_missing "${message}" PARENT_SCOPE)
endfunction()

quatrain_find_torch()
if(CMAKE_SCRIPT_MODE_FILE)
  if(NOT quatrain_torch_folder)
    message(FATAL_ERROR "${quatrain_torch_missing}")
  endif()
  execute_process(COMMAND "${CMAKE_COMMAND}" -E echo "${quatrain_torch_folder}")
  return()
endif()
if(NOT quatrain_torch_folder)
  return()  # the including project says so in its own way
endif()

if(NOT TARGET quatrain::torch)
  add_library(quatrain::torch INTERFACE IMPORTED GLOBAL)
  target_compile_features(quatrain::torch INTERFACE cxx_std_20)
  foreach(part torch_cpu c10)
    if(TARGET ${part})
      target_link_libraries(quatrain::torch INTERFACE ${part})
      continue()
    endif()
    add_library(quatrain::${part} SHARED IMPORTED GLOBAL)
    set_target_properties(quatrain::${part} PROPERTIES
      IMPORTED_LOCATION "${quatrain_torch_folder}/lib/lib${part}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${quatrain_torch_folder}/include;${quatrain_torch_folder}/include/torch/csrc/api/include")
    target_link_libraries(quatrain::torch INTERFACE quatrain::${part})
  endforeach()
  # at::parallel_for is a header template: without OpenMP it runs on one thread. Torch carries the runtime it was built
  # with; linking its copy keeps one OpenMP runtime in the process.
  target_compile_options(quatrain::torch INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fopenmp>)
  file(GLOB quatrain_gomp "${quatrain_torch_folder}/lib/libgomp*.so*")
  if(quatrain_gomp)
    target_link_libraries(quatrain::torch INTERFACE ${quatrain_gomp})
  else()
    target_link_options(quatrain::torch INTERFACE -fopenmp)
  endif()
endif()

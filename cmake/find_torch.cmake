# Finds torch without importing it and makes the imported target quatrain::torch.
#
# Torch's own package refuses a CUDA build on a machine without the CUDA toolkit, although CPU code needs no more than
# libtorch_cpu and libc10 and their headers; so the target is made here from the folder itself.
# Order: Torch_ROOT (cache or environment), the active Python, the project's .venv.

set(Torch_ROOT "$ENV{Torch_ROOT}" CACHE PATH "Folder of torch: holds include/ and lib/")

function(quatrain_torch_of_python python result)
  execute_process(
    COMMAND ${python} -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(folder AND EXISTS "${folder}/lib/libtorch_cpu.so")
    set(${result} "${folder}" PARENT_SCOPE)
  endif()
endfunction()

set(quatrain_torch_folder "${Torch_ROOT}")
if(NOT quatrain_torch_folder)
  foreach(python "$ENV{VIRTUAL_ENV}/bin/python" python3 "${PROJECT_SOURCE_DIR}/.venv/bin/python")
    if(NOT quatrain_torch_folder)
      quatrain_torch_of_python("${python}" quatrain_torch_folder)
    endif()
  endforeach()
endif()
if(NOT EXISTS "${quatrain_torch_folder}/lib/libtorch_cpu.so" OR NOT EXISTS "${quatrain_torch_folder}/include/ATen/ATen.h")
  message(FATAL_ERROR
    "quatrain: torch not found (looked in Torch_ROOT='${Torch_ROOT}', the active Python and .venv). "
    "Run scripts/setup, which installs it into .venv, or pass -DTorch_ROOT=/folder/of/torch (the folder with include/ and lib/).")
endif()
file(STRINGS "${quatrain_torch_folder}/include/torch/headeronly/version.h" quatrain_torch_version
     REGEX "define TORCH_VERSION_(MAJOR|MINOR|PATCH) ")
string(REGEX REPLACE "[^0-9]+" "." quatrain_torch_version "${quatrain_torch_version}")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" quatrain_torch_version "${quatrain_torch_version}")
if(quatrain_torch_version VERSION_LESS 2.11)
  message(FATAL_ERROR "quatrain: needs torch 2.11 or newer, found '${quatrain_torch_version}' in ${quatrain_torch_folder}")
endif()
message(STATUS "quatrain: torch ${quatrain_torch_version} in ${quatrain_torch_folder}")

foreach(part torch_cpu c10)
  if(NOT TARGET quatrain::${part})
    add_library(quatrain::${part} SHARED IMPORTED GLOBAL)
    set_target_properties(quatrain::${part} PROPERTIES
      IMPORTED_LOCATION "${quatrain_torch_folder}/lib/lib${part}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${quatrain_torch_folder}/include;${quatrain_torch_folder}/include/torch/csrc/api/include")
  endif()
endforeach()
if(NOT TARGET quatrain::torch)
  add_library(quatrain::torch INTERFACE IMPORTED GLOBAL)
  target_link_libraries(quatrain::torch INTERFACE quatrain::torch_cpu quatrain::c10)
  target_compile_features(quatrain::torch INTERFACE cxx_std_20)
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

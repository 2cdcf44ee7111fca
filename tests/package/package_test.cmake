# usage: cmake -D build=... -D work=... -D generator=... -D compiler=... -D launcher=... -D torch=... -D version=... -P package_test.cmake

set(prefix ${work}/prefix)
set(fresh ${CMAKE_COMMAND} -G ${generator} -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_CXX_COMPILER_LAUNCHER=${launcher}
          -D CMAKE_BUILD_TYPE=Release)
file(REMOVE_RECURSE ${work})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE code OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(code)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}\nfailed: ${code}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

run(${CMAKE_COMMAND} --install ${build} --prefix ${prefix})

# Linking torch's CUDA libraries, or a second OpenMP, would cost every start memory and time.
file(GLOB libraries ${prefix}/lib*/libquatrain*.so)
foreach(library ${libraries})
  run(readelf -d ${library})
  string(REGEX MATCHALL "lib(torch|c10|gomp|omp|iomp|cu)[a-z0-9_-]*\\.so[.0-9]*" needed "${output}")
  foreach(name ${needed})
    if(NOT name MATCHES "^lib(torch_cpu|c10)\\.so$" AND NOT (name MATCHES "gomp" AND EXISTS ${torch}/lib/${name}))
      message(FATAL_ERROR "${library} needs ${name}")
    endif()
  endforeach()
endforeach()

# A user's project with its sources, configured, built and run. Its torch is found by the package.
run(${fresh} -S ${CMAKE_CURRENT_LIST_DIR}/../../examples/cpp -B ${work}/example -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/example)
run(${CMAKE_COMMAND} -E chdir ${work} ${work}/example/example)
message("${output}")

# A program that calls no symbol of the library still has its operators.
run(${fresh} -S ${CMAKE_CURRENT_LIST_DIR}/only_operators -B ${work}/only_operators -D CMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${work}/only_operators)
run(${work}/only_operators/only_operators)

# The program works from the place it was installed to.
if(EXISTS ${prefix}/bin/quatrain)
  run(${prefix}/bin/quatrain --help)
endif()

# A project that has found torch for itself keeps its own targets; another version is refused.
run(${fresh} -S ${CMAKE_CURRENT_LIST_DIR}/own_torch -B ${work}/own_torch -D CMAKE_PREFIX_PATH=${prefix} -D torch=${torch}
    -D version=${version})

# What `cmake --install` leaves behind: a package that find_package(quatrain) finds. pyproject.toml installs the same into
# the Python package.

include(CMakePackageConfigHelpers)
set(quatrain_package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/quatrain)

install(TARGETS quatrain EXPORT quatrain_targets)
if(QUATRAIN_BUILD_TRAIN)
  install(TARGETS quatrain_training EXPORT quatrain_targets)
  install(TARGETS quatrain_program)
endif()
if(SKBUILD)
  install(FILES ${quatrain_torch_version_file} DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT quatrain_targets NAMESPACE quatrain:: DESTINATION ${quatrain_package_folder})

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/quatrainConfig.cmake.in ${PROJECT_BINARY_DIR}/quatrainConfig.cmake
                              INSTALL_DESTINATION ${quatrain_package_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/quatrainConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/quatrainConfig.cmake ${PROJECT_BINARY_DIR}/quatrainConfigVersion.cmake
              ${CMAKE_CURRENT_LIST_DIR}/find_torch.cmake
        DESTINATION ${quatrain_package_folder})

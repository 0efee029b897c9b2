# Two test executables:
#   hutch_tests         every *_test.cc beside the code and in tests/ (ctest label: unit)
#   hutch_kernel_tests  tests/kernel/*.cc and *_kernel_test.cc beside the code, against the real
#                       kernel, as root, never under sanitizers (ctest label: kernel)
# ctest runs each test in a process of its own.

include(GoogleTest)

file(GLOB_RECURSE hutch_unit_sources CONFIGURE_DEPENDS src/*_test.cc tests/*_test.cc)
list(FILTER hutch_unit_sources EXCLUDE REGEX "/tests/kernel/|_kernel_test\\.cc$")
file(GLOB hutch_kernel_sources CONFIGURE_DEPENDS tests/kernel/*.cc src/*/*_kernel_test.cc)

# The guest's own parts, without its main(), so that unit tests can reach them.
if(hutch_guest_sources)
  set(parts ${hutch_guest_sources})
  list(FILTER parts EXCLUDE REGEX "main\\.cc$")
endif()
add_library(hutch_guest_parts INTERFACE)
if(parts)
  add_library(hutch_guest_code STATIC EXCLUDE_FROM_ALL ${parts})
  target_link_libraries(hutch_guest_code PUBLIC hutch_isolation PRIVATE hutch_flags)
  target_link_libraries(hutch_guest_parts INTERFACE hutch_guest_code)
endif()

if(hutch_unit_sources)
  add_executable(hutch_tests EXCLUDE_FROM_ALL ${hutch_unit_sources})
  target_link_libraries(hutch_tests PRIVATE hutch_flags hutch_guest_parts hutch_cli hutch_api
    hutch_http hutch_service hutch_config hutch_image GTest::gmock GTest::gtest GTest::gtest_main)
  if(TARGET rapidcheck)
    target_link_libraries(hutch_tests PRIVATE rapidcheck rapidcheck_gtest)
  endif()
  target_compile_definitions(hutch_tests PRIVATE HUTCH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(hutch_tests DISCOVERY_MODE PRE_TEST WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    PROPERTIES LABELS unit TIMEOUT 120)
endif()

if(hutch_kernel_sources)
  # Rooms up to the engine only: a build with failpoints then stays short.
  add_executable(hutch_kernel_tests EXCLUDE_FROM_ALL ${hutch_kernel_sources})
  target_link_libraries(hutch_kernel_tests PRIVATE hutch_flags hutch_engine hutch_image
    GTest::gmock GTest::gtest GTest::gtest_main)
  target_compile_definitions(hutch_kernel_tests PRIVATE HUTCH_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  gtest_discover_tests(hutch_kernel_tests DISCOVERY_MODE PRE_TEST TEST_PREFIX kernel.
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} PROPERTIES LABELS kernel TIMEOUT 300 RUN_SERIAL ON)
endif()

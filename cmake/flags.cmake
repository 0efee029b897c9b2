# The compiler and linker flags. They hang on two interface targets instead of global variables,
# because the guest program is another kind of program (static, small, never instrumented).
#
#   hutch_warnings  what every C++ source of the tree is compiled with
#   hutch_flags     the above, plus hardening or sanitizers, for what runs on the host

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
# Lines and functions for backtraces, without the types: half the link time of -g.
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
include(CheckPIESupported)
check_pie_supported(LANGUAGES CXX)

find_program(HUTCH_CCACHE ccache)
mark_as_advanced(HUTCH_CCACHE)
if(HUTCH_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # Without these two, ccache refuses every file that has a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${HUTCH_CCACHE})
endif()

add_library(hutch_warnings INTERFACE)
target_compile_options(hutch_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror
  # Option structs are filled with designated initializers; the fields left out have defaults.
  -Wno-missing-field-initializers>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports an overlap inside std::string operator+ that cannot happen.
  target_compile_options(hutch_warnings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
target_include_directories(hutch_warnings INTERFACE
  ${CMAKE_SOURCE_DIR}/src ${CMAKE_BINARY_DIR}/generated)
if(HUTCH_TESTING)
  target_compile_definitions(hutch_warnings INTERFACE HUTCH_TESTING=1)
endif()

add_library(hutch_flags INTERFACE)
target_link_libraries(hutch_flags INTERFACE hutch_warnings)
target_compile_options(hutch_flags INTERFACE -fstack-protector-strong -fstack-clash-protection)
target_link_options(hutch_flags INTERFACE -Wl,-z,relro,-z,now -Wl,--as-needed)
if(HUTCH_SANITIZE)
  target_compile_options(hutch_flags INTERFACE
    -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
    # Its check asks the kernel by a pipe whether an object can be read, and takes a process without
    # a free descriptor for a broken object.
    -fno-sanitize=vptr)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The instrumented code hides initialisations from g++'s flow analysis.
    target_compile_options(hutch_flags INTERFACE
      $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
  target_link_options(hutch_flags INTERFACE -fsanitize=address,undefined)
else()
  target_compile_options(hutch_flags INTERFACE
    $<$<CONFIG:RelWithDebInfo,Release>:-U_FORTIFY_SOURCE>
    $<$<CONFIG:RelWithDebInfo,Release>:-D_FORTIFY_SOURCE=2>)
endif()

configure_file(cmake/hutch_version.h.in generated/hutch_version.h @ONLY)
# Looked at in every build, and only what includes it is compiled again.
add_custom_target(hutch_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR}
          -DOUTPUT=${CMAKE_BINARY_DIR}/generated/hutch_commit.h
          -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/hutch_commit.h VERBATIM)

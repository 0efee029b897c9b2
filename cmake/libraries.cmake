# The libraries, all from Debian packages (the list is in ./dev).
# No version is asked for: what the code needs from a library shows when it compiles.

find_package(Boost REQUIRED COMPONENTS json url container context)
find_package(OpenSSL REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(sodium REQUIRED IMPORTED_TARGET libsodium)
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(tl-expected REQUIRED)
find_package(CLI11 REQUIRED)
find_package(GTest REQUIRED)
find_package(rapidcheck QUIET)

# Only the registry and the text format are used; the package's own config file would also demand
# the HTTP server and the push client.
find_path(HUTCH_PROMETHEUS_INCLUDE prometheus/registry.h REQUIRED)
find_library(HUTCH_PROMETHEUS_CORE prometheus-cpp-core REQUIRED)
mark_as_advanced(HUTCH_PROMETHEUS_INCLUDE HUTCH_PROMETHEUS_CORE)
add_library(prometheus-cpp::core UNKNOWN IMPORTED)
set_target_properties(prometheus-cpp::core PROPERTIES
  IMPORTED_LOCATION ${HUTCH_PROMETHEUS_CORE}
  INTERFACE_INCLUDE_DIRECTORIES ${HUTCH_PROMETHEUS_INCLUDE})

add_library(hutch_spdlog INTERFACE)
target_link_libraries(hutch_spdlog INTERFACE spdlog::spdlog fmt::fmt Threads::Threads)

# toml++ reports errors as values here, so that nothing throws through our rooms. Debian's compiled
# library has the throwing functions only, so the headers are used by themselves.
find_path(HUTCH_TOML_INCLUDE toml++/toml.h REQUIRED)
mark_as_advanced(HUTCH_TOML_INCLUDE)
add_library(hutch_toml INTERFACE)
target_compile_definitions(hutch_toml INTERFACE TOML_EXCEPTIONS=0 TOML_HEADER_ONLY=1)
target_include_directories(hutch_toml SYSTEM INTERFACE ${HUTCH_TOML_INCLUDE})

# Asio and Beast are compiled once, here, instead of as inline functions in every file.
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/asio.cc @ONLY CONTENT [[
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
]])
add_library(hutch_asio STATIC ${CMAKE_BINARY_DIR}/generated/asio.cc)
target_compile_definitions(hutch_asio PUBLIC
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_BEAST_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED
  # g++ 12 and the reuse of coroutine frames do not go together.
  BOOST_ASIO_DISABLE_AWAITABLE_FRAME_RECYCLING)
target_link_libraries(hutch_asio
  PUBLIC Boost::headers Boost::context OpenSSL::SSL OpenSSL::Crypto Threads::Threads
  PRIVATE hutch_flags)

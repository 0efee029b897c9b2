# hutch-guest: the one static program that runs inside sandboxes (anchor, launcher, init, courier).
# It is compiled apart from the host's rooms: small, without sanitizers, without exceptions.

file(GLOB hutch_guest_main CONFIGURE_DEPENDS src/guest/*main.cc)
file(GLOB hutch_guest_sources CONFIGURE_DEPENDS src/guest/*.cc)
file(GLOB hutch_guest_isolation CONFIGURE_DEPENDS src/isolation/*_unsafe.cc)
file(GLOB hutch_guest_base CONFIGURE_DEPENDS
  src/base/sys.cc src/base/fd.cc src/base/error.cc src/base/step.cc)
list(FILTER hutch_guest_sources EXCLUDE REGEX "_test\\.cc$")
list(FILTER hutch_guest_isolation EXCLUDE REGEX "_test\\.cc$")

if(hutch_guest_main)
  # CMake would add -pie or -no-pie, and either undoes -static-pie: the flags are spelled out here.
  unset(CMAKE_POSITION_INDEPENDENT_CODE)
  add_executable(hutch-guest
    ${hutch_guest_sources} ${hutch_guest_isolation} ${hutch_guest_base})
  set(CMAKE_POSITION_INDEPENDENT_CODE ON)
  target_compile_options(hutch-guest PRIVATE -fPIE -Os -fno-exceptions -fno-rtti
    -ffunction-sections -fdata-sections -fstack-protector-strong)
  target_link_options(hutch-guest PRIVATE -static-pie -Wl,--gc-sections -Wl,-z,relro,-z,now)
  # By its plain name the linker takes libsodium's archive here, and not the shared library.
  target_link_libraries(hutch-guest PRIVATE hutch_warnings tl::expected sodium)
  add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/generated/guest
    COMMAND ${CMAKE_STRIP} -o ${CMAKE_BINARY_DIR}/generated/guest $<TARGET_FILE:hutch-guest>
    DEPENDS hutch-guest VERBATIM COMMENT "Stripping hutch-guest for embedding")
  hutch_embed(guest ${CMAKE_BINARY_DIR}/generated/guest)
  # Says in this directory which target makes the file that the assembly includes.
  target_sources(hutch_embedded PRIVATE ${CMAKE_BINARY_DIR}/generated/guest)
else()
  hutch_embed_source(guest src/guest/main.cc)
endif()

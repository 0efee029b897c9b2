# What `cmake --install` puts where. Paths depend on the prefix that is given when installing, so
# the files that name a path are filled in then, and not when configuring.
#
#   PREFIX/bin/hutch                        the one binary
#   PREFIX/share/hutch/images/              recipes, where the binary looks for them
#   PREFIX/share/man/, .../completions/     written by the binary that was built
#   PREFIX/lib/systemd/system/hutch.service and sysusers.d, tmpfiles.d beside it
#   /etc/hutch/config.toml                   below the prefix unless that is /usr or /usr/local; one
#                                           that exists stays
#   PREFIX/share/doc/hutch/

install(TARGETS hutch RUNTIME DESTINATION bin)
install(DIRECTORY images DESTINATION share/hutch USE_SOURCE_PERMISSIONS
  PATTERN __pycache__ EXCLUDE PATTERN ".*" EXCLUDE)
install(DIRECTORY docs/ DESTINATION share/doc/hutch/docs FILES_MATCHING PATTERN "*.md")
install(FILES README.md SECURITY.md SPECIFICATION.md COMPATIBILITY.md CHANGELOG.md spec/openapi.yaml
  DESTINATION share/doc/hutch)
install(FILES packaging/systemd/sysusers.conf DESTINATION lib/sysusers.d RENAME hutch.conf)
install(FILES packaging/systemd/tmpfiles.conf DESTINATION lib/tmpfiles.d RENAME hutch.conf)

# What the binary says of itself. Made with everything else, so that installing writes nothing into
# the build directory as another user.
set(pages ${CMAKE_BINARY_DIR}/generated/man)
set(completions ${CMAKE_BINARY_DIR}/generated/completion)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/generated/pages.stamp
  COMMAND ${CMAKE_COMMAND} -DHUTCH=$<TARGET_FILE:hutch> -DMAN=${pages} -DCOMPLETIONS=${completions}
          -P ${CMAKE_SOURCE_DIR}/cmake/pages.cmake
  COMMAND ${CMAKE_COMMAND} -E touch ${CMAKE_BINARY_DIR}/generated/pages.stamp
  DEPENDS hutch ${CMAKE_SOURCE_DIR}/cmake/pages.cmake VERBATIM
  COMMENT "Writing manual pages and completions")
add_custom_target(hutch_pages ALL DEPENDS ${CMAKE_BINARY_DIR}/generated/pages.stamp)
install(DIRECTORY ${pages}/ DESTINATION share/man/man1 FILES_MATCHING PATTERN "*.1")
install(DIRECTORY ${pages}/ DESTINATION share/man/man5 FILES_MATCHING PATTERN "*.5")
install(FILES ${completions}/hutch.bash
  DESTINATION share/bash-completion/completions RENAME hutch)
install(FILES ${completions}/hutch.zsh
  DESTINATION share/zsh/vendor-completions RENAME _hutch)
install(FILES ${completions}/hutch.fish DESTINATION share/fish/vendor_completions.d)

install(CODE "
  set(source \"${CMAKE_SOURCE_DIR}/packaging/systemd\")
  set(filled \"${CMAKE_BINARY_DIR}/generated/install\")
  set(HUTCH_BINARY \"\${CMAKE_INSTALL_PREFIX}/bin/hutch\")
  set(HUTCH_ETC \"\${CMAKE_INSTALL_PREFIX}/etc/hutch\")
  if(CMAKE_INSTALL_PREFIX MATCHES \"^/usr(/local)?$\")
    set(HUTCH_ETC /etc/hutch)
  endif()
  configure_file(\"\${source}/hutch.service.in\" \"\${filled}/hutch.service\" @ONLY)
  file(INSTALL \"\${filled}/hutch.service\"
    DESTINATION \"\${CMAKE_INSTALL_PREFIX}/lib/systemd/system\")
  if(EXISTS \"\$ENV{DESTDIR}\${HUTCH_ETC}/config.toml\")
    message(STATUS \"Kept: \$ENV{DESTDIR}\${HUTCH_ETC}/config.toml\")
  else()
    file(INSTALL \"\${source}/config.toml\" DESTINATION \"\${HUTCH_ETC}\")
  endif()
")

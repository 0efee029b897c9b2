# Files that the binary carries inside itself, as bytes between two symbols:
#
#   extern "C" const unsigned char hutch_guest_start[], hutch_guest_end[];
#
# The target hutch_embedded holds them all. A file that the tree does not have is embedded empty,
# and the build picks it up as soon as it exists.

add_library(hutch_embedded STATIC)

# hutch_embed(NAME FILE [DEPENDS target]): FILE lies in the source tree or is built.
function(hutch_embed name file)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "DEPENDS" "")
  set(HUTCH_EMBED_NAME ${name})
  set(HUTCH_EMBED_FILE ${file})
  set(assembly ${CMAKE_BINARY_DIR}/generated/embed_${name}.S)
  file(CONFIGURE OUTPUT ${assembly} @ONLY CONTENT [[
.section .rodata
.balign 16
.global hutch_@HUTCH_EMBED_NAME@_start
.global hutch_@HUTCH_EMBED_NAME@_end
hutch_@HUTCH_EMBED_NAME@_start:
.incbin "@HUTCH_EMBED_FILE@"
hutch_@HUTCH_EMBED_NAME@_end:
.byte 0
.section .note.GNU-stack,"",@progbits
]])
  # The assembler's dependency scan does not see .incbin.
  set_source_files_properties(${assembly} PROPERTIES OBJECT_DEPENDS ${file})
  target_sources(hutch_embedded PRIVATE ${assembly})
endfunction()

# hutch_embed_source(NAME PATH): embeds a file of the source tree, or nothing while there is none.
function(hutch_embed_source name path)
  file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${path})
  if(NOT found)
    set(found ${CMAKE_BINARY_DIR}/generated/empty)
    file(CONFIGURE OUTPUT ${found} CONTENT "")
  endif()
  hutch_embed(${name} ${found})
endfunction()

hutch_embed_source(sitecustomize src/guest/python/sitecustomize.py)
hutch_embed_source(openapi spec/openapi.yaml)
hutch_embed_source(errors docs/errors.md)

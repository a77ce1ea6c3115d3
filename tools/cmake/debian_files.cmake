# Run by CPack on the staged files of each package: adds the files that Debian's policy requires, and
# compresses man pages and changelogs.
get_filename_component(tree ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
file(READ ${tree}/LICENSE license)
string(REGEX REPLACE "^.*Copyright \\(c\\) ([^\n]+).*$" "\\1" holder "${license}")
string(REGEX REPLACE "^.*(Permission is.*)$" "\\1" license "${license}")
string(REGEX REPLACE "\n\n" "\n.\n" license "${license}")
string(REGEX REPLACE "\n(.)" "\n \\1" license "${license}")
string(TIMESTAMP now "%a, %d %b %Y %H:%M:%S +0000" UTC)  # or the environment's SOURCE_DATE_EPOCH

foreach(package IN LISTS CPACK_COMPONENTS_ALL)
  set(usr ${CPACK_TEMPORARY_DIRECTORY}/${package}/usr)
  set(doc ${usr}/share/doc/${package})
  file(WRITE ${doc}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Uptempo

Files: *
Copyright: ${holder}
License: Expat
 ${license}")
  file(WRITE ${doc}/changelog.Debian "uptempo (${CPACK_PACKAGE_VERSION}) unstable; urgency=medium

  * Version ${CPACK_PACKAGE_VERSION}: changelog.gz lists its changes.

 -- ${CPACK_PACKAGE_CONTACT}  ${now}
")
  configure_file(${tree}/CHANGELOG.md ${doc}/changelog COPYONLY)
  if(package STREQUAL "uptempo-tools")
    file(RENAME ${usr}/share/zsh/site-functions ${usr}/share/zsh/vendor-completions)  # where Debian's zsh looks
    file(WRITE ${usr}/share/lintian/overrides/${package} "# Loaded by its name in HSA_TOOLS_LIB; no program links it.
uptempo-tools: package-name-doesnt-match-sonames libuptempo-lint
uptempo-tools: shared-library-lacks-version *libuptempo-lint.so*
")
  endif()
  file(GLOB texts ${doc}/changelog* ${usr}/share/man/man1/*.1)
  execute_process(COMMAND gzip -9n ${texts} COMMAND_ERROR_IS_FATAL ANY)
  file(CHMOD_RECURSE ${usr}/share DIRECTORY_PERMISSIONS ${CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS}
       FILE_PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
endforeach()

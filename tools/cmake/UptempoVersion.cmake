# Sets UPTEMPO_VERSION, for project(): the numbers of engine/runtime/version.h.
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/../../engine/runtime/version.h UPTEMPO_VERSION
     REGEX "define UPTEMPO_VERSION_[A-Z]+ [0-9]+$")
list(TRANSFORM UPTEMPO_VERSION REPLACE ".* " "")
list(JOIN UPTEMPO_VERSION "." UPTEMPO_VERSION)

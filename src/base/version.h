// The version of the library, from CMakeLists.txt.
#ifndef TSSA_BASE_VERSION_H
#define TSSA_BASE_VERSION_H

const char *version_string(void);

#endif

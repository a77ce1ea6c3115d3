// Ends the process with the reason if a call of the library fails.
#include <stdio.h>
#include <stdlib.h>
#include <uptempo/uptempo.h>

static inline void check(uptempo_status status) {
  if (status == UPTEMPO_OK) return;
  fprintf(stderr, "%s\n", uptempo_error()->message);
  exit(1);
}

// printf("in a comment")
#include "print_helper.h"
#define LOG(x) printf("value %u\n", x)
#if 0
printf("in disabled code");
#endif
int printf(constant const char* format, ...);
kernel void quiet(global uint* value, uint digit) {
  constant char* text = "printf(\"in a string %u\")";
  value[0] = text[digit];
  if (false) printf("in code that is never reached %u\n", digit);
}

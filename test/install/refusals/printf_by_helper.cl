#include "print_helper.h"
kernel void noisy(global uint* value) {
  value[0] *= 2;
  log_value(value[0]);
}

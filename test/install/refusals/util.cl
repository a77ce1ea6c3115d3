kernel void add(global uint* value) { *value += 1; }

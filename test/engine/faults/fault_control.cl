// The kernel of control.cpp.
kernel void fill(global uint* words, uint value) { words[get_global_id(0)] = value; }
